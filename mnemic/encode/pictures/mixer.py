"""MLP-Mixer: patches of a picture, mixed by matrices instead of attention.

Shapes: b pictures, c channels, y rows and x columns of pixels, n patches, d width.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.pictures.conv import count_rows
from mnemic.encode.stacks import EncoderStack


class MixerEncoder(nn.Module):
    """Embed patches, then mix all patches per channel and all channels per patch, ``depth`` times.

    MLP-Mixer (Tolstikhin et al. 2021, arXiv:2105.01601, equation 1): pre-norm layers with the
    attention ``mlp-mixer``, of ``token_inner`` and ``inner`` hidden units (0: four times their
    input). A patch is known by its row of weights: there are no positions. It is ``patches`` with
    that attention, whose length is here the number of patches.
    """

    def __init__(
        self,
        width: int,
        channels: int = 3,
        side: int = 48,
        *,
        patch: int = 8,
        depth: int = 2,
        token_inner: int = 0,
        inner: int = 0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        rows = count_rows(side, patch, "patch", patch)
        self.width, self.grid, self.num_regions = width, (rows, rows), rows * rows
        self.embed = nn.Conv2d(channels, width, patch, patch)
        attention = {"kind": "mlp-mixer", "length": self.num_regions, "inner": token_inner, "dropout": dropout}
        self.stack = EncoderStack(width, depth=depth, inner=inner, norm="pre", dropout=dropout, attention=attention)

    def forward(self, pictures: Tensor) -> Tensor:
        """Encode pictures as patches: b c y x → b n d."""
        patches = self.embed(pictures).flatten(2).mT
        states: Tensor = self.stack(patches, torch.ones_like(patches[..., 0], dtype=torch.bool))
        return states
