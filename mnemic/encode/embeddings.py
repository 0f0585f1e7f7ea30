"""Embeddings: the sum of token, segment and position vectors.

Shapes: b batch, n tokens, d width.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.positions import POSITIONS
from mnemic.recipe import ConfigError, build

DEFAULT_POSITIONS: Mapping[str, Any] = {"kind": "learned"}
DEFAULT_EMBEDDINGS: Mapping[str, Any] = {"kind": "sum"}


class Notes(NamedTuple):
    """Vectors to mix into the embeddings of some tokens, by a ``share``."""

    vectors: Tensor  # w d
    rows: Tensor  # b n, the vector of each token; -1: none
    share: float


def mix_notes(x: Tensor, notes: Notes | None) -> Tensor:
    """Mix notes into the vectors of tokens, b n d."""
    if notes is None or not len(notes.vectors):
        return x
    vectors = nn.functional.embedding(notes.rows.clamp(min=0), notes.vectors).to(x.dtype)
    mixture = (1 - notes.share) * x + notes.share * vectors
    return torch.where((notes.rows >= 0).unsqueeze(-1), mixture, x)


class Embeddings(nn.Module):
    """Token + segment + position embeddings, layer norm, dropout (Devlin et al. 2019, figure 2).

    ``segments`` 0 means none, and ``norm`` false no layer norm; with 1 segment, all texts are in it
    (RoBERTa). ``tasks`` is the number of tasks that have a vector of their own, added to all tokens
    of a sequence (ERNIE 2); 0: none. ``scale`` multiplies the token vectors by √d (Vaswani et al.
    2017, section 3.4), for sinusoidal positions. Padding comes out as zeros.

    Where we differ: tables start with a standard deviation of 1/√d, BERT's with 0.02 at any width.
    """

    def __init__(
        self,
        width: int,
        vocab: int,
        *,
        segments: int = 0,
        tasks: int = 0,
        positions: Mapping[str, Any] = DEFAULT_POSITIONS,
        scale: bool = False,
        norm: bool = True,
        epsilon: float = 1e-5,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if min(width, vocab) < 1 or min(segments, tasks) < 0:
            raise ConfigError(
                f"embeddings need a width and a vocab of at least 1 and no negative number of "
                f"segments and tasks, not {width}, {vocab}, {segments} and {tasks}"
            )
        self.width = width
        self.scale = width**0.5 if scale else 1.0
        self.tokens = nn.Parameter(torch.randn(vocab, width) * width**-0.5)
        self.segments = nn.Parameter(torch.randn(segments, width) * width**-0.5) if segments else None
        self.tasks = nn.Parameter(torch.randn(tasks, width) * width**-0.5) if tasks else None
        self.positions = build(POSITIONS, positions, width=width)
        self.norm = nn.LayerNorm(width, eps=epsilon) if norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor,
        *,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
        start: int = 0,
        notes: Notes | None = None,
        task_ids: Tensor | None = None,
    ) -> Tensor:
        """Embed tokens; without ``segments`` all tokens are in segment 0.

        ``tokens``, ``mask``, ``segments``, ``positions``, ``task_ids``: b n → b n d. Notes are
        mixed in before the segments. Without ``task_ids`` the task is the first one.
        """
        x = nn.functional.embedding(tokens, self.tokens) * self.scale  # b n d
        x = x + self.positions(tokens, start=start, positions=positions).to(x.dtype)
        x = mix_notes(x, notes)
        if self.segments is not None:
            if segments is None or len(self.segments) == 1:
                x = x + self.segments[0]
            else:
                x = x + nn.functional.embedding(segments, self.segments)
        elif segments is not None:
            raise ValueError("segments came, but these embeddings have none; build with segments=2")
        if self.tasks is not None:
            x = x + (self.tasks[0] if task_ids is None else nn.functional.embedding(task_ids, self.tasks))
        return self.dropout(self.norm(x)) * mask.unsqueeze(-1)


class FactorizedEmbeddings(nn.Module):
    """Narrow embeddings with a linear map to the full width (ALBERT).

    Lan et al. 2020, section 3.1. ``embedding_width`` is the narrow width, ``embeddings`` the spec
    of the narrow embeddings. ELECTRA's small models do the same.
    """

    def __init__(
        self, width: int, vocab: int, *, embedding_width: int = 128, embeddings: Mapping[str, Any] = DEFAULT_EMBEDDINGS
    ) -> None:
        super().__init__()
        self.width = width
        self.narrow = build({"sum": Embeddings}, embeddings, width=embedding_width, vocab=vocab)
        self.widen = nn.Linear(embedding_width, width)

    @property
    def tokens(self) -> Tensor:
        return self.narrow.tokens

    @property
    def segments(self) -> Tensor | None:
        return self.narrow.segments

    @property
    def tasks(self) -> Tensor | None:
        return self.narrow.tasks

    @property
    def positions(self) -> nn.Module:
        return self.narrow.positions

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor,
        *,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
        start: int = 0,
        notes: Notes | None = None,
        task_ids: Tensor | None = None,
    ) -> Tensor:
        """Embed tokens as the kind ``sum`` does: b n → b n d.

        Notes are of the full width.
        """
        x = self.narrow(tokens, mask, segments=segments, positions=positions, start=start, task_ids=task_ids)
        return mix_notes(self.widen(x).to(x.dtype), notes) * mask.unsqueeze(-1)


EMBEDDINGS: dict[str, Callable[..., nn.Module]] = {"sum": Embeddings, "factorised": FactorizedEmbeddings}
