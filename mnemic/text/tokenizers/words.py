"""A vocabulary of whole words, for stories (bAbI and its relatives).

A word is a run of letters, digits and inner apostrophes; punctuation is dropped; a Chinese
character is a word of its own. Words are lower-cased. An *item* is a vocabulary entry that is more
than one word, such as the answer ``milk,football``: it is never split.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mnemic.text.chinese import HAN
from mnemic.text.tokenizers.contract import Encoded, Frame, write

PAD, UNKNOWN = "<pad>", "<unk>"

# `re` counts no combining mark as part of a word, yet "e" + U+0301 is one letter and most Indic
# vowels are marks. Marks live between these two code points and among the variation selectors.
_MARKS = "".join(
    character
    for character in map(chr, range(0x300, 0x1F000))
    if unicodedata.category(character).startswith("M") and not character.isalnum()
)
_MARK = f"[{_MARKS}\u200c\u200d\U000e0100-\U000e01ef]"
_LETTER = f"[^\\W_{HAN}]"
_LETTERS = f"{_LETTER}+(?:{_MARK}+{_LETTER}*)*"
_WORD = re.compile(f"[{HAN}]{_MARK}*|{_LETTERS}(?:['’]{_LETTERS})*")


class Found(NamedTuple):
    """A word or an item of a text, as the vocabulary would spell it, and where it stands."""

    word: str
    start: int
    end: int


class Shape(NamedTuple):
    """How many words an item has, and how much punctuation before and after them."""

    words: int
    before: int
    after: int


class Items(NamedTuple):
    """The entries that are more than one plain word, and their shapes by the word they begin with,
    largest first: thousands of film titles begin with "the", in a handful of shapes."""

    entries: set[str]
    shapes: dict[str, list[Shape]]


class Words:
    """Whole words to ids and back; id 0 is padding, id 1 an unknown word.

    An item is found in a text wherever it stands as a whole, the one of most words first: in "the
    milk,football." it is one token if the vocabulary has it and two words if not. ``special``
    changes nothing, as no special tokens are ever added. Decoding loses punctuation and case. An
    item without a letter or a digit, such as "$", has an id but is found in no text.
    """

    kind = "words"
    pad = 0
    unknown = 1
    specials = frozenset({pad})

    def __init__(self, words: Sequence[str]) -> None:
        """Take a vocabulary as stored, padding and unknown first; ``Words.of`` makes one."""
        _check(words)
        self.words = tuple(words)
        self._ids = {word: number for number, word in enumerate(self.words)}
        self._items = _items_among(self.words[2:])

    @classmethod
    def of(cls, texts: Iterable[str], extra: Iterable[str] = (), *, vocab: int = 0) -> "Words":
        """The vocabulary of these texts and of ``extra`` items that are never split.

        With ``vocab`` it has at most so many entries: of the words only the commonest, of equally
        common ones the first by the alphabet.
        """
        entries = {fold(item.strip()) for item in extra}
        items = _items_among(entries)
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(_words_in(text, items))
        room = len(counts)
        if vocab:
            room = vocab - 2 - len(entries)
            if room < 1:
                least = 3 + len(entries)
                raise ValueError(f"vocab = {vocab} has no room for a word; ask for {least} or more")
        common = sorted(counts.keys() - entries, key=lambda word: (-counts[word], word))[:room]
        return cls([PAD, UNKNOWN, *sorted(entries.union(common))])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, token: object) -> bool:
        return isinstance(token, str) and fold(token) in self._ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Words) and self.words == other.words

    def __hash__(self) -> int:
        return hash(self.words)

    def id_of(self, token: str) -> int:
        """The id of a word or an item, however it is capitalised; ValueError if it is not here."""
        if token not in self:
            raise ValueError(
                f"{token!r} is not among the {len(self)} words of this vocabulary; "
                "build it with Words.of(texts, extra) from texts that have it"
            )
        return self._ids[fold(token)]

    def encode(self, text: str, pair: str | None = None, *, special: bool = True) -> Encoded:
        encoded = Encoded([], [], [], [])
        for segment, part in enumerate([text] if pair is None else [text, pair]):
            for word, start, end in _find(part, self._items):
                number = self._ids.get(word, self.unknown)
                encoded.ids.append(number)
                encoded.tokens.append(self.words[number])
                encoded.offsets.append((start, end))
                encoded.segments.append(segment)
        return encoded

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        number = self._ids.get
        return [
            [number(word, self.unknown) for word in _words_in(text, self._items)] for text in texts
        ]

    def frame(self, *, pair: bool = False) -> Frame:
        """Nothing: no special tokens are ever added."""
        return Frame([], [], [])

    def decode(self, ids: Iterable[int]) -> str:
        """The words with a blank between them; padding is left out, unknown words stay visible."""
        return " ".join(self._word_of(number) for number in ids if number != self.pad)

    def unknown_words(self, text: str) -> list[str]:
        """The words of ``text`` that are not in the vocabulary, each once, in their order."""
        words = (found.word for found in _find(text, self._items))
        return list(dict.fromkeys(word for word in words if word not in self._ids))

    def save(self, folder: Path) -> None:
        content = {"kind": self.kind, "words": self.words}
        write(folder, json.dumps(content, ensure_ascii=False, indent=1) + "\n")

    def _word_of(self, number: int) -> str:
        if not 0 <= number < len(self):
            raise ValueError(f"no word has the id {number}; ids go from 0 to {len(self) - 1}")
        return self.words[number]


def fold(text: str) -> str:
    """The spelling of the vocabulary: lower-cased, accents composed, straight apostrophes."""
    if text.isascii():  # the same, at a third of the time
        return text.lower()
    return unicodedata.normalize("NFC", text.lower()).replace("’", "'")


def _find(text: str, items: Items) -> Iterator[Found]:
    """The words of ``text`` and, where they stand as a whole, the items."""
    # Folding each word apart from the text keeps the offsets: "İ" is longer in lower case.
    words = [Found(fold(match[0]), *match.span()) for match in _WORD.finditer(text)]
    place = reached = 0
    while place < len(words):
        found, count = words[place], 1
        for shape in items.shapes.get(found.word, ()):
            if shape.words > len(words) - place:
                continue
            whole = _stretch(text, words[place : place + shape.words], shape)
            if whole.word in items.entries and whole.start >= reached:
                found, count = whole, shape.words
                break
        yield found
        place, reached = place + count, found.end


def _words_in(text: str, items: Items) -> Iterator[str]:
    """As ``_find``, without places: three times as fast where there are no items."""
    if items.entries:
        return (found.word for found in _find(text, items))
    return map(fold, _WORD.findall(text))


def _stretch(text: str, words: list[Found], shape: Shape) -> Found:
    start, end = words[0].start - shape.before, words[-1].end + shape.after
    return Found(fold(text[start:end]), start, end)


def _items_among(entries: Iterable[str]) -> Items:
    items = Items(set(), {})
    for entry in entries:
        words = list(_WORD.finditer(entry))
        if words and words[0][0] != entry:
            items.entries.add(entry)
            shape = Shape(len(words), words[0].start(), len(entry) - words[-1].end())
            shapes = items.shapes.setdefault(words[0][0], [])
            if shape not in shapes:
                shapes.append(shape)
    for shapes in items.shapes.values():
        shapes.sort(reverse=True)
    return items


def _check(words: Sequence[str]) -> None:
    if list(words[:2]) != [PAD, UNKNOWN]:
        raise ValueError(f"the words begin with {list(words[:2])}; expected {[PAD, UNKNOWN]}")
    if strange := [word for word in words if not isinstance(word, str) or not word.strip()]:
        raise ValueError(f"{strange[0]!r} among the words; expected strings that are not blank")
    if unfolded := [word for word in words if fold(word) != word]:
        raise ValueError(f"{unfolded[0]!r} among the words; expected {fold(unfolded[0])!r}")
    if len(set(words)) < len(words):
        twice = Counter(words).most_common(1)[0][0]
        raise ValueError(f"{twice!r} is among the words twice; each word has one id")
