"""The shapes of XLNet's weights in a Hugging Face folder.

Shapes: d width, h heads, c channels of one head.
"""

from collections.abc import Mapping

from torch import Tensor

from mnemic.encode.huggingface.families import XLNET_ATTENTION

HEAD_VECTORS = ("r_w_bias", "r_r_bias", "r_s_bias")
PROJECTIONS = ("q", "k", "v", "r")


def flatten_heads(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give XLNet's weights mnemic's shapes: all heads in one matrix."""
    return {name: flatten_weight(name.rpartition(".")[2], weight) for name, weight in weights.items()}


def flatten_weight(kind: str, weight: Tensor) -> Tensor:
    """Give one weight mnemic's shape, by the last word of its name."""
    if kind in PROJECTIONS and weight.dim() == 3:
        return weight.flatten(1).T  # d h c -> hc d
    if kind == "o" and weight.dim() == 3:
        return weight.flatten(1)  # d h c -> d hc
    if kind in HEAD_VECTORS:
        return weight.unsqueeze(1)  # h c -> h 1 c
    return weight.flatten() if kind == "mask_emb" else weight  # 1 1 d -> d


def split_heads(weights: Mapping[str, Tensor], heads: int) -> dict[str, Tensor]:
    """Undo ``flatten_heads``."""
    return {name: split_weight(name, weight, heads).contiguous() for name, weight in weights.items()}


def split_weight(name: str, weight: Tensor, heads: int) -> Tensor:
    """Give one weight Hugging Face's shape, by its name."""
    kind = name.rpartition(".")[2]
    if XLNET_ATTENTION in name and kind in PROJECTIONS:
        return weight.T.unflatten(1, (heads, -1))
    if XLNET_ATTENTION in name and kind == "o":
        return weight.unflatten(1, (heads, -1))
    if kind in HEAD_VECTORS:
        return weight.squeeze(1)
    return weight.view(1, 1, -1) if kind == "mask_emb" else weight
