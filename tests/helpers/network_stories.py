"""Encode a few generated stories, and make small networks that answer them."""

from typing import Any

import torch
from torch import Tensor

from mnemic.data.babi.batches import build_tokenizer, encode_examples
from mnemic.data.babi.dataset import generate_examples
from mnemic.models import MemoryNetwork, build_model

SLOTS = 6
EXAMPLES = [
    *generate_examples(1, 12, 0),
    *generate_examples(5, 8, 0),
    *generate_examples(8, 6, 0),
]  # 2 to 20 sentences and more
WORDS = build_tokenizer(EXAMPLES)
STORIES = encode_examples(EXAMPLES, WORDS)
SIZES = {"vocab": len(WORDS), "max_length": STORIES.texts.shape[1] + 1}


def model(tied: bool = True, slots: int = SLOTS, **memory: Any) -> dict[str, Any]:
    return {
        "width": 8,
        "encode": {"kind": "bag"},
        "memory": {"kind": "memn2n", "slots": slots, **memory},
        "respond": {"kind": "word", "tied": tied},
    }


def network_of(seed: int = 0, **options: Any) -> MemoryNetwork:
    torch.manual_seed(seed)
    network = build_model(model(**options), SIZES).eval()
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(5)
    return network


def rows(*numbers: int) -> Tensor:
    return torch.tensor(numbers)


def same(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)
