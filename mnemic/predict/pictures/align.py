"""Align the words of captions with regions of their pictures.

Shapes: n pictures, c channels, y rows and x columns of pixels, r regions, m words.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from mnemic.models import PictureInputs
from mnemic.models.evaluating import evaluating
from mnemic.predict.captions import to_tensor
from mnemic.predict.methods import check_method
from mnemic.predict.pictures.chain_decoding import decode_chain
from mnemic.predict.results import AlignedWord
from mnemic.recipe import ConfigError
from mnemic.respond.pictures.alignment import multiply_regions

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint


def align_captions(
    checkpoint: "Checkpoint", pictures: Any, captions: Sequence[str], *, beta: float = 0.0
) -> list[list[AlignedWord]]:
    """Find the region of each word of a picture's caption, for several pairs of both."""
    check_method(checkpoint, "align")
    sizes, network = checkpoint.sizes, checkpoint.network
    tensor = to_tensor(pictures, sizes["channels"], sizes["side"]).to(network.device)
    if len(tensor) != len(captions):
        raise ConfigError(f"one caption per picture, not {len(captions)} captions and {len(tensor)} pictures")
    return [align_words(checkpoint, picture, caption, beta) for picture, caption in zip(tensor, captions)]


@torch.no_grad()
def align_words(checkpoint: "Checkpoint", picture: Tensor, caption: str, beta: float) -> list[AlignedWord]:
    """Find the region of each word of a caption, in a picture c y x."""
    network, encoding = checkpoint.network, checkpoint.tokenizer.encode(caption)
    if not encoding.ids:
        raise ConfigError("a caption has at least one word; this one is empty")
    words = torch.tensor([encoding.ids], device=network.device)
    mask = torch.ones_like(words, dtype=torch.bool)
    with evaluating(network):
        output = network(PictureInputs(picture.unsqueeze(0), words, mask))
    products = multiply_regions(output.regions, output.words)  # 1 m r
    regions = decode_chain(products, mask, beta=beta)[0].tolist()
    boxes = list_region_boxes(network.encode).tolist()
    return [
        AlignedWord(caption[start:end], region, tuple(boxes[region]), float(products[0, number, region]))
        for number, ((start, end), region) in enumerate(zip(encoding.offsets, regions))
    ]


def list_region_boxes(encode: Any) -> Tensor:
    """List the corners of an encoder's regions: r 4, x1 y1 x2 y2.

    They are shares of the picture's side. Most encoders have a grid of them; one whose regions are
    no grid has ``region_boxes``.
    """
    boxes: Tensor | None = getattr(encode, "region_boxes", None)
    if boxes is not None:
        return boxes
    num_rows, num_columns = encode.grid
    row, column = torch.meshgrid(torch.arange(num_rows), torch.arange(num_columns), indexing="ij")
    corners = [column / num_columns, row / num_rows, (column + 1) / num_columns, (row + 1) / num_rows]
    return torch.stack(corners, -1).flatten(0, 1)
