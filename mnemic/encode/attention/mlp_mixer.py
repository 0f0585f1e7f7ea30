"""Token mixing by a network of two layers over positions, in the place of attention.

Shapes: b batch, n tokens, d width.
"""

from torch import Tensor, nn

from mnemic.encode.masks import find_visible_keys
from mnemic.recipe import ConfigError


class TokenMixing(nn.Module):
    """Mix the tokens of each channel by W₂ gelu(W₁ xᵀ) (MLP-Mixer; Tolstikhin et al. 2021).

    In a block with ``norm="pre"`` it is equation 1 of arXiv:2105.01601. ``inner`` is the number of
    hidden units, 0 for four times ``length``, as in the network of feed-forward layers alone
    (Melas-Kyriazi 2021, arXiv:2105.02723). All channels share the weights; each position has its
    own, for at most ``length`` positions. Weights do not depend on the text, so they are no
    evidence, and a position depends on all others: no decoder can use it.

    Where we differ: texts have different lengths. Padding counts as zeros, after the norm too, so
    that a shorter text uses the first columns of W₁ and the first rows of W₂. W₂ has no bias: it
    would be the same in all channels, which the next layer norm takes out again.
    """

    def __init__(self, *, length: int = 512, inner: int = 0, dropout: float = 0.0) -> None:
        super().__init__()
        self.max_length, self.dropout = length, dropout
        self.widen = nn.Linear(length, inner or 4 * length)
        self.narrow = nn.Linear(inner or 4 * length, length, bias=False)

    def forward(self, x: Tensor, context: Tensor, mask: Tensor) -> Tensor:
        """Mix the tokens of ``x`` b n d → b n d, zeros at padding.

        ``context`` is ``x``; ``mask`` is broadcastable to b h n n and the same for all queries.
        """
        length = x.shape[1]
        if length > self.max_length:
            raise ConfigError(
                f"a text has {length} positions, and mlp-mixer weights for {self.max_length}: set its length, "
                "or cut the text into windows"
            )
        is_real = find_visible_keys(mask, length).unsqueeze(-1)  # b n 1
        columns = x.masked_fill(~is_real, 0.0).mT  # b d n
        hidden = nn.functional.gelu(nn.functional.linear(columns, self.widen.weight[:, :length], self.widen.bias))
        hidden = nn.functional.dropout(hidden, self.dropout, training=self.training)
        mixed = nn.functional.linear(hidden, self.narrow.weight[:length])  # b d n
        return mixed.mT * is_real
