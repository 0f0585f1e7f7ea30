"""An encoder that does not look: for language models that a picture is compared with.

Shapes: b pictures, c channels, y rows and x columns of pixels, n regions (1), d width.
"""

import torch
from torch import Tensor, nn


class BlindEncoder(nn.Module):
    """Encode every picture as the same region, which is learned."""

    num_regions, grid = 1, (1, 1)

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.region = nn.Parameter(torch.randn(1, width) * 0.1)

    def forward(self, pictures: Tensor) -> Tensor:
        """Return the region for each picture: b c y x → b 1 d."""
        return self.region.expand(len(pictures), -1, -1)
