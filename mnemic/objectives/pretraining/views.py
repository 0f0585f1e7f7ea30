"""Views: what the tokens of a sequence may see of each other (UniLM).

Shapes: b batch, n tokens.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemic.models import IGNORE, WindowBatch
from mnemic.objectives.uniforms import draw_choices
from mnemic.recipe import ConfigError, join_words

VIEW_KEY = 0x756E696C6D  # so that views are independent of masks
NUM_SEGMENTS = 6  # of all views together


class View(NamedTuple):
    """What a token of a sequence sees, and the segment of its tokens."""

    # rows i and columns j, b n 1 and b 1 n, both as positions and as segments → b n n
    is_visible: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
    segments: tuple[int, int]  # of the first and of the second text


# Dong et al. 2019, section 2.3; the segments say which view it is.
VIEWS: dict[str, View] = {
    "both": View(lambda i, j, row, column: torch.ones_like(i == j), (0, 1)),
    "left": View(lambda i, j, row, column: j <= i, (2, 2)),
    "right": View(lambda i, j, row, column: j >= i, (3, 3)),
    "source-target": View(lambda i, j, row, column: (column == 0) | ((row == 1) & (j <= i)), (4, 5)),
}


class SequenceViews:
    """Draw one of four views for each sequence (UniLM; Dong et al. 2019).

    arXiv:1905.03197. ``shares`` say how often each is drawn. ``both``: all tokens see each other.
    ``left``: a token sees itself and those before it; ``right``: those after it. ``source-target``:
    the first text sees itself, the second one sees the first and its own past. Each view has
    segments of its own, six in all.
    """

    def __init__(self, shares: Mapping[str, float], network: Any = None) -> None:
        if unknown := [name for name in shares if name not in VIEWS]:
            raise ConfigError(f"objective.views has no {unknown[0]!r}; it has {join_words(VIEWS)}")
        check_positive_shares("views", shares)
        if network is not None and network.encode.segments != NUM_SEGMENTS:
            raise ConfigError(
                f"objective.views tells views by {NUM_SEGMENTS} segments: set "
                f"model.encode.embeddings.segments={NUM_SEGMENTS}"
            )
        self.shares = torch.tensor([shares.get(name, 0.0) for name in VIEWS], dtype=torch.float64)

    def draw(self, seeds: Tensor) -> Tensor:
        """Draw the number of a view for each sequence by its seed, b."""
        return draw_choices(seeds ^ VIEW_KEY, self.shares)

    def apply(self, inputs: WindowBatch, view_numbers: Tensor) -> WindowBatch:
        """Replace the mask of inputs, b n n, and the segments, by those of views."""
        positions = torch.arange(inputs.tokens.shape[1], device=inputs.tokens.device)
        i, j = positions[:, None], positions
        row, column = inputs.segment_ids.unsqueeze(2), inputs.segment_ids.unsqueeze(1)
        visible = torch.stack([view.is_visible(i, j, row, column).expand(len(row), -1, -1) for view in VIEWS.values()])
        texts = torch.arange(len(row), device=row.device)
        mask = visible[view_numbers, texts] & inputs.mask.unsqueeze(1) & inputs.mask.unsqueeze(2)
        table = torch.tensor([view.segments for view in VIEWS.values()], device=row.device)
        return inputs._replace(mask=mask, segment_ids=table[view_numbers].gather(1, inputs.segment_ids))


def check_positive_shares(option: str, shares: Mapping[str, float]) -> None:
    """Raise an error unless shares are numbers from 0 on, not all 0."""
    values = list(shares.values())
    if not all(isinstance(share, int | float) and share >= 0 for share in values) or not sum(values):
        raise ConfigError(f"objective.{option} are shares from 0 on, one of them above 0, not {dict(shares)}")


def keep_both_ways(labels: Tensor, view_numbers: Tensor) -> Tensor:
    """Keep next-sentence labels where the first token sees both texts; b → b."""
    return labels.masked_fill(view_numbers != list(VIEWS).index("both"), IGNORE)
