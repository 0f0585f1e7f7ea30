"""Background: novels as sentences of tokens, whole novels kept apart for testing."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

import numpy as np

from mnemic.data.contract import Part
from mnemic.data.corpora.document import CorpusError
from mnemic.data.corpora.read_documents import Corpus
from mnemic.data.corpora.split import part_of
from mnemic.data.long_context.hide import Piece
from mnemic.text import Tokenizer
from mnemic.text.rules import ends_of

HELD = {"validation": 0.1, "test": 0.2}  # shares of all novels
PLAIN = 300  # sentences of a made-up text

PLACES = ["road", "mill", "valley", "harbour", "chapel", "market", "meadow", "bridge", "tower"]
KINDS = ["old", "quiet", "narrow", "grey", "distant", "little", "broken", "green", "silent"]
DOINGS = ["lay", "stood", "waited", "slept", "shone", "faded", "rested", "trembled", "glowed"]
TIMES = ["at dawn", "in the rain", "all winter", "by night", "for years", "at noon", "in autumn"]


@dataclass(frozen=True)
class Background:
    """The sentences of some novels, one after another; nothing is copied to read them."""

    ids: np.ndarray  # int32, the tokens of all
    begins: np.ndarray  # where each sentence begins, and the end
    novels: np.ndarray  # the first sentence of each novel, and the end

    def __len__(self) -> int:
        return len(self.novels) - 1

    def sentence(self, number: int) -> np.ndarray:
        return self.ids[self.begins[number] : self.begins[number + 1]]

    @cached_property
    def pieces(self) -> list[Piece]:
        """All sentences, made once for those who read them again and again."""
        return [Piece(self.sentence(number)) for number in range(len(self.begins) - 1)]

    def read(self, dice: Random) -> Iterator[Piece]:
        """Sentences without end: a novel from somewhere to its end, then another one."""

        def stretches() -> Iterator[Iterator[Piece]]:
            while True:
                novel = dice.randrange(len(self))
                start = int(self.novels[novel]) + dice.randrange(self.size(novel))
                yield map(self.pieces.__getitem__, range(start, int(self.novels[novel + 1])))

        return itertools.chain.from_iterable(stretches())

    def novel(self, novel: int, start: int = 0) -> Iterator[np.ndarray]:
        """The sentences of one novel from its ``start``-th on."""
        for number in range(self.novels[novel] + start, self.novels[novel + 1]):
            yield self.sentence(number)

    def size(self, novel: int) -> int:
        return int(self.novels[novel + 1] - self.novels[novel])


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, blanks and line ends as single blanks."""
    flat = " ".join(text.split())
    ends = [0, *ends_of(flat), len(flat)]
    cuts = [flat[start:end].strip() for start, end in itertools.pairwise(ends)]
    return [sentence for sentence in cuts if sentence]


def read_novels(folder: str) -> dict[Part, list[list[str]]]:
    """The sentences of each novel, by part; without a folder, of made-up texts.

    A folder or file as ``mnemic.data.corpora`` reads it: a document is a novel. Which part one is
    in depends on its text alone; a part that would be empty gets the last one of the largest.
    """
    if not folder:
        parts: tuple[Part, ...] = ("train", "validation", "test")
        return {part: [made(Random(f"{part}/{n}")) for n in range(4)] for part in parts}
    found: dict[Part, list[list[str]]] = {"train": [], "validation": [], "test": []}
    for document in Corpus.of([folder]).read():
        if novel := sentences_of(document.text):
            found[part_of(document.text, **HELD)].append(novel)
    novels = sum(len(own) for own in found.values())
    if novels < len(found):
        raise CorpusError(
            f"{folder} has {novels} texts; background needs at least 3, so that those of the test "
            "are never seen in training"
        )
    for part, own in found.items():
        if not own:
            most: Part = max(found, key=lambda other: len(found[other]))
            found[part] = [found[most].pop()]
    return found


def made(dice: Random) -> list[str]:
    """A text of plain sentences from dice, for use without files."""
    return [
        f"the {dice.choice(KINDS)} {dice.choice(PLACES)} {dice.choice(DOINGS)} "
        f"{dice.choice(TIMES)} ."
        for _ in range(PLAIN)
    ]


def number(novels: Sequence[Sequence[str]], tokenizer: Tokenizer) -> Background:
    """The novels in tokens; a sentence without any is left out."""
    rows: list[np.ndarray] = []
    firsts = [0]
    for novel in novels:
        rows += [np.array(ids, dtype=np.int32) for ids in tokenizer.encode_all(list(novel)) if ids]
        if len(rows) > firsts[-1]:
            firsts.append(len(rows))
    begins = np.cumsum([0, *(len(row) for row in rows)])
    whole = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int32)
    return Background(whole, begins, np.array(firsts))
