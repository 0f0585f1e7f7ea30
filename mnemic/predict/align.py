"""Align the words of captions with regions of their pictures.

Shapes: b pictures, c channels, y rows and x columns of pixels, n regions, m words.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemic.models.evaluating import evaluating
from mnemic.models.picture_inputs import PictureInputs
from mnemic.predict.chain_decoding import decode_chain
from mnemic.respond.pictures.alignment import multiply_regions
from mnemic.text import Tokenizer


class AlignedWord(NamedTuple):
    """A word of a caption, and the region that it is about."""

    word: str
    region: int  # its number
    box: tuple[float, float, float, float]  # x1 y1 x2 y2, shares of the picture's side
    score: float  # the product of word and region


@torch.no_grad()
def align_words(
    network: Any, tokenizer: Tokenizer, picture: Tensor, caption: str, *, beta: float = 0.0
) -> list[AlignedWord]:
    """Align each word of a caption with a region of a picture (c y x, from 0 to 1).

    With a ``beta`` above 0 neighbors prefer the same region (see ``decode_chain``).
    """
    encoding = tokenizer.encode(caption)
    words = torch.tensor([encoding.ids], device=network.device)
    mask = torch.ones_like(words, dtype=torch.bool)
    with evaluating(network):
        output = network(PictureInputs(picture.unsqueeze(0).to(words.device), words, mask))
    products = multiply_regions(output.regions, output.words)  # 1 m n
    regions = decode_chain(products, mask, beta=beta)[0].tolist()
    boxes = list_region_boxes(network.encode).tolist()
    names = [caption[start:end] for start, end in encoding.offsets]
    return [
        AlignedWord(name, region, tuple(boxes[region]), float(products[0, number, region]))
        for number, (name, region) in enumerate(zip(names, regions))
    ]


def list_region_boxes(encode: Any) -> Tensor:
    """List the corners of an encoder's regions as shares of the picture: n 4, x1 y1 x2 y2.

    Most encoders have a grid of them; one whose regions are no grid has ``region_boxes``.
    """
    boxes: Tensor | None = getattr(encode, "region_boxes", None)
    if boxes is not None:
        return boxes
    num_rows, num_columns = encode.grid
    row, column = torch.meshgrid(torch.arange(num_rows), torch.arange(num_columns), indexing="ij")
    corners = [column / num_columns, row / num_rows, (column + 1) / num_columns, (row + 1) / num_rows]
    return torch.stack(corners, -1).flatten(0, 1)
