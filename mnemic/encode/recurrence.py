"""Layers of recurrent networks, as Elman networks, GRUs and LSTMs share them.

One layer in one direction is torch's own single-layer network, which holds the weights. Two ways of
running it give the same numbers: its fused kernel, and the kind's own loop in operations for which
`torch.func.vmap` has rules. Padding may be anywhere: it leaves the state unchanged.

Shapes: b batch, n steps, d width, l layers times directions, c channels of one direction, g gates.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from mnemic.encode.gated_gru import can_relay
from mnemic.recipe import ConfigError

SATURATING_BIAS = 1e4  # σ(±1e4) is exactly 1 and 0, in bfloat16 too

Directions = Literal["forward", "halves", "sum"]
# State of one layer and direction, b c each; the first is the hidden state.
LayerState = tuple[Tensor, ...]
# Projected input and projected hidden state (b g c), old state → new state.
StepFunction = Callable[[Tensor, Tensor, LayerState], LayerState]
# Projected input (b n g c), mask, U and its bias, old state, backward → outputs b n c, new state.
LoopFunction = Callable[[Tensor, Tensor, tuple[Tensor, Tensor], LayerState, bool], tuple[Tensor, LayerState]]


class RecurrentOutput(NamedTuple):
    """The output of a recurrent network for a batch of sequences."""

    states: Tensor  # b n d, zeros at padding
    last: Tensor  # b d, after the last real step (backward: after the first)
    state: Any  # the kind's own NamedTuple, each b l c; pass it in to continue


class RecurrentLayers(nn.Module):
    """Layers of one kind of recurrent network, run forward or in both directions.

    ``directions``: "forward"; "halves", two directions of d/2, concatenated; or "sum", two of d
    added, as in DMN+ (Xiong et al. 2016). ``dropout`` acts between the layers. ``relay`` is a loop
    that is faster than torch's kernel where rows are few.
    """

    def __init__(
        self,
        network: Callable[..., nn.RNNBase],
        loop: LoopFunction,
        width: int,
        *,
        depth: int,
        directions: Directions,
        dropout: float,
        fused: bool,
        relay: LoopFunction | None = None,
    ) -> None:
        super().__init__()
        if depth < 1 or (depth == 1 and dropout):
            raise ConfigError(
                f"depth {depth} with dropout {dropout}: a recurrent network has at least one layer "
                "and drops out between layers, so dropout needs a depth of 2 or more"
            )
        if directions == "halves" and width % 2:
            raise ConfigError(f"width {width} does not divide into two halves; use an even one")
        self.width, self.directions, self.fused = width, directions, fused
        self.loop, self.relay = loop, relay
        self.channels = width // 2 if directions == "halves" else width
        self.backward_flags = (False,) if directions == "forward" else (False, True)
        self.networks = nn.ModuleList(
            network(width, self.channels, batch_first=True) for _ in range(depth * len(self.backward_flags))
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor, state: LayerState) -> tuple[Tensor, Tensor, LayerState]:
        """Run all layers over a batch of sequences.

        ``x`` b n d, ``mask`` b n, ``state`` b l c each → states b n d, last b d, new state.
        """
        final_states: list[LayerState] = []
        for first in range(0, len(self.networks), len(self.backward_flags)):
            x = self.dropout(x) if first else x
            direction_outputs = []
            for number, backward in enumerate(self.backward_flags, start=first):
                initial_state = tuple(tensor[:, number] for tensor in state)  # b c each
                outputs, final_state = self.run_layer(self.networks[number], x, mask, initial_state, backward)
                direction_outputs.append(outputs)
                final_states.append(final_state)
            x = self.merge_directions(direction_outputs) * mask.unsqueeze(-1)  # b n d
        last = self.merge_directions([final_state[0] for final_state in final_states[-len(self.backward_flags) :]])
        return x, last, tuple(torch.stack(tensors, 1) for tensors in zip(*final_states))

    def run_layer(
        self, network: Any, x: Tensor, mask: Tensor, state: LayerState, backward: bool
    ) -> tuple[Tensor, LayerState]:
        """Run one layer in one direction, by the fastest method available."""
        if self.relay is not None and self.fused and can_relay(x):
            return run_loop(network, self.relay, x, mask, state, backward)
        if self.fused:
            return run_fused(network, x, mask, state, backward)
        return run_loop(network, self.loop, x, mask, state, backward)

    def merge_directions(self, outputs: list[Tensor]) -> Tensor:
        """Concatenate or add the outputs of the directions."""
        if self.directions == "forward":
            return outputs[0]
        return torch.cat(outputs, -1) if self.directions == "halves" else outputs[0] + outputs[1]

    def zero_state(self, like: Tensor) -> Tensor:
        """Return the state before the first step, zeros b l c."""
        return like.new_zeros(like.shape[0], len(self.networks), self.channels)


def run_fused(
    network: nn.RNNBase, x: Tensor, mask: Tensor, state: LayerState, backward: bool
) -> tuple[Tensor, LayerState]:
    """Run one layer in one direction through torch's kernel.

    b n d → b n c and the state after it. The real steps are moved to the front, in reading order,
    so that padding is read last, when it can no longer change anything, and its outputs are
    ignored. Steps that are padding in every row are skipped, unless a CUDA graph is captured or
    there are no values: these cannot depend on their number.
    """
    positions = torch.arange(mask.shape[1], device=mask.device)
    rows = torch.arange(mask.shape[0], device=mask.device)[:, None]  # b 1
    order = (-positions if backward else positions).where(mask, mask.shape[1]).argsort(-1)  # b n
    run = run_lstm if len(state) == 2 else run_rnn_or_gru
    lengths = mask.sum(-1, keepdim=True)
    is_capturing = mask.is_cuda and torch.cuda.is_current_stream_capturing()
    is_fixed = is_capturing or mask.is_meta or not len(mask)
    num_steps = mask.shape[1] if is_fixed else max(int(lengths.max()), 1)
    outputs, end = run(network, x[rows, order[:, :num_steps]], lengths, state)
    outputs = nn.functional.pad(outputs, (0, 0, 0, mask.shape[1] - num_steps))
    is_empty = ~mask.any(-1, keepdim=True)  # b 1
    end = tuple(torch.where(is_empty, old, new) for old, new in zip(state, end))
    return outputs[rows, order.argsort(-1)], end


def run_rnn_or_gru(network: nn.RNNBase, x: Tensor, lengths: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
    """Run a layer whose output is its state.

    So the last real output is the final state, and nothing needs packing.
    """
    outputs, _ = network(x, state[0].unsqueeze(0).contiguous())  # b n c
    return outputs, (gather_last_real(outputs, lengths),)


def run_lstm(network: nn.RNNBase, x: Tensor, lengths: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
    """Run an LSTM layer without changing the cell at padding.

    The cell is no output, so it cannot be read at the last real step. Packing the rows does it, but
    makes training on a CPU up to three times slower.
    """
    initial_state = tuple(tensor.unsqueeze(0).contiguous() for tensor in state)
    run = run_lstm_guarded if x.device.type in ("cpu", "meta") else run_lstm_packed
    outputs, cell = run(network, x, lengths, initial_state)
    return outputs, (gather_last_real(outputs, lengths), cell.squeeze(0))


def run_lstm_guarded(
    network: nn.RNNBase, x: Tensor, lengths: Tensor, initial_state: LayerState
) -> tuple[Tensor, Tensor]:
    """Run an LSTM with one more input, 1 at padding, that protects the cell.

    It shuts the input gate and opens the forget gate.
    """
    weight, *other_weights = network.all_weights[0]
    padding = torch.arange(x.shape[1], device=x.device) >= lengths  # b n
    input_bias, forget_bias, zero_bias = (
        weight.new_full((weight.shape[0] // 4, 1), v) for v in (-SATURATING_BIAS, SATURATING_BIAS, 0)
    )
    guarded_weight = torch.cat([weight, torch.cat([input_bias, forget_bias, zero_bias, zero_bias])], 1)  # gc d+1
    x = torch.cat([x, padding.unsqueeze(-1).to(x.dtype)], -1)  # b n d+1
    outputs, _, cell = torch.lstm(
        x, initial_state, [guarded_weight, *other_weights], True, 1, 0.0, network.training, False, True
    )
    return outputs, cell


def run_lstm_packed(
    network: nn.RNNBase, x: Tensor, lengths: Tensor, initial_state: LayerState
) -> tuple[Tensor, Tensor]:
    """Run an LSTM on rows packed by length.

    The lengths must be known on the CPU, so a GPU synchronizes.
    """
    sizes = lengths.squeeze(-1).clamp(min=1).cpu()
    packed = pack_padded_sequence(x, sizes, batch_first=True, enforce_sorted=False)
    outputs, (_, cell) = network(packed, initial_state)
    return pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])[0], cell


def gather_last_real(outputs: Tensor, lengths: Tensor) -> Tensor:
    """Return each row's output at its last real step, b c.

    A row without real steps gives its output at step 0.
    """
    rows = torch.arange(outputs.shape[0], device=outputs.device)
    return outputs[rows, (lengths.squeeze(-1) - 1).clamp(min=0)]


def run_loop(
    network: nn.RNNBase, loop: LoopFunction, x: Tensor, mask: Tensor, state: LayerState, backward: bool
) -> tuple[Tensor, LayerState]:
    """Run one layer by the kind's own loop, with the same result as ``run_fused``."""
    weight_in, weight_hidden, bias_in, bias_hidden = network.all_weights[0]
    channels = state[0].shape[-1]
    projected_input = nn.functional.linear(x, weight_in, bias_in).unflatten(-1, (-1, channels))  # b n g c
    return loop(projected_input, mask, (weight_hidden, bias_hidden), state, backward)


def loop_steps(
    step: StepFunction,
    projected_input: Tensor,
    mask: Tensor,
    weights: tuple[Tensor, Tensor],
    state: LayerState,
    backward: bool,
) -> tuple[Tensor, LayerState]:
    """Run ``step`` over a sequence in plain matmuls."""
    outputs = []
    steps = list(zip(projected_input.unbind(1), mask.unsqueeze(-1).unbind(1)))  # b g c, b 1
    for step_input, is_real in reversed(steps) if backward else steps:
        projected_hidden = nn.functional.linear(state[0], *weights)
        new = step(step_input, projected_hidden.unflatten(-1, step_input.shape[-2:]), state)
        state = tuple(torch.where(is_real, after, before) for after, before in zip(new, state))
        outputs.append(state[0])
    if backward:
        outputs.reverse()
    return torch.stack(outputs, 1), state
