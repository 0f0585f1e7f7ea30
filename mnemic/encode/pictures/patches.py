"""An encoder of pictures as sequences of patches, for any stack of layers.

Shapes: b pictures, c channels, y rows and x columns of pixels, n patches, d width.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.encode.pictures.conv import count_rows
from mnemic.encode.stacks import STACKS
from mnemic.recipe import build

DEFAULT_STACK: Mapping[str, Any] = {"kind": "encoder", "norm": "pre"}


class PatchEncoder(nn.Module):
    """Cut a picture into patches, embed each linearly, and let a stack relate them.

    With ``full`` attention this is ViT (Dosovitskiy et al. 2021), with ``mlp-mixer`` MLP-Mixer or
    the feed-forward layers of Melas-Kyriazi (2021), with ``external`` external attention. There is
    no class token: a response pools the patches.
    """

    def __init__(
        self, width: int, channels: int = 3, side: int = 48, *, patch: int = 8, stack: Mapping[str, Any] = DEFAULT_STACK
    ) -> None:
        super().__init__()
        rows = count_rows(side, patch, "patch", patch)
        self.width, self.grid, self.num_regions = width, (rows, rows), rows * rows
        self.embed = nn.Conv2d(channels, width, patch, patch)
        self.positions = nn.Parameter(torch.randn(self.num_regions, width) * 0.02)
        self.stack: Any = build(STACKS, stack, width=width)

    def forward(self, pictures: Tensor) -> Tensor:
        """Encode pictures as patches: b c y x → b n d."""
        patches = self.embed(pictures).flatten(2).mT + self.positions
        states: Tensor = self.stack(patches, torch.ones_like(patches[..., 0], dtype=torch.bool))
        return states
