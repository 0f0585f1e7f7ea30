"""A tokenizer of whole words, for stories (bAbI and its relatives).

A word is a run of letters, digits and inner apostrophes; punctuation is dropped; a Chinese
character is a word by itself. Words are lower-cased. A *multi-word entry* is a vocabulary entry
that is more than one word, such as the answer ``milk,football``: it is never split.
"""

import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from mnemic.text.chinese import HAN
from mnemic.text.tokenizers.contract import Encoding, SpecialTokens, write_tokenizer_file

PAD, UNKNOWN = "<pad>", "<unk>"


@cache
def compile_word() -> re.Pattern[str]:
    """Compile the pattern of a word, which takes a tenth of a second.

    ``re`` counts no combining mark as part of a word, yet "e" + U+0301 is one letter and most Indic
    vowels are marks. Marks live between these two code points and among the variation selectors.
    """
    marks = "".join(
        character
        for character in map(chr, range(0x300, 0x1F000))
        if unicodedata.category(character).startswith("M") and not character.isalnum()
    )
    mark = f"[{marks}\u200c\u200d\U000e0100-\U000e01ef]"
    letter = f"[^\\W_{HAN}]"
    letters = f"{letter}+(?:{mark}+{letter}*)*"
    return re.compile(f"[{HAN}]{mark}*|{letters}(?:['’]{letters})*")


class WordSpan(NamedTuple):
    """A word or multi-word entry as the vocabulary spells it, with its offsets."""

    word: str
    start: int
    end: int


class EntryShape(NamedTuple):
    """The shape of a multi-word entry: its words, and punctuation before and after them."""

    num_words: int
    before: int
    after: int


class MultiwordEntries(NamedTuple):
    """The multi-word entries of a vocabulary, and their shapes by first word.

    Shapes are sorted, largest first: thousands of film titles begin with "the", in a handful of
    shapes.
    """

    entries: set[str]
    shapes: dict[str, list[EntryShape]]


class WordTokenizer:
    """Convert text to ids of whole words and back.

    Id 0 is padding, id 1 an unknown word. A multi-word entry is found in a text wherever it occurs
    in full, the longest first: in "the milk,football." it is one token if the vocabulary has it and
    two words if not. ``special`` changes nothing, as no special tokens are ever added. Decoding
    loses punctuation and case. An entry without a letter or a digit, such as "$", has an id but is
    found in no text.
    """

    kind = "words"
    pad = 0
    unknown = 1
    special_ids = frozenset({pad})

    def __init__(self, vocabulary: Sequence[str]) -> None:
        """Create a tokenizer from a saved vocabulary: padding, unknown, then the words.

        ``WordTokenizer.from_texts`` learns a vocabulary.
        """
        _check_vocabulary(vocabulary)
        self.vocabulary = tuple(vocabulary)
        self._ids = {word: number for number, word in enumerate(self.vocabulary)}
        self._multiword = _collect_multiword_entries(self.vocabulary[2:])

    @classmethod
    def from_texts(cls, texts: Iterable[str], extra: Iterable[str] = (), *, vocab: int = 0) -> "WordTokenizer":
        """Build a vocabulary from texts and from ``extra`` entries that are never split.

        With ``vocab`` it has at most so many entries: of the words only the most common, of equally
        common ones the first in alphabetical order.
        """
        entries = {normalize_word(entry.strip()) for entry in extra}
        multiword = _collect_multiword_entries(entries)
        counts = Counter(word for text in texts for word in _iterate_words(text, multiword))
        max_words = len(counts)
        if vocab:
            max_words = vocab - 2 - len(entries)
            if max_words < 1:
                min_vocab = 3 + len(entries)
                raise ValueError(f"vocab = {vocab} has no room for a word; ask for {min_vocab} or more")
        common = sorted(counts.keys() - entries, key=lambda word: (-counts[word], word))[:max_words]
        return cls([PAD, UNKNOWN, *sorted(entries.union(common))])

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __contains__(self, token: object) -> bool:
        return isinstance(token, str) and normalize_word(token) in self._ids

    def __eq__(self, tokenizer: object) -> bool:
        return isinstance(tokenizer, WordTokenizer) and self.vocabulary == tokenizer.vocabulary

    def __hash__(self) -> int:
        return hash(self.vocabulary)

    def id_of(self, token: str) -> int:
        """Return the id of a word or multi-word entry, ignoring case; ValueError if unknown."""
        if token not in self:
            raise ValueError(
                f"{token!r} is not among the {len(self)} words of this vocabulary; "
                "build it with WordTokenizer.from_texts(texts, extra) from texts that have it"
            )
        return self._ids[normalize_word(token)]

    def encode(self, text: str, pair: str | None = None, *, special: bool = True) -> Encoding:
        """Tokenize a text or a pair of texts into words."""
        encoding = Encoding([], [], [], [])
        for segment, string in enumerate([text] if pair is None else [text, pair]):
            for word, start, end in _find_words(string, self._multiword):
                number = self._ids.get(word, self.unknown)
                encoding.ids.append(number)
                encoding.tokens.append(self.vocabulary[number])
                encoding.offsets.append((start, end))
                encoding.segments.append(segment)
        return encoding

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the word ids of each text."""
        number = self._ids.get
        return [[number(word, self.unknown) for word in _iterate_words(text, self._multiword)] for text in texts]

    def special_tokens(self, *, pair: bool = False) -> SpecialTokens:
        """Return no special tokens: none are ever added."""
        return SpecialTokens([], [], [])

    def decode(self, ids: Iterable[int]) -> str:
        """Join the words of ids with blanks; padding is left out, unknown words stay visible."""
        word_ids = [number for number in ids if number != self.pad]
        if invalid := [number for number in word_ids if not 0 <= number < len(self)]:
            raise ValueError(f"no word has the id {invalid[0]}; ids go from 0 to {len(self) - 1}")
        return " ".join(self.vocabulary[number] for number in word_ids)

    def find_unknown_words(self, text: str) -> list[str]:
        """Return the words of a text that are not in the vocabulary, without repeats."""
        words = (span.word for span in _find_words(text, self._multiword))
        return list(dict.fromkeys(word for word in words if word not in self._ids))

    def save(self, folder: Path) -> None:
        """Write the vocabulary to ``tokenizer.json``."""
        content = {"kind": self.kind, "words": self.vocabulary}
        write_tokenizer_file(folder, json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def normalize_word(text: str) -> str:
    """Normalize a word to the vocabulary's spelling.

    Lower case, composed accents, straight apostrophes.
    """
    if text.isascii():  # the same result in a third of the time
        return text.lower()
    return unicodedata.normalize("NFC", text.lower()).replace("’", "'")


def list_words(text: str) -> list[str]:
    """List the words of a text, normalized as in a vocabulary."""
    return list(map(normalize_word, compile_word().findall(text)))


def _find_words(text: str, multiword: MultiwordEntries) -> Iterator[WordSpan]:
    """Yield the words and multi-word entries of a text, with their offsets."""
    # Words are normalized one by one to keep the offsets: "İ" is longer in lower case.
    words = [WordSpan(normalize_word(match[0]), *match.span()) for match in compile_word().finditer(text)]
    index = reached = 0
    while index < len(words):
        span, count = words[index], 1
        for shape in multiword.shapes.get(span.word, ()):
            if shape.num_words > len(words) - index:
                continue
            start, end = span.start - shape.before, words[index + shape.num_words - 1].end + shape.after
            candidate = WordSpan(normalize_word(text[start:end]), start, end)
            if candidate.word in multiword.entries and candidate.start >= reached:
                span, count = candidate, shape.num_words
                break
        yield span
        index, reached = index + count, span.end


def _iterate_words(text: str, multiword: MultiwordEntries) -> Iterator[str]:
    """Yield the same words as ``_find_words``, without offsets.

    Three times as fast where there are no multi-word entries.
    """
    if multiword.entries:
        return (span.word for span in _find_words(text, multiword))
    return iter(list_words(text))


def _collect_multiword_entries(entries: Iterable[str]) -> MultiwordEntries:
    """Collect the entries that are more than one word, with their shapes."""
    multiword: set[str] = set()
    shapes: defaultdict[str, set[EntryShape]] = defaultdict(set)
    for entry in entries:
        words = list(compile_word().finditer(entry))
        if words and words[0][0] != entry:
            multiword.add(entry)
            shapes[words[0][0]].add(EntryShape(len(words), words[0].start(), len(entry) - words[-1].end()))
    return MultiwordEntries(multiword, {word: sorted(shapes[word], reverse=True) for word in shapes})


def _check_vocabulary(vocabulary: Sequence[str]) -> None:
    """Check that a saved vocabulary begins right and has no invalid or repeated words."""
    if list(vocabulary[:2]) != [PAD, UNKNOWN]:
        raise ValueError(f"the words begin with {list(vocabulary[:2])}; expected {[PAD, UNKNOWN]}")
    if invalid := [word for word in vocabulary if not isinstance(word, str) or not word.strip()]:
        raise ValueError(f"{invalid[0]!r} among the words; expected strings that are not blank")
    if unfolded := [word for word in vocabulary if normalize_word(word) != word]:
        raise ValueError(f"{unfolded[0]!r} among the words; expected {normalize_word(unfolded[0])!r}")
    if len(set(vocabulary)) < len(vocabulary):
        twice = Counter(vocabulary).most_common(1)[0][0]
        raise ValueError(f"{twice!r} is among the words twice; each word has one id")
