"""EntNet's write: rewrite every slot sentence by sentence.

Shapes: b batch, n inputs, s slots, d width.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.gated_gru import has_triton
from mnemic.kernels import MIN_SQUARED_NORM


class EntNetWrite(NamedTuple):
    """The inputs of one write; only the slots change from sentence to sentence."""

    slots: Tensor  # b s d, h before the first sentence
    sentences: Tensor  # b n d, s
    sentence_drive: Tensor  # b n d, W s
    gate_logits: Tensor  # b n s, s·w plus the gates' biases
    mask: Tensor  # b n, False = padding
    key_drive: Tensor  # s d, V w plus U's bias
    recurrent_weight: Tensor  # d d, U
    slope: Tensor  # d, of φ


def rewrite_slots(inputs: EntNetWrite, *, fused: bool = True) -> tuple[Tensor, Tensor]:
    """Write all sentences; return the final slots and all gates.

    Slots are b s d, gates b n s. A padded sentence has gate 0 and leaves the slots unchanged,
    bit for bit.
    """
    slots, num_inputs = inputs.slots, inputs.sentences.shape[1]
    if fused and num_inputs and slots.is_cuda and slots.dtype == torch.float32 and has_triton():
        from mnemic.kernels.entnet_write import EntNetWriteFunction

        outputs = EntNetWriteFunction.apply(torch.is_grad_enabled(), *(tensor.unsqueeze(0) for tensor in inputs))
        return outputs[0].squeeze(0), outputs[1].squeeze(0)
    return rewrite_slots_eager(inputs)


def rewrite_slots_eager(inputs: EntNetWrite) -> tuple[Tensor, Tensor]:
    """Do the same as ``rewrite_slots`` in plain PyTorch, sentence by sentence."""
    slots, gates = inputs.slots, []
    for sentence, sentence_drive, gate_logit, mask in zip(*(tensor.unbind(1) for tensor in inputs[1:5])):
        gate = torch.sigmoid(gate_logit + (slots @ sentence.unsqueeze(-1)).squeeze(-1))  # b s
        candidate = slots @ inputs.recurrent_weight.mT + (inputs.key_drive + sentence_drive.unsqueeze(1))  # b s d
        new_slots = slots + gate.unsqueeze(-1) * prelu(candidate, inputs.slope)
        squared_norm = new_slots.square().sum(-1, keepdim=True).clamp(min=MIN_SQUARED_NORM)
        slots = torch.where(mask[:, None, None], new_slots * squared_norm.rsqrt(), slots)
        gates.append(gate)
    return slots, torch.stack(gates, 1) * inputs.mask.unsqueeze(-1) if gates else inputs.gate_logits


def remaining_shares(gates: Tensor) -> Tensor:
    """Compute the share of each input that is left in each slot (b n s).

    An input's gate times 1 − gate of all later inputs: as if an open gate replaced the slot's
    content. Together with the share of the initial content the shares sum to one. EntNet's actual
    update adds and normalizes; its exact shares can be computed too, but they name the same
    sentence in the end: see docs/explain/memory-networks.md.
    """
    keep = 1 - gates
    later_keep = keep.flip(1).cumprod(1).flip(1)  # product over this input and all later ones
    return gates * torch.cat([later_keep[:, 1:], torch.ones_like(gates[:, :1])], 1)


def prelu(x: Tensor, slope: Tensor) -> Tensor:
    """Apply PReLU with one slope per channel of the last axis."""
    return nn.functional.prelu(x.flatten(0, -2), slope).view_as(x)
