"""The interface of all memories: ``empty``, ``write`` and ``read``.

Shapes: b batch, g segments, n inputs, m queries, s slots, k hops, h heads, d width.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from torch import Tensor, nn

MASKED_SCORE = -1e30  # the score of a masked slot
ATTENTION_CAPTION = "How much of each sentence was read at each hop; a column adds up to 1."
FREE_SLOTS = "(nothing: free slots)"
UPDATE_GATE_LABEL = "(gate: used share of what was read)"


class Written(NamedTuple):
    """The result of a write: the new state, and which input went into which slot.

    >>> memory = mnemic.load("entnet-babi").network.memory
    >>> sentences = torch.randn(1, 6, memory.num_tables, 100)
    >>> empty = memory.empty(1, sentences)
    >>> written = memory.write(empty, sentences, torch.ones(1, 6, dtype=torch.bool))
    >>> isinstance(written, mnemic.Written)
    True
    >>> written.weights.shape  # batch, sentences, slots
    torch.Size([1, 6, 20])
    """

    state: Any  # the memory's own NamedTuple
    weights: Tensor  # b n s, how much of input n is in slot s
    gates: Tensor | None = None  # b n s, how far slot s opened for input n, if slots have gates
    salience_logits: Tensor | None = None  # b n, a controller's logits of storing each input

    @property
    def slot_writes(self) -> Tensor:
        """Nonzero where input n was written to slot s (b n s), even if overwritten."""
        return self.weights if self.gates is None else self.gates


class Reading(NamedTuple):
    """The result of a read: the vectors found, and the attention of each hop (evidence).

    >>> from mnemic.memory.memn2n import MemN2N
    >>> memory = MemN2N(width=20, hops=3)
    >>> sentences = torch.randn(1, 6, memory.num_tables, 20)
    >>> empty = memory.empty(1, sentences)
    >>> written = memory.write(empty, sentences, torch.ones(1, 6, dtype=torch.bool))
    >>> reading = memory.read(written.state, torch.randn(1, 1, memory.num_tables, 20))
    >>> isinstance(reading, mnemic.Reading)
    True
    >>> reading.weights.shape  # batch, hops, heads, questions, slots
    torch.Size([1, 3, 1, 1, 6])
    """

    found: Tensor  # b m d
    weights: Tensor  # b k h m s, attention weights
    scores: Tensor  # b k h m s, before the softmax
    buffer: Tensor | None = None  # b m k d, the output of every hop, for a relation network
    nothing: Tensor | None = None  # b k h m, the score of reading nothing, if a hop may
    gates: Tensor | None = None  # b k m, how much of a hop's output a gate let through
    salience: Tensor | None = None  # b s, learned scores that decide which slots stay
    steps: Tensor | None = None  # b m, expected number of steps before a learned stop


class ReadLabels(NamedTuple):
    """The texts that explain the evidence of one kind of memory."""

    column: str  # title of a column; {} is the number of the hop
    caption: str  # {item} is what a slot holds
    unread: str = ""  # weight on no sentence; empty: columns do not add up to 1
    gate: str = UPDATE_GATE_LABEL  # the row of ``Reading.gates``


class MemoryModule(nn.Module):
    """A memory: a module with weights, whose state is a value.

    It is G and O of the frame.

    ``num_tables``: how many states per text the memory expects from the encoder.
    ``num_uniforms``: how many uniform random numbers an example needs during training (0: none);
    the caller draws them and passes them to ``read``; without them a read is deterministic.
    ``ties_answers``: the last table holds the values that a read finds, so that the response may
    answer with that table.
    ``State``: the class of its states. ``labels``: the texts beside its evidence.

    ``teacher_slots`` (b m f) are the slots that the first f hops must read instead of their own
    choice (teacher forcing), below 0: none. Only hard reads use them; the ``scores`` of such reads
    are relative to the slot that was read.
    """

    num_tables = 1
    num_uniforms = 0
    ties_answers = False
    State: type
    labels = ReadLabels("hop {}", ATTENTION_CAPTION)

    def empty(self, batch: int, like: Tensor) -> Any:
        """Make an empty state for ``batch`` rows and inputs like ``like`` (b n t d)."""
        raise NotImplementedError

    def write(self, state: Any, states: Tensor, mask: Tensor) -> Written:
        """Write inputs (b n t d, with their mask b n) into a state."""
        raise NotImplementedError

    def read(
        self, state: Any, query: Tensor, *, teacher_slots: Tensor | None = None, uniforms: Tensor | None = None
    ) -> Reading:
        """Read a state with queries (b m t d)."""
        raise NotImplementedError


class SegmentMemory(MemoryModule):
    """A memory with a controller, to be carried from segment to segment.

    ``is_cut_sensitive``: the result depends on where a text is cut into segments. Only inputs that
    are ``writable`` (b n) may be written; the controller reads all. ``when_full``: what happens
    when all slots are filled.
    """

    carries_segments = True
    is_cut_sensitive: bool
    when_full: str

    def plan_writes(self, state: Any, states: Tensor, mask: Tensor, writable: Tensor | None = None) -> Iterator[Any]:
        """Plan the writes of many segments at once; yield one plan per segment.

        ``states`` b g n d, ``mask`` and ``writable`` b g n. Each plan is passed to the ``write``
        of its segment, which otherwise makes its own.
        """
        raise NotImplementedError

    def write(
        self, state: Any, states: Tensor, mask: Tensor, writable: Tensor | None = None, plan: Any = None
    ) -> Written:
        """Write the inputs of one segment (b n 1 d, with their mask b n)."""
        raise NotImplementedError
