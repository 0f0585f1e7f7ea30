"""What every memory promises: ``empty``, ``write`` and ``read``, with the weights as evidence.

Shapes: b batch, g segments, n inputs, m queries, s slots, k hops, h heads, d width.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from torch import Tensor


class Written(NamedTuple):
    """A new state, and what went where."""

    state: Any  # the memory's own NamedTuple
    weights: Tensor  # b n s, how much of input n is in slot s
    gates: Tensor | None = None  # b n s, how far slot s opened for input n, where slots have gates
    stored: Tensor | None = None  # b n, log-odds of being worth storing, where a controller judges

    @property
    def entered(self) -> Tensor:
        """b n s: not 0 where input n went into slot s, even if others have written over it."""
        return self.weights if self.gates is None else self.gates


class Reading(NamedTuple):
    """What was found, and where each hop looked: the evidence."""

    found: Tensor  # b m d
    weights: Tensor  # b k h m s
    scores: Tensor  # b k h m s, before the softmax
    buffer: Tensor | None = None  # b m k d, what every hop found, where a response relates them
    nothing: Tensor | None = None  # b k h m, the score of reading nothing, where that is a choice
    gates: Tensor | None = None  # b k m, how much of what a hop found was taken, where a gate says
    worth: Tensor | None = None  # b s, what decides which slots stay, where that is learned


class Memory(Protocol):
    """G and O of the frame: parts hold weights, what they remember is a value.

    ``tables`` is how many states a text the memory wants from the encoder, ``rolls`` how many
    uniform random numbers an example needs while training (0: none). They are drawn by whoever
    holds the dice and handed to ``read``; without them a read is deterministic. ``ties`` says that
    the last table holds what a read finds, so that R may answer with that table.

    ``follow`` (b m f) are the slots that the first f hops are to read instead of their own choice,
    less than 0: none; only hard reads use it. Their ``scores`` are relative to what was read.
    """

    tables: int
    rolls: int
    ties: bool

    def empty(self, batch: int, like: Tensor) -> Any: ...

    def write(self, state: Any, states: Tensor, mask: Tensor) -> Written: ...

    def read(
        self,
        state: Any,
        query: Tensor,
        *,
        follow: Tensor | None = None,
        rolls: Tensor | None = None,
    ) -> Reading: ...


class Controlled(Memory, Protocol):
    """A memory with a controller that judges what comes: it can go from segment to segment.

    ``cuts`` says that where a text is cut is part of how it is read. ``only`` (b n) may be written;
    the controller reads all. ``ahead`` makes the choices of segments to come (b g n d, masks b g n)
    at once; each is handed to the write of its segment, which without one makes its own.
    """

    cuts: bool

    def ahead(
        self, state: Any, states: Tensor, mask: Tensor, only: Tensor | None = None
    ) -> Iterator[Any]: ...

    def write(
        self,
        state: Any,
        states: Tensor,
        mask: Tensor,
        only: Tensor | None = None,
        choice: Any = None,
    ) -> Written: ...
