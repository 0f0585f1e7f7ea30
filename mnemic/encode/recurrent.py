"""Recurrent networks: Elman, GRU and LSTM, and the encoder made of embeddings and one of them.

Contract: ``forward(x, mask, state=None) → Recurrent(states, last, state)``; ``Layers`` says what
``depth``, ``directions`` and ``dropout`` mean. Reading forward in two pieces, the second from the
state after the first, is reading at once. ``fused=False`` gives the same numbers with the same
weights in operations that `torch.func.vmap` knows: plain matmuls, and on a GPU a GRU's `scan`.

Shapes: b batch, n steps, d width, l layers times directions, c channels of one direction.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from torch import Tensor, nn

from mnemic.encode.embeddings import EMBEDDINGS
from mnemic.encode.gated_gru import relay, scan
from mnemic.encode.recurrence import Directions, Layers, Recurrent, State, step_by_step
from mnemic.recipe import build

UNPLACED: Mapping[str, Any] = {"kind": "sum", "positions": {"kind": "none"}, "norm": False}
GATED: Mapping[str, Any] = {"kind": "gru"}


class Hidden(NamedTuple):
    """What an Elman network or a GRU carries on."""

    hidden: Tensor  # b l c


class HiddenAndCell(NamedTuple):
    """What an LSTM carries on."""

    hidden: Tensor  # b l c
    cell: Tensor  # b l c


class Elman(nn.Module):
    """h' = tanh(W x + U h), the simple recurrent network (Elman 1990; he used the sigmoid)."""

    def __init__(
        self,
        width: int,
        *,
        depth: int = 1,
        directions: Directions = "forward",
        dropout: float = 0.0,
        fused: bool = True,
    ) -> None:
        super().__init__()
        self.layers = Layers(
            nn.RNN, partial(step_by_step, elman_step), width,
            depth=depth, directions=directions, dropout=dropout, fused=fused,
        )  # fmt: skip

    def forward(self, x: Tensor, mask: Tensor, state: Hidden | None = None) -> Recurrent:
        begin = Hidden(self.layers.empty(x)) if state is None else state
        states, last, end = self.layers(x, mask, begin)
        return Recurrent(states, last, Hidden(*end))


class GRU(nn.Module):
    """Gated recurrent unit (Cho et al. 2014).

    r = σ(W_r x + U_r h), z = σ(W_z x + U_z h), h̃ = tanh(W x + r ⊙ U h), h' = (1−z) ⊙ h̃ + z ⊙ h.
    Where we differ: r gates U h, as in torch's kernels; the paper gates h before U.
    """

    def __init__(
        self,
        width: int,
        *,
        depth: int = 1,
        directions: Directions = "forward",
        dropout: float = 0.0,
        fused: bool = True,
    ) -> None:
        super().__init__()
        self.layers = Layers(
            nn.GRU, partial(scan_real, scan), width,
            depth=depth, directions=directions, dropout=dropout, fused=fused,
            relay=partial(scan_real, relay),
        )  # fmt: skip

    def forward(self, x: Tensor, mask: Tensor, state: Hidden | None = None) -> Recurrent:
        begin = Hidden(self.layers.empty(x)) if state is None else state
        states, last, end = self.layers(x, mask, begin)
        return Recurrent(states, last, Hidden(*end))


class LSTM(nn.Module):
    """Long short-term memory with a forget gate (Hochreiter and Schmidhuber 1997; Gers 2000).

    c' = σ(f) ⊙ c + σ(i) ⊙ tanh(g), h' = σ(o) ⊙ tanh(c'), each gate W x + U h; no peepholes.
    """

    def __init__(
        self,
        width: int,
        *,
        depth: int = 1,
        directions: Directions = "forward",
        dropout: float = 0.0,
        fused: bool = True,
    ) -> None:
        super().__init__()
        self.layers = Layers(
            nn.LSTM, partial(step_by_step, lstm_step), width,
            depth=depth, directions=directions, dropout=dropout, fused=fused,
        )  # fmt: skip

    def forward(self, x: Tensor, mask: Tensor, state: HiddenAndCell | None = None) -> Recurrent:
        empty = self.layers.empty(x)
        begin = HiddenAndCell(empty, empty) if state is None else state
        states, last, end = self.layers(x, mask, begin)
        return Recurrent(states, last, HiddenAndCell(*end))


def elman_step(given: Tensor, back: Tensor, state: State) -> State:
    return ((given + back).tanh().squeeze(-2),)


def scan_real(
    by: Callable[..., tuple[Tensor, Tensor]],
    given: Tensor,
    mask: Tensor,
    weights: tuple[Tensor, Tensor],
    state: State,
    backward: bool,
) -> tuple[Tensor, State]:
    """A GRU's loop: the gate is open at real steps and shut at padding."""
    states, last = by(given, mask.to(given.dtype), *weights, *state, backward=backward)
    return states, (last,)


def lstm_step(given: Tensor, back: Tensor, state: State) -> State:
    enter, forget, new, show = (given + back).unbind(-2)
    cell = forget.sigmoid() * state[1] + enter.sigmoid() * new.tanh()
    return show.sigmoid() * cell.tanh(), cell


RECURRENTS: dict[str, Callable[..., nn.Module]] = {"elman": Elman, "gru": GRU, "lstm": LSTM}


class RecurrentEncoder(nn.Module):
    """Embeddings read by a recurrent network: one state a token, zeros at padding.

    With ``norm`` a layer norm follows (Ba et al. 2016), as the last one of a pre-norm Transformer
    does, so that all kinds hand on states of the same size. Without it an LSTM's begin some seven
    times smaller than an Elman network's, and so do its scores, where word vectors are tied.
    """

    def __init__(
        self,
        width: int,
        vocab: int,
        *,
        embeddings: Mapping[str, Any] = UNPLACED,
        recurrent: Mapping[str, Any] = GATED,
        norm: bool = False,
    ) -> None:
        super().__init__()
        self.width = width
        self.embeddings = build(EMBEDDINGS, embeddings, width=width, vocab=vocab)
        self.recurrent = build(RECURRENTS, recurrent, width=width)
        self.norm = nn.LayerNorm(width) if norm else nn.Identity()

    @property
    def longest(self) -> int | None:
        """How many tokens a text may have; None: any number."""
        positions: Any = self.embeddings.positions
        return positions.longest

    def forward(self, tokens: Tensor, mask: Tensor, context: Any = None) -> Tensor:
        """``tokens``, ``mask``: b n → b n d; ``context`` is the state after what came before."""
        return self.carry(tokens, mask, context).states

    def carry(self, tokens: Tensor, mask: Tensor, state: Any = None) -> Recurrent:
        """As ``forward``, with the last state and what to carry on, which no norm touches."""
        read = self.recurrent(self.embeddings(tokens, mask), mask, state)
        states = self.norm(read.states) * mask.unsqueeze(-1)
        return Recurrent(states, self.norm(read.last), read.state)
