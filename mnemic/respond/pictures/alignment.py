"""Score how well captions fit pictures, from products of their words and regions.

Shapes: k pictures, l captions, m words, n regions, d width.
"""

from typing import Literal

from torch import Tensor

from mnemic.respond.contract import Response

AlignmentScore = Literal["best", "all"]


class AlignmentHead(Response):
    """Sum the products of words and regions (Karpathy and Fei-Fei 2015, section 3.1).

    ``score="best"``: each word counts by the region that fits best, S_kl = Σ_t max_i v_iᵀs_t
    (equation 8). ``"all"``: all pairs that are alike count, Σ_t Σ_i max(0, v_iᵀs_t) (equation 7).

    Where we differ: products are divided by √d, as in attention, so that scores and the margin of
    the loss have the same proportion at any width.
    """

    source = "picture"
    reads_words = True
    methods = ("align",)

    def __init__(self, *, score: AlignmentScore = "best") -> None:
        super().__init__()
        self.score = score

    def forward(self, regions: Tensor, words: Tensor, mask: Tensor) -> Tensor:
        """Score each picture (k n d) with each caption (l m d): k l."""
        products = multiply_regions(regions.unsqueeze(1), words)  # k l m n
        scores = products.amax(-1) if self.score == "best" else products.relu().sum(-1)
        return (scores * mask).sum(-1)


def multiply_regions(regions: Tensor, words: Tensor) -> Tensor:
    """Multiply words (… m d) and regions (… n d) of the same pictures: … m n."""
    products: Tensor = words @ regions.mT * regions.shape[-1] ** -0.5
    return products
