"""The common part of encoders with one state per token: their embeddings."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from mnemic.encode.embeddings import EMBEDDINGS
from mnemic.encode.positions import NoPositions
from mnemic.encode.stacks import min_length
from mnemic.recipe import ConfigError, build


class TokenEncoder(nn.Module):
    """Embed tokens, for subclasses that turn the embeddings into states.

    ``takes_max_tokens``: ``forward`` takes the number of real tokens in a batch, which saves time.
    ``takes_notes``: it takes ``Notes`` to mix into the embeddings. ``num_tasks``: the number of
    tasks with a vector of their own, whose numbers ``forward`` takes; 0: it takes none.
    ``is_causal``: no state depends on later tokens. ``separates_directions``: the first half of a
    state depends on no later token, the second on no earlier one. ``segments``: the number of
    segment embeddings; 0 means that ``forward`` takes no segments. ``has_layers``:
    ``iterate_layers`` yields the states of each layer, and ``stack.blocks`` are the layers.
    ``memory_length``: the number of states per layer that a segment of a running text carries to
    the next; 0: none.
    """

    reads_texts = False  # it reads tokens, not whole texts for a memory
    takes_max_tokens = False
    takes_notes = False
    num_tasks = 0
    is_causal = False
    separates_directions = False
    segments = 0
    has_layers = False
    memory_length = 0

    def __init__(self, width: int, vocab: int, embeddings: Mapping[str, Any]) -> None:
        super().__init__()
        self.width = width
        self.embeddings: Any = build(EMBEDDINGS, embeddings, width=width, vocab=vocab)

    @property
    def max_length(self) -> int | None:
        """The maximum number of tokens of a text; None if unlimited."""
        stack = getattr(self, "stack", None)
        return min_length((self.embeddings.positions.max_length, getattr(stack, "max_length", None)))

    @property
    def device(self) -> torch.device:
        return self.embeddings.tokens.device

    def check_memory_length(self, stack_kind: str) -> None:
        """Raise a ConfigError if the layers or the positions do not go with a memory.

        ``stack_kind`` is the kind of layers that can have one.
        """
        if self.memory_length < 0:
            raise ConfigError(f"model.encode.memory_length is at least 0, not {self.memory_length}")
        if not self.memory_length:
            return
        if not getattr(getattr(self, "stack", None), "supports_context", False):
            raise ConfigError(
                "model.encode.memory_length needs layers that can attend to earlier states: a stack of kind "
                f"'{stack_kind}' with an attention that supports a context, such as 'transformer-xl'"
            )
        if not isinstance(self.embeddings.positions, NoPositions):
            raise ConfigError(
                "with model.encode.memory_length, positions that start anew in each segment would be those of its "
                "memory, too: set model.encode.embeddings.positions.kind=none, and an attention that knows distances"
            )
