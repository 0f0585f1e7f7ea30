"""Reading a sequence step by step: what Elman networks, GRUs and LSTMs share.

One layer in one direction is torch's own single-layer network, which holds the weights. Two ways
of running it give the same numbers: its fused kernel, and the kind's own loop in operations for
which `torch.func.vmap` has rules. Padding may stand anywhere: it leaves the state as it was.

Shapes: b batch, n steps, d width, l layers times directions, c channels of one direction, g gates.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from mnemic.encode.gated_gru import few
from mnemic.recipe import ConfigError

SHUT = 1e4  # σ(±1e4) is exactly 1 and 0, in bfloat16 too

Directions = Literal["forward", "halves", "sum"]
State = tuple[Tensor, ...]  # of one layer and direction, b c each; the first is the hidden state
Step = Callable[[Tensor, Tensor, State], State]  # what came in, what came back (b g c), old state
# What came in (b n g c), mask, U and its bias, old state, backward? → outputs b n c, new state.
Loop = Callable[[Tensor, Tensor, tuple[Tensor, Tensor], State, bool], tuple[Tensor, State]]


class Recurrent(NamedTuple):
    """What a recurrent network makes of a sequence."""

    states: Tensor  # b n d, zeros at padding
    last: Tensor  # b d, after the last real step (backward: after the first position)
    state: Any  # the kind's own NamedTuple, each b l c: hand it in to go on from here


class Layers(nn.Module):
    """Layers of one kind of recurrent network, each read forward or in both directions.

    ``directions``: "forward"; "halves", two directions of d/2 side by side; or "sum", two of d
    added, as in DMN+ (Xiong et al. 2016). ``dropout`` acts between the layers. ``relay`` is a loop
    that is faster than torch's kernel where rows are few.
    """

    def __init__(
        self,
        network: Callable[..., nn.RNNBase],
        loop: Loop,
        width: int,
        *,
        depth: int,
        directions: Directions,
        dropout: float,
        fused: bool,
        relay: Loop | None = None,
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
        self.ways = (False,) if directions == "forward" else (False, True)  # backward?
        self.networks = nn.ModuleList(
            network(width, self.channels, batch_first=True) for _ in range(depth * len(self.ways))
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        """``x`` b n d, ``mask`` b n, ``state`` b l c each → states b n d, last b d, new state."""
        ends: list[State] = []
        for first in range(0, len(self.networks), len(self.ways)):
            x = self.dropout(x) if first else x
            read = []
            for number, backward in enumerate(self.ways, start=first):
                begin = tuple(part[:, number] for part in state)  # b c each
                outputs, end = self.run(self.networks[number], x, mask, begin, backward)
                read.append(outputs)
                ends.append(end)
            x = self.join(read) * mask.unsqueeze(-1)  # b n d
        last = self.join([end[0] for end in ends[-len(self.ways) :]])
        return x, last, tuple(torch.stack(parts, 1) for parts in zip(*ends))

    def run(
        self, network: Any, x: Tensor, mask: Tensor, state: State, backward: bool
    ) -> tuple[Tensor, State]:
        if self.relay is not None and self.fused and few(x):
            return run_plain(network, self.relay, x, mask, state, backward)
        if self.fused:
            return run_fused(network, x, mask, state, backward)
        return run_plain(network, self.loop, x, mask, state, backward)

    def join(self, read: list[Tensor]) -> Tensor:
        if self.directions == "forward":
            return read[0]
        return torch.cat(read, -1) if self.directions == "halves" else read[0] + read[1]

    def empty(self, like: Tensor) -> Tensor:
        """A state before anything was read, b l c."""
        return like.new_zeros(like.shape[0], len(self.networks), self.channels)


def run_fused(
    network: nn.RNNBase, x: Tensor, mask: Tensor, state: State, backward: bool
) -> tuple[Tensor, State]:
    """One layer in one direction through torch's kernel: b n d → b n c and the state after it.

    The real steps are moved to the front, in reading order, so that padding is read last, when
    it can no longer change anything, and where its outputs are not looked at. Steps that are
    padding in every row are not taken, unless a CUDA graph is recorded, which cannot ask for them.
    """
    places = torch.arange(mask.shape[1], device=mask.device)
    rows = torch.arange(mask.shape[0], device=mask.device)[:, None]  # b 1
    order = (-places if backward else places).where(mask, mask.shape[1]).argsort(-1)  # b n
    run = run_lstm if len(state) == 2 else run_one_state
    lengths = mask.sum(-1, keepdim=True)
    recorded = mask.is_cuda and torch.cuda.is_current_stream_capturing()
    most = mask.shape[1] if recorded or not len(mask) else max(int(lengths.max()), 1)
    outputs, end = run(network, x[rows, order[:, :most]], lengths, state)
    outputs = nn.functional.pad(outputs, (0, 0, 0, mask.shape[1] - most))
    nothing = ~mask.any(-1, keepdim=True)  # b 1
    end = tuple(torch.where(nothing, old, new) for old, new in zip(state, end))
    return outputs[rows, order.argsort(-1)], end


def run_one_state(
    network: nn.RNNBase, x: Tensor, lengths: Tensor, state: State
) -> tuple[Tensor, State]:
    """Where the state is the output, the last real output is the end: nothing need be packed."""
    outputs, _ = network(x, state[0].unsqueeze(0).contiguous())  # b n c
    return outputs, (last_real(outputs, lengths),)


def run_lstm(network: nn.RNNBase, x: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, State]:
    """The cell is no output, so a kernel must be kept from changing it at padding.

    Packing the rows does that, but makes training on a CPU up to three times slower.
    """
    begin = tuple(part.unsqueeze(0).contiguous() for part in state)
    run = hold_lstm if x.device.type == "cpu" else pack_lstm
    outputs, cell = run(network, x, lengths, begin)
    return outputs, (last_real(outputs, lengths), cell.squeeze(0))


def hold_lstm(
    network: nn.RNNBase, x: Tensor, lengths: Tensor, begin: State
) -> tuple[Tensor, Tensor]:
    """One more input, 1 at padding, holds the cell: shut the input gate, open the forget gate."""
    weight, *others = network.all_weights[0]
    padding = torch.arange(x.shape[1], device=x.device) >= lengths  # b n
    enter, forget, rest = (weight.new_full((weight.shape[0] // 4, 1), v) for v in (-SHUT, SHUT, 0))
    guarded = torch.cat([weight, torch.cat([enter, forget, rest, rest])], 1)  # gc d+1
    x = torch.cat([x, padding.unsqueeze(-1).to(x.dtype)], -1)  # b n d+1
    outputs, _, cell = torch.lstm(
        x, begin, [guarded, *others], True, 1, 0.0, network.training, False, True
    )
    return outputs, cell


def pack_lstm(
    network: nn.RNNBase, x: Tensor, lengths: Tensor, begin: State
) -> tuple[Tensor, Tensor]:
    """Each row ends at its own length; the lengths must be known on the CPU, so a GPU waits."""
    sizes = lengths.squeeze(-1).clamp(min=1).cpu()
    packed = pack_padded_sequence(x, sizes, batch_first=True, enforce_sorted=False)
    outputs, (_, cell) = network(packed, begin)
    return pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])[0], cell


def last_real(outputs: Tensor, lengths: Tensor) -> Tensor:
    """The output of each row's last real step, b c; of the first step where there is none."""
    rows = torch.arange(outputs.shape[0], device=outputs.device)
    return outputs[rows, (lengths.squeeze(-1) - 1).clamp(min=0)]


def run_plain(
    network: nn.RNNBase, loop: Loop, x: Tensor, mask: Tensor, state: State, backward: bool
) -> tuple[Tensor, State]:
    """As ``run_fused``, with the same weights, by the kind's own loop."""
    weight_in, weight_back, bias_in, bias_back = network.all_weights[0]
    channels = state[0].shape[-1]
    given = nn.functional.linear(x, weight_in, bias_in).unflatten(-1, (-1, channels))  # b n g c
    return loop(given, mask, (weight_back, bias_back), state, backward)


def step_by_step(
    step: Step,
    given: Tensor,
    mask: Tensor,
    weights: tuple[Tensor, Tensor],
    state: State,
    backward: bool,
) -> tuple[Tensor, State]:
    """A loop of plain matmuls and ``step``."""
    outputs = []
    places = list(zip(given.unbind(1), mask.unsqueeze(-1).unbind(1)))  # b g c, b 1
    for came, real in reversed(places) if backward else places:
        back = nn.functional.linear(state[0], *weights)
        new = step(came, back.unflatten(-1, came.shape[-2:]), state)
        state = tuple(torch.where(real, after, before) for after, before in zip(new, state))
        outputs.append(state[0])
    if backward:
        outputs.reverse()
    return torch.stack(outputs, 1), state
