"""Save an encoder as a folder that ``AutoModel`` and ``AutoTokenizer`` can load."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from mnemic.encode.huggingface.families import FAMILIES, huggingface_name
from mnemic.encode.huggingface.read import CONFIG_FILE, POSITION_TABLE, WEIGHTS_FILE, Pretrained
from mnemic.encode.huggingface.shape import (
    EncoderShape,
    config_from_shape,
    count_offset_rows,
    iterate_unique_weights,
    number_unique_blocks,
    shape_of_encoder,
)
from mnemic.encode.huggingface.xlnet import split_heads
from mnemic.encode.transformer import TransformerEncoder
from mnemic.files import write_text
from mnemic.recipe import join_words
from mnemic.text import SubwordTokenizer

SEGMENT_TABLE = "embeddings.token_type_embeddings.weight"
DISTILBERT_EPSILON = 1e-12  # of DistilBERT's norms, which its config cannot change
ROLE_NAMES = {"pad": "pad", "unknown": "unk", "cls": "cls", "sep": "sep", "mask": "mask"}


def save_encoder(folder: str | Path, pretrained: Pretrained, *, readme: str = "") -> None:
    """Save config.json, model.safetensors and tokenizer.json to a new or empty folder.

    An encoder of your own is written as a BERT: ``save_encoder(folder, Pretrained(encoder,
    tokenizer))``; ``family`` names another family with the same architecture. ``readme`` is the
    text of a README.md beside them.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is there and not empty; give the name of a new folder")
    name, shape = pretrained.family, shape_of_encoder(pretrained.encoder)
    if name not in FAMILIES:
        raise ValueError(f"no family {name!r}; mnemic writes {join_words(FAMILIES)}")
    if missing := find_missing_features(name, shape):
        raise ValueError(f"{name} has no {join_words(missing)}; choose another of {join_words(FAMILIES)}")
    config = build_config(pretrained, shape)
    weights = collect_weights(pretrained, shape, count_offset_rows(config, FAMILIES[name]))
    temporary = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    write_json(temporary / CONFIG_FILE, config)
    (temporary / WEIGHTS_FILE).write_bytes(save(weights, metadata={"format": "pt"}))
    if pretrained.tokenizer is not None:
        pretrained.tokenizer.save(temporary)
        write_json(temporary / "tokenizer_config.json", build_tokenizer_config(pretrained.tokenizer, shape))
    if readme:
        write_text(temporary / "README.md", readme)
    if folder.exists():
        folder.rmdir()
    os.rename(temporary, folder)


def find_simplest_family(encoder: TransformerEncoder) -> str:
    """Return the first family that can hold the encoder."""
    for name in FAMILIES:
        if not find_missing_features(name, shape_of_encoder(encoder)):
            return name
    raise ValueError(f"none of {join_words(FAMILIES)} holds this encoder; see `mnemic export --help`")


def find_missing_features(name: str, shape: EncoderShape) -> list[str]:
    """List the features that the encoder has but the family lacks."""
    sizes = FAMILIES[name].sizes
    features = {
        "factorised embeddings": not shape.narrow or "narrow" in sizes,
        "embeddings of the full width": bool(shape.narrow) or name != "albert",
        "shared layers": not shape.groups or "groups" in sizes,
        "segments": shape.is_two_stream or not shape.segments or "segments" in sizes,
        "two streams": not shape.is_two_stream or name == "xlnet",
        "absolute positions": shape.is_two_stream or name != "xlnet",
        f"epsilon of {shape.epsilon:g}": shape.epsilon == DISTILBERT_EPSILON or "epsilon" in sizes,
    }
    return [feature for feature, is_available in features.items() if not is_available]


def build_config(pretrained: Pretrained, shape: EncoderShape) -> dict[str, Any]:
    """Update the original config.json for the encoder."""
    family, name = FAMILIES[pretrained.family], pretrained.family
    config = dict(pretrained.config) if pretrained.config.get("model_type") == name else {}
    pad_id = config.get("pad_token_id")
    if pad_id is None:
        pad_id = family.pad_id if pretrained.tokenizer is None else pretrained.tokenizer.pad
    if not pretrained.unused or "architectures" not in config:
        config["architectures"] = [family.architecture]
    config.pop("torch_dtype", None)  # older versions' name of dtype
    return config | config_from_shape(shape, name, pad_id) | {"dtype": "float32"}


def collect_weights(pretrained: Pretrained, shape: EncoderShape, offset_rows: int) -> dict[str, Tensor]:
    """Collect all weights under Hugging Face's names.

    If there are weights of a head, those of the encoder get the family's prefix.
    """
    family, encoder = FAMILIES[pretrained.family], pretrained.encoder
    numbers = number_unique_blocks(encoder)
    trunk = {
        huggingface_name(name, family, numbers): weight.detach().to("cpu", torch.float32, copy=True).contiguous()
        for name, weight in iterate_unique_weights(encoder)
        if weight is not encoder.embeddings.tasks
    }
    if family.has_positions:
        table = trunk[POSITION_TABLE]
        trunk[POSITION_TABLE] = torch.cat([table.new_zeros(offset_rows, table.shape[1]), table])
        if not encoder.segments and "segments" in family.sizes:
            trunk[SEGMENT_TABLE] = table.new_zeros(1, table.shape[1])
        if encoder.num_tasks:  # all later inputs have the first one
            trunk[SEGMENT_TABLE] += encoder.embeddings.tasks[0].detach().to("cpu", torch.float32)
    if shape.is_two_stream:
        trunk = split_heads(trunk, shape.heads)
    if pretrained.pooler is not None and family.pooler:
        for name, weight in pretrained.pooler.dense.named_parameters():
            trunk[f"{family.pooler}.{name}"] = weight.detach().cpu().float().contiguous()
    if not pretrained.unused:
        return trunk
    heads = {name: weight.detach().cpu().contiguous() for name, weight in pretrained.unused.items()}
    return heads | {f"{family.prefix}.{name}": weight for name, weight in trunk.items()}


def build_tokenizer_config(tokenizer: SubwordTokenizer, shape: EncoderShape) -> dict[str, Any]:
    """Build tokenizer_config.json: the roles of special tokens, which tokenizer.json lacks."""
    names = {huggingface_role: tokenizer.name_of(token_role) for token_role, huggingface_role in ROLE_NAMES.items()}
    segments = ["token_type_ids"] * (shape.segments > 1)  # else a pair would have none
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": shape.length,
        "model_input_names": ["input_ids", *segments, "attention_mask"],
        **{f"{role}_token": name for role, name in names.items() if name is not None},
    }


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON."""
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
