"""A network that compares regions of pictures with words of captions.

Shapes: b pictures and captions, m words, n regions, d width.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemic.models.contract import BaseNetwork
from mnemic.models.picture_inputs import PictureInputs
from mnemic.respond.pictures.alignment import AlignmentHead


class AlignmentOutput(NamedTuple):
    """The score of each picture with each caption, and the vectors it comes from."""

    logits: Tensor  # b b, pictures × captions
    regions: Tensor  # b n d
    words: Tensor  # b m d, zeros at padding


class AlignmentNetwork(BaseNetwork):
    """Encode regions (I) and words in one space, and score all pairs (R).

    Karpathy and Fei-Fei 2015 (arXiv:1412.2306, section 3.1). There is no memory: each word finds
    its region by itself, or with its neighbors (``mnemic.predict.pictures.align``).
    """

    def __init__(self, encode: Any, ask: Any, respond: AlignmentHead) -> None:
        super().__init__()
        self.encode, self.ask, self.respond = encode, ask, respond

    def dummy_inputs(self, sizes: Mapping[str, Any]) -> PictureInputs:
        """Make two pictures with captions of three words."""
        words = torch.ones(2, min(3, sizes["max_length"]), dtype=torch.long)
        return PictureInputs(torch.zeros(2, sizes["channels"], sizes["side"], sizes["side"]), words, words > 0)

    def forward(self, inputs: PictureInputs) -> AlignmentOutput:
        """Score each picture of a batch with each of its captions."""
        assert inputs.words is not None
        assert inputs.mask is not None
        regions, words = self.encode(inputs.pictures), self.ask(inputs.words, inputs.mask)
        scores = self.respond(regions.float(), words.float(), inputs.mask)
        return AlignmentOutput(scores, regions, words)
