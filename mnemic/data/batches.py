"""What datasets share: devices, and how sequences are padded to a batch.

Shapes: b sequences of a batch, n tokens.
"""

from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from mnemic.text import SubwordTokenizer, Tokenizer

CPU = torch.device("cpu")
SENTENCE_ENDS = frozenset(".!?。！？")


@dataclass(frozen=True)
class TensorDataset:
    """Base of datasets of tensors on one device; their batches are not random."""

    num_uniforms: ClassVar[int] = 0
    weights: Tensor | None = field(default=None, kw_only=True)

    @property
    def is_stream(self) -> bool:
        """Return whether the examples are pieces of one text, to be read in order."""
        return False

    @property
    def device(self) -> torch.device:
        """Return the device of the tensors."""
        return next(value.device for value in vars(self).values() if torch.is_tensor(value))

    def to(self, device: torch.device | str) -> Self:
        """Copy all tensors to a device, also those in tuples and in other datasets."""

        def move(leaf: Any) -> Any:
            return leaf.to(device) if isinstance(leaf, Tensor | TensorDataset) else leaf

        values = {item.name: getattr(self, item.name) for item in fields(self)}
        movable = (Tensor, TensorDataset, tuple)
        moved = {name: tree_map(move, value) for name, value in values.items() if isinstance(value, movable)}
        return replace(self, **moved)


@dataclass(frozen=True, kw_only=True)
class AssembledDataset:
    """Base of datasets that assemble batches on the CPU and send them elsewhere."""

    num_unknown: ClassVar[int] = 0
    is_stream: ClassVar[bool] = False
    batch_device: torch.device = CPU
    weights: Tensor | None = None

    @property
    def device(self) -> torch.device:
        """Return the device of row numbers; batches are sent to ``batch_device``."""
        return CPU

    def to(self, device: torch.device | str) -> Self:
        """Return the same dataset with batches on another device."""
        return replace(self, batch_device=torch.device(device))


def move_batch(batch: Any, device: torch.device) -> Any:
    """Move the tensors of a batch to a device, without blocking a GPU."""

    def move(leaf: Any) -> Any:
        return leaf.pin_memory().to(device, non_blocking=True) if isinstance(leaf, Tensor) else leaf

    return batch if device.type == "cpu" else tree_map(move, batch)


@lru_cache(maxsize=4)
def ordinary_ids_of(tokenizer: Tokenizer) -> Tensor:
    """List all ids but those of special tokens."""
    return torch.tensor([token_id for token_id in range(len(tokenizer)) if token_id not in tokenizer.special_ids])


@lru_cache(maxsize=4)
def sentence_end_ids_of(tokenizer: SubwordTokenizer) -> Tensor:
    """List the ids of full stops and the like, which end a sentence."""
    texts = (tokenizer.decode([token_id]).strip() for token_id in ordinary_ids_of(tokenizer).tolist())
    return ordinary_ids_of(tokenizer)[[text in SENTENCE_ENDS for text in texts]]


def locate_tokens(starts: Tensor, lengths: Tensor, width: int = 0) -> tuple[Tensor, Tensor]:
    """Locate the tokens of sequences in one row, and mask padding: b → b n.

    Padding has the position 0. ``width`` 0: as wide as the longest sequence, at least 1.
    """
    longest = int(lengths.max()) if not width and len(lengths) else 0
    column = torch.arange(width or max(longest, 1), device=starts.device)
    mask = column < lengths.unsqueeze(1)
    return (starts.unsqueeze(1) + column).masked_fill(~mask, 0), mask
