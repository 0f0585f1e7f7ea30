"""Random cross-encoders as Hugging Face folders."""

from pathlib import Path
from typing import Any

import torch

from mnemic.encode import Pretrained, save_encoder
from mnemic.encode.huggingface.families import FAMILIES
from mnemic.encode.huggingface.heads import rename_class_head
from mnemic.encode.huggingface.shape import EncoderShape, build_encoder
from mnemic.respond.classes import ClassHead
from mnemic.text import SubwordTokenizer

SHAPE = EncoderShape(
    vocab=200, width=16, depth=1, heads=2, inner=32, length=24, segments=2, activation="gelu",
    epsilon=1e-12, dropout=0.1, attention_dropout=0.1,
)  # fmt: skip


def write_classifier(folder: Path, tokenizer: SubwordTokenizer, outputs: int = 1, **shape: Any) -> Path:
    """Write a random classifier as a Hugging Face folder."""
    torch.manual_seed(len(folder.name))
    encoder = build_encoder(SHAPE._replace(vocab=len(tokenizer), **shape))
    with torch.no_grad():
        for weight in encoder.parameters():
            weight.mul_(1.5)
        head = ClassHead(16, outputs, pool="first")
        head.out.weight.mul_(10)
    unused = rename_class_head(head.inner, head.out, FAMILIES["bert"])
    save_encoder(folder, Pretrained(encoder, tokenizer, "bert", unused=unused))
    return folder
