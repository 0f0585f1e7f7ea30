"""Make small random models of ``transformers`` and of mnemic, of every family."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import nn

from mnemic.encode.huggingface.shape import EncoderShape

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

SMALL = {
    "vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
    "intermediate_size": 48, "max_position_embeddings": 24,
}  # fmt: skip
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", SMALL),
    "roberta": ("Roberta", SMALL | {"type_vocab_size": 1, "layer_norm_eps": 1e-5}),
    "distilbert": (
        "DistilBert",
        {"vocab_size": 60, "dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48,
         "max_position_embeddings": 24},
    ),
    "electra": ("Electra", SMALL | {"embedding_size": 12}),
    "electra as wide": ("Electra", SMALL | {"embedding_size": 32}),
    "albert": ("Albert", SMALL | {"embedding_size": 12}),
    "xlnet": (
        "XLNet",
        {"vocab_size": 60, "d_model": 32, "n_layer": 3, "n_head": 4, "d_inner": 48, "clamp_len": 6},
    ),
    "albert in groups": (
        "Albert", SMALL | {"embedding_size": 12, "num_hidden_layers": 4, "num_hidden_groups": 2}
    ),
}  # fmt: skip
SHAPE = EncoderShape(
    vocab=60, width=32, depth=3, heads=4, inner=48, length=24, segments=2, activation="gelu",
    epsilon=1e-12, dropout=0.1, attention_dropout=0.1,
)  # fmt: skip
OURS = {
    "bert": SHAPE._replace(epsilon=1e-5, activation="relu"),
    "roberta": SHAPE._replace(segments=1),
    "distilbert": SHAPE._replace(segments=0),
    "electra": SHAPE._replace(narrow=12),
    "albert": SHAPE._replace(narrow=12, depth=4, groups=2, activation="gelu_tanh"),
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def stir(model: nn.Module) -> Any:
    """Randomize all weights, so that a missing norm or bias changes the result."""
    torch.manual_seed(7)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn_like(weight) * 0.3 + (weight.dim() == 1) * 0.1)
    return model.eval()


def make_transformers_model(kind: str, head: str = "Model", **settings: Any) -> Any:
    name, options = MODELS[kind]
    config = getattr(transformers, f"{name}Config")(**options, **settings)
    return stir(getattr(transformers, f"{name}{head}")(config))


def folder_of(model: Any, folder: Path, **options: Any) -> Path:
    model.save_pretrained(folder, **options)
    return folder
