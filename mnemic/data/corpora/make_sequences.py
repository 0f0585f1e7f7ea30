"""From the documents of a corpus to its training sequences, block by block."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from mnemic.data.corpora.formats import Format
from mnemic.data.corpora.sequences import Example, assemble
from mnemic.data.corpora.tokens import Tokens
from mnemic.text import Subwords

ROOM = 1_000_000  # tokens of a block: what is held in memory at once


@dataclass(frozen=True, kw_only=True)
class Maker:
    """Documents to sequences: shuffled within a block, cut by a format, and assembled.

    What is made of a block is a pure function of its documents and its number.
    """

    tokenizer: Subwords  # whose [CLS] and [SEP] frame the sequences
    format: Format
    most: int = 128  # tokens of a sequence, special ones included
    room: int = ROOM

    def __call__(self, documents: Iterable[Tokens]) -> Iterator[Example]:
        """All sequences of the documents; no more than a block of these is held."""
        for number, block in enumerate(in_blocks(documents, self.room)):
            dice = random.Random(number_of("block", number))
            dice.shuffle(block)
            yield from self.made(block, dice)

    def made(self, texts: list[Tokens], dice: random.Random) -> Iterator[Example]:
        plans = self.format([text.ends for text in texts], self.most, dice)
        cls, sep = self.tokenizer.cls, self.tokenizer.sep
        return (assemble(plan, texts, cls=cls, sep=sep) for plan in plans)


def in_blocks(documents: Iterable[Tokens], room: int) -> Iterator[list[Tokens]]:
    """Documents in their order, in lists that end when they are full."""
    block: list[Tokens] = []
    size = 0
    for document in documents:
        block.append(document)
        size += len(document.ids)
        if size >= room:
            yield block
            block, size = [], 0
    if block:
        yield block


def number_of(*purpose: object) -> int:
    """A number of 63 bits for each purpose, the same on every machine."""
    text = "/".join(str(part) for part in purpose)
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") >> 1
