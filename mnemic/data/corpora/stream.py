"""Sequences without end, made and shuffled block by block; a stopped stream goes on exactly.

A block is as many documents as fit into bounded memory, in the order of the files. What is made of
it and in which order is a pure function of the seed, the epoch and the block: a stream that was
stopped reads one block again and goes on behind the last sequence it had dealt.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from typing import Generic, NamedTuple, Protocol, TypeVar

from mnemic.data.corpora.document import CorpusError, Place
from mnemic.recipe import ConfigError


class Sized(Protocol):
    """What a block is made of: a ``Document`` or a ``TokenDocument``."""

    @property
    def size(self) -> int: ...  # characters, or tokens

    @property
    def after(self) -> Place: ...


D = TypeVar("D", bound=Sized)
T = TypeVar("T")


class Position(NamedTuple):
    """How far a stream has been dealt; whole numbers, to be saved with a checkpoint."""

    epoch: int = 0
    taken: int = 0  # sequences of the block that begins at ``place``
    place: Place = Place()

    def numbers(self) -> list[int]:
        """All of it as a flat list, for a tensor or a JSON file."""
        return [self.epoch, self.taken, *self.place]

    @classmethod
    def of(cls, numbers: Iterable[int]) -> "Position":
        """The inverse of ``numbers``."""
        epoch, taken, *place = numbers
        return cls(epoch, taken, Place(*place))


class Dealt(NamedTuple, Generic[T]):
    """One sequence, the key to its dice, and the position behind it."""

    item: T
    key: int  # 63 bits; a sequence that is dealt again as it was has the same
    after: Position


class Made(NamedTuple, Generic[T]):
    """The sequences of a block in the order in which they are dealt, and the block behind it."""

    items: list[tuple[T, int]]  # each with its key
    start: Position
    after: Position


BEGIN = Position()


@dataclass(frozen=True, kw_only=True)
class Stream(Generic[D, T]):
    """Epoch after epoch over the documents that ``read`` finds behind a place.

    ``make`` turns a block into sequences with dice of its own. ``copies`` is for static masks (the
    original BERT had 10): so many ways to make the sequences, with as many keys, come round in
    turn; 0 makes them anew in every epoch (RoBERTa). A block ends with ``documents`` documents or
    where their sizes reach ``room``; ``ahead`` makes the next one on a thread beside this one.
    """

    read: Callable[[Place], Iterator[D]]
    make: Callable[[list[D], random.Random], list[T]]
    seed: int = 0
    copies: int = 0
    documents: int = 1000
    room: int = 4_000_000
    ahead: bool = True

    def __post_init__(self) -> None:
        if min(self.documents, self.room) < 1 or self.copies < 0:
            raise ConfigError(
                "a block has at least 1 document and a room of 1, and there are 0 or more copies, "
                f"not {self.documents}, {self.room} and {self.copies}"
            )

    def from_position(self, position: Position = BEGIN) -> Iterator[Dealt[T]]:
        """All sequences behind ``position``, without end."""
        skip = position.taken
        made = self.blocks(position._replace(taken=0))
        for items, start, after in beside(made) if self.ahead else made:
            for taken, (item, key) in enumerate(items[skip:], start=skip + 1):
                last = taken == len(items)
                yield Dealt(item, key, after if last else start._replace(taken=taken))
            skip = 0

    def blocks(self, position: Position) -> Iterator[Made[T]]:
        """Every block from the one at ``position`` on, made; an epoch without any is an error."""
        while True:
            dealt = position.place.number > 0  # so the rest of this epoch may well be empty
            for block in in_blocks(self.read(position.place), self.documents, self.room):
                after = Position(position.epoch, 0, block[-1].after)
                items = self.made(position, block)
                if items:
                    yield Made(items, position, after)
                    dealt = True
                position = after
            if not dealt:
                raise CorpusError(
                    "there is nothing to learn from: no document, or none with a token, in this "
                    "part of the corpus"
                )
            position = Position(position.epoch + 1)

    def made(self, position: Position, block: list[D]) -> list[tuple[T, int]]:
        """A block's sequences, shuffled; copies differ in the making, epochs in the order too."""
        version = position.epoch % self.copies if self.copies else position.epoch
        where = (self.seed, position.place.number)
        items = self.make(block, random.Random(number_of(*where, "make", version)))
        keyed = [(item, number_of(*where, "key", version, at)) for at, item in enumerate(items)]
        random.Random(number_of(*where, "order", position.epoch)).shuffle(keyed)
        return keyed


def in_blocks(documents: Iterable[D], most: int, room: int) -> Iterator[list[D]]:
    """Documents in their order, in lists that end when they are full."""
    block: list[D] = []
    size = 0
    for document in documents:
        block.append(document)
        size += document.size
        if len(block) == most or size >= room:
            yield block
            block, size = [], 0
    if block:
        yield block


def beside(items: Iterator[T]) -> Iterator[T]:
    """The same items, each made while the one before it is used."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item


def number_of(*purpose: object) -> int:
    """A number of 63 bits for each purpose, the same on every machine."""
    text = "/".join(str(part) for part in purpose)
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") >> 1
