"""Recurrent networks (Elman, GRU, LSTM) and the encoder built on them.

Contract: ``forward(x, mask, state=None) → RecurrentOutput(states, last, state)``;
``RecurrentLayers`` documents ``depth``, ``directions`` and ``dropout``. Running forward over two
pieces, the second from the state after the first, equals running over both at once. ``fused=False``
gives the same numbers with the same weights in operations that `torch.func.vmap` supports: plain
matmuls, and on a GPU a GRU's `scan_gru`.

Shapes: b batch, n steps, d width, l layers times directions, c channels of one direction.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from torch import Tensor, nn

from mnemic.encode.gated_gru import relay_gru, scan_gru
from mnemic.encode.recurrence import Directions, LayerState, RecurrentLayers, RecurrentOutput, loop_steps
from mnemic.encode.token_encoder import TokenEncoder
from mnemic.recipe import build

DEFAULT_EMBEDDINGS: Mapping[str, Any] = {"kind": "sum", "positions": {"kind": "none"}, "norm": False}
DEFAULT_RECURRENT: Mapping[str, Any] = {"kind": "gru"}


class HiddenState(NamedTuple):
    """The state of an Elman network or a GRU."""

    hidden: Tensor  # b l c


class LSTMState(NamedTuple):
    """The state of an LSTM."""

    hidden: Tensor  # b l c
    cell: Tensor  # b l c


class RecurrentNetwork(nn.Module):
    """Build and run the layers of one kind of recurrent network.

    A kind names torch's network, its loop and its state, and maybe a faster loop for few rows.
    """

    network: Any
    loop: Any  # a LoopFunction
    relay: Any = None
    State: type[HiddenState] | type[LSTMState] = HiddenState

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
        self.layers = RecurrentLayers(
            self.network, self.loop, width,
            depth=depth, directions=directions, dropout=dropout, fused=fused, relay=self.relay,
        )  # fmt: skip

    def forward(self, x: Tensor, mask: Tensor, state: Any = None) -> RecurrentOutput:
        """Run the network over ``x`` b n d from ``state``, zeros by default."""
        if state is None:
            state = self.State(*[self.layers.zero_state(x)] * len(self.State._fields))
        states, last, final_state = self.layers(x, mask, state)
        return RecurrentOutput(states, last, self.State(*final_state))


def elman_step(projected_input: Tensor, projected_hidden: Tensor, state: LayerState) -> LayerState:
    """Compute one step of an Elman network."""
    return ((projected_input + projected_hidden).tanh().squeeze(-2),)


def scan_with_mask(
    scan: Callable[..., tuple[Tensor, Tensor]],
    projected_input: Tensor,
    mask: Tensor,
    weights: tuple[Tensor, Tensor],
    state: LayerState,
    backward: bool,
) -> tuple[Tensor, LayerState]:
    """Run a GRU scan with the mask as its gate.

    The gate is open at real steps and shut at padding.
    """
    states, last = scan(projected_input, mask.to(projected_input.dtype), *weights, *state, backward=backward)
    return states, (last,)


def lstm_step(projected_input: Tensor, projected_hidden: Tensor, state: LayerState) -> LayerState:
    """Compute one step of an LSTM."""
    input_gate, forget_gate, candidate, output_gate = (projected_input + projected_hidden).unbind(-2)
    cell = forget_gate.sigmoid() * state[1] + input_gate.sigmoid() * candidate.tanh()
    return output_gate.sigmoid() * cell.tanh(), cell


class Elman(RecurrentNetwork):
    """The simple recurrent network, h' = tanh(W x + U h) (Elman 1990; he used the sigmoid)."""

    network, loop = nn.RNN, staticmethod(partial(loop_steps, elman_step))


class GRU(RecurrentNetwork):
    """The gated recurrent unit (Cho et al. 2014).

    r = σ(W_r x + U_r h), z = σ(W_z x + U_z h), h̃ = tanh(W x + r ⊙ U h), h' = (1−z) ⊙ h̃ + z ⊙ h.

    Where we differ: r gates U h, as in torch's kernels; the paper gates h before U.
    """

    network, loop = nn.GRU, staticmethod(partial(scan_with_mask, scan_gru))
    relay = staticmethod(partial(scan_with_mask, relay_gru))


class LSTM(RecurrentNetwork):
    """Long short-term memory with a forget gate (Hochreiter and Schmidhuber 1997; Gers 2000).

    c' = σ(f) ⊙ c + σ(i) ⊙ tanh(g), h' = σ(o) ⊙ tanh(c'), each gate W x + U h; no peepholes.
    """

    network, loop, State = nn.LSTM, staticmethod(partial(loop_steps, lstm_step)), LSTMState


RECURRENTS: dict[str, Callable[..., nn.Module]] = {"elman": Elman, "gru": GRU, "lstm": LSTM}


class RecurrentEncoder(TokenEncoder):
    """Embeddings followed by a recurrent network: one state per token, zeros at padding.

    With ``norm`` a layer norm follows (Ba et al. 2016), like the last one of a pre-norm
    Transformer, so that all kinds return states of the same size. Without it an LSTM's states start
    some seven times smaller than an Elman network's, and so do its logits, where word vectors are
    tied.
    """

    def __init__(
        self,
        width: int,
        vocab: int,
        *,
        embeddings: Mapping[str, Any] = DEFAULT_EMBEDDINGS,
        recurrent: Mapping[str, Any] = DEFAULT_RECURRENT,
        norm: bool = False,
    ) -> None:
        super().__init__(width, vocab, embeddings)
        self.recurrent: Any = build(RECURRENTS, recurrent, width=width)
        self.norm = nn.LayerNorm(width) if norm else nn.Identity()

    @property
    def is_causal(self) -> bool:
        return self.recurrent.layers.directions == "forward"

    def forward(self, tokens: Tensor, mask: Tensor, context: Any = None) -> Tensor:
        """Encode tokens; ``context`` is the state after the tokens before them.

        ``tokens``, ``mask``: b n → b n d.
        """
        return self.encode_with_state(tokens, mask, context).states

    def encode_with_state(self, tokens: Tensor, mask: Tensor, state: Any = None) -> RecurrentOutput:
        """Encode tokens and return their states, the last one, and the state to continue from.

        The latter is never normalized.
        """
        output = self.recurrent(self.embeddings(tokens, mask), mask, state)
        states = self.norm(output.states) * mask.unsqueeze(-1)
        return RecurrentOutput(states, self.norm(output.last), output.state)
