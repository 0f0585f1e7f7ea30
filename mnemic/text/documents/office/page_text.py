"""Join the lines of a page, undoing hyphenation where that is safe."""

import re
from collections.abc import Iterator, Sequence

from mnemic.text.documents.office.page_lines import HYPHEN, Line
from mnemic.text.documents.piece import Anchor, DocumentPiece
from mnemic.text.documents.units import detect_language, find_sentence_ends
from mnemic.text.sentences import Span

MAX_WORDS = 200_000  # that are remembered of a document
MIN_COMPOUND_LENGTH = 4  # of both words of a compound such as "command-line"
COMPOUND_PREFIXES = frozenset(
    "all anti cross ex half high long low mid multi non post pre quasi self semi short single well".split()  # noqa: SIM905
)
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_HYPHENATED = re.compile(rf"(?<=\w)(?:{HYPHEN}|-)\Z")
_HEAD = re.compile(r"[^\W\d_]+\Z")
_TAIL = re.compile(r"[^\W\d_]+")
_CONJUNCTION = re.compile(r"(?:and|or|und|oder|bzw|sowie|et|ou|y|o)\b")


class WordSet:
    """The words of a document so far, which tell "com-mand" from "command-line"."""

    def __init__(self) -> None:
        self.words: set[str] = set()

    def add_text(self, text: str) -> None:
        """Add the words of a text."""
        if len(self.words) < MAX_WORDS:
            self.words.update(_WORD.findall(text.lower()))

    def has(self, word: str) -> bool:
        """Check whether the document has a word."""
        return word.lower() in self.words

    def keeps_hyphen(self, head: str, tail: str) -> bool:
        """Check whether the hyphen between two parts of a word is part of the word."""
        head, tail = head.lower(), tail.lower()
        if head + tail in self.words:
            return False
        is_compound = min(len(head), len(tail)) >= MIN_COMPOUND_LENGTH and {head, tail} <= self.words
        return f"{head}-{tail}" in self.words or head in COMPOUND_PREFIXES or is_compound


def build_page(lines: Sequence[Line], number: int | None, words: WordSet) -> DocumentPiece:
    """Build the piece of a page; blank lines do not count."""
    for before, line in zip((Line("", ""), *lines), lines):  # halves of words are no words
        inner = line.text.partition(" ")[2] if _HYPHENATED.search(before.text) else line.text
        words.add_text(inner.rpartition(" ")[0] if _HYPHENATED.search(inner) else inner)
    text, cuts, anchors, unit_start = "", list[int](), list[Anchor](), 0
    for index, (content, gap, _, is_row) in enumerate(join_hyphens(lines, words)):
        if not text or text.endswith("\n\n"):
            anchors.append(Anchor(len(text), len(text), index + 1))
        text += content + (gap if gap.strip(" ") else "\n")
        if gap != " ":
            cuts += [len(text)] if is_row else find_ends(text, unit_start)
            unit_start = len(text)
    return DocumentPiece(text, tuple(anchors), number, tuple(cuts))


def find_ends(text: str, start: int) -> list[int]:
    """Find the ends of the sentences from ``start`` on; a table row is one unit."""
    unit = text[start:]
    if "\t" in unit and "\n" not in unit.rstrip():
        return [len(text)]
    return find_sentence_ends(text, Span(start, len(text)), detect_language(unit))


def join_hyphens(lines: Sequence[Line], words: WordSet) -> Iterator[Line]:
    """Move the rest of a hyphenated word up to its beginning.

    The hyphen goes unless it belongs to the word, as in "command-line".
    """
    texts = [line.text for line in lines]
    for index, (_, gap, bounds, is_row) in enumerate(lines):
        text = texts[index]
        if not is_row and _HYPHENATED.search(text):
            text = text[:-1] + "-"
            following = texts[index + 1] if index + 1 < len(texts) else ""
            rest, _, remainder = following.partition(" ")
            if gap != "\n\n" and rest and not _CONJUNCTION.match(following):
                text = join_word(text, rest, words)
                texts[index + 1] = remainder
        yield Line(text.replace(HYPHEN, "-"), gap, bounds, is_row)


def join_word(text: str, rest: str, words: WordSet) -> str:
    """Join a line that ends in a hyphen and the rest of its last word."""
    head, tail = _HEAD.search(text[:-1]), _TAIL.match(rest)
    if head is None or tail is None:
        return text + rest
    is_capital = head.group().isupper() and tail.group().isupper() and words.has(head.group() + tail.group())
    is_split = tail.group()[0].islower() and not words.keeps_hyphen(head.group(), tail.group())
    if is_split or is_capital:
        return text[:-1] + rest
    return text + rest
