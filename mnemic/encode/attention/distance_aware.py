"""Distance-aware attention: scores are rescaled by a learned function of the distance.

Shapes: b batch, n queries, m context positions, h heads, c channels of one head.
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from mnemic.encode.attention.distances import DistanceAttention

DistanceFunction = Literal["learned", "clip", "linear", "exponent", "sigmoid"]
MAX_EXPONENT = 10.0  # of ``exponent``, which has no bound: times a score it still fits half precision

FIXED_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {  # of weighted distances; 1 at 0
    "clip": lambda distances: (1 + distances).clamp(0, 2),
    "linear": lambda distances: 1 + distances,
    "exponent": lambda distances: distances.clamp(max=MAX_EXPONENT).exp(),
    "sigmoid": lambda distances: 2 * distances.sigmoid(),
}


class DistanceAwareAttention(DistanceAttention):
    """Attention that knows real distances (DA-Transformer; Wu et al. 2021, equations 4 to 6).

    The weights are softmax(ReLU(Q Kᵀ) ⊙ f / √c). f is a function of the weighted distance
    R = w · abs(i - j): (1 + exp(v)) / (1 + exp(v - R)), with one w and one v per head. A head with
    w < 0 looks at what is near. It takes no position embeddings. The distance has no direction:
    without a causal mask a text and its mirror image give mirrored states.

    ``function`` is f: ``learned`` is the paper's. The others are what it compares with: 1 + R
    (``linear``), the same between 0 and 2 (``clip``), exp(R) up to exp(10) (``exponent``), and
    2 / (1 + exp(-R)) (``sigmoid``); they have no v.

    Where we differ: the paper does not say where w and v start, nor the constants of the other
    functions. Here the heads' w are evenly spaced from -0.1 to 0.1, v is 0, and each function is 1
    at distance 0. A row without any visible position comes out as zeros.
    """

    def __init__(
        self, width: int, *, heads: int = 4, dropout: float = 0.0, function: DistanceFunction = "learned"
    ) -> None:
        super().__init__(width, heads=heads, dropout=dropout)
        self.weight = nn.Parameter(torch.linspace(-0.1, 0.1, heads))
        self.shape = nn.Parameter(torch.zeros(heads)) if function == "learned" else None
        self.function = function

    def compute_scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """Compute ReLU(Q Kᵀ) ⊙ f / √c, b h n m.

        Zeros of the ReLU are scores like others; hidden positions become -inf afterwards.
        """
        factors = self.compute_factors(query.shape[-2], keys.shape[-2]).to(query.dtype)
        return (query @ keys.mT).relu() * factors * query.shape[-1] ** -0.5

    def compute_factors(self, num_queries: int, num_context: int) -> Tensor:
        """Compute f for all queries and context positions, h n m.

        One value per distance is computed, and looked up.
        """
        num_distances = max(num_context + num_queries - 1, 0)
        distances = (num_context - 1 - torch.arange(num_distances, device=self.weight.device)).abs()  # m+n-1
        weighted = self.weight.unsqueeze(1) * distances  # h m+n-1
        if self.shape is None:
            factors = FIXED_FUNCTIONS[self.function](weighted)
        else:
            factors = rescale_distances(weighted, self.shape.unsqueeze(1))
        return factors.unfold(-1, num_context, 1).flip(-2)


def rescale_distances(distances: Tensor, shape: Tensor) -> Tensor:
    """Rescale weighted distances R to (1 + exp(v)) / (1 + exp(v - R)), without overflow.

    It is 1 at 0, goes to 0 below and to 1 + exp(v) above; ``shape`` is v.
    """
    softplus = nn.functional.softplus
    return (softplus(shape) - softplus(shape - distances)).exp()
