"""Recurrent networks (Elman, GRU, LSTM) and the encoder built on them.

Contract: ``forward(x, mask, state=None) → RecurrentOutput(states, last, state)``;
``RecurrentNetwork`` documents ``depth``, ``directions`` and ``dropout``. Running forward over two
pieces, the second from the state after the first, equals running over both at once. ``fused=False``
gives the same numbers with the same weights in operations that `torch.func.vmap` supports: plain
matmuls, and on a GPU a GRU's `scan_gru`.

Shapes: b batch, n steps, d width, l layers times directions, c channels of one direction.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.gated_gru import can_relay, relay_gru, scan_gru
from mnemic.encode.recurrence import LayerState, loop_steps, run_fused, run_loop
from mnemic.encode.token_encoder import TokenEncoder
from mnemic.recipe import ConfigError, build, check_repeats

Directions = Literal["forward", "halves", "sum"]

DEFAULT_EMBEDDINGS: Mapping[str, Any] = {"kind": "sum", "positions": {"kind": "none"}, "norm": False}
DEFAULT_RECURRENT: Mapping[str, Any] = {"kind": "gru"}


class HiddenState(NamedTuple):
    """The state of an Elman network or a GRU."""

    hidden: Tensor  # b l c


class LSTMState(NamedTuple):
    """The state of an LSTM."""

    hidden: Tensor  # b l c
    cell: Tensor  # b l c


class RecurrentOutput(NamedTuple):
    """The output of a recurrent network for a batch of sequences."""

    states: Tensor  # b n d, zeros at padding
    last: Tensor  # b d, after the last real step (backward: after the first)
    state: Any  # the kind's own NamedTuple, each b l c; pass it in to continue


class RecurrentNetwork(nn.Module):
    """Layers of one kind of recurrent network, run forward or in both directions.

    A kind names torch's network, its loop and its state, and maybe a ``relay``: a loop that is
    faster than torch's kernel where rows are few.

    ``directions``: "forward"; "halves", two directions of d/2, concatenated; or "sum", two of d
    added, as in DMN+ (Xiong et al. 2016). ``dropout`` acts between the layers.
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
        check_repeats(depth=depth)
        if depth < 1 or (depth == 1 and dropout):
            raise ConfigError(
                f"depth {depth} with dropout {dropout}: a recurrent network has at least one layer "
                "and drops out between layers, so dropout needs a depth of 2 or more"
            )
        if directions == "halves" and width % 2:
            raise ConfigError(f"width {width} does not divide into two halves; use an even one")
        self.directions, self.fused = directions, fused
        self.channels = width // 2 if directions == "halves" else width
        self.backward_flags = (False,) if directions == "forward" else (False, True)
        networks = nn.ModuleList(
            self.network(width, self.channels, batch_first=True) for _ in range(depth * len(self.backward_flags))
        )
        self.layers = nn.ModuleDict({"networks": networks})  # so checkpoints name them
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor, state: Any = None) -> RecurrentOutput:
        """Run all layers over ``x`` from ``state``, zeros by default.

        ``x`` b n d, ``mask`` b n, ``state`` b l c each.
        """
        networks: Any = self.layers["networks"]
        if state is None:
            state = [x.new_zeros(x.shape[0], len(networks), self.channels)] * len(self.State._fields)  # b l c
        final_states: list[LayerState] = []
        num_directions = len(self.backward_flags)
        for first in range(0, len(networks), num_directions):
            x = self.dropout(x) if first else x
            direction_outputs = []
            for number, backward in enumerate(self.backward_flags, start=first):
                initial_state = tuple(tensor[:, number] for tensor in state)  # b c each
                outputs, final_state = self.run_layer(networks[number], x, mask, initial_state, backward)
                direction_outputs.append(outputs)
                final_states.append(final_state)
            x = self.merge_directions(direction_outputs) * mask.unsqueeze(-1)  # b n d
        last = self.merge_directions([final_state[0] for final_state in final_states[-num_directions:]])
        return RecurrentOutput(x, last, self.State(*(torch.stack(tensors, 1) for tensors in zip(*final_states))))

    def run_layer(
        self, network: Any, x: Tensor, mask: Tensor, state: LayerState, backward: bool
    ) -> tuple[Tensor, LayerState]:
        """Run one layer in one direction, by the fastest method available."""
        if not self.fused:
            return run_loop(network, self.loop, x, mask, state, backward)
        if self.relay is not None and can_relay(x):
            return run_loop(network, self.relay, x, mask, state, backward)
        return run_fused(network, x, mask, state, backward)

    def merge_directions(self, outputs: list[Tensor]) -> Tensor:
        """Concatenate or add the outputs of the directions."""
        if self.directions == "forward":
            return outputs[0]
        return torch.cat(outputs, -1) if self.directions == "halves" else outputs[0] + outputs[1]


def elman_step(projected_input: Tensor, projected_hidden: Tensor, state: LayerState) -> LayerState:
    """Compute one step of an Elman network."""
    return ((projected_input + projected_hidden).tanh().squeeze(-2),)


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

    network, loop = nn.GRU, staticmethod(scan_gru)
    relay = staticmethod(relay_gru)


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
        self.is_causal = self.recurrent.directions == "forward"
        self.norm = nn.LayerNorm(width) if norm else nn.Identity()

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
