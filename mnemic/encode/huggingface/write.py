"""An encoder into a folder that ``AutoModel.from_pretrained`` and ``AutoTokenizer`` read."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from mnemic.encode.huggingface.families import FAMILIES, Family, their_name
from mnemic.encode.huggingface.read import CONFIG, POSITIONS, WEIGHTS, Pretrained
from mnemic.encode.huggingface.shape import Shape, blocks_of, config_of_shape, rows_before, shape_of
from mnemic.encode.transformer import TransformerEncoder
from mnemic.recipe import listed
from mnemic.text import Subwords

SEGMENTS = "embeddings.token_type_embeddings.weight"
EPSILON = 1e-12  # of DistilBERT's norms, which its config cannot change
ROLES = {"pad": "pad", "unknown": "unk", "cls": "cls", "sep": "sep", "mask": "mask"}


def save_encoder(folder: str | Path, pretrained: Pretrained) -> None:
    """Write config.json, model.safetensors and tokenizer.json; the folder must be new or empty.

    An encoder of yours is written as a BERT: ``save_encoder(folder, Pretrained(encoder,
    tokenizer))``; ``family`` names another that has the same parts.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is there and not empty; give the name of a new folder")
    family, shape = fitting(pretrained)
    config = config_for(pretrained, shape)
    weights = weights_for(pretrained, shape, rows_before(config, family))
    beside = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    write_json(beside / CONFIG, config)
    (beside / WEIGHTS).write_bytes(save(weights, metadata={"format": "pt"}))
    if pretrained.tokenizer is not None:
        pretrained.tokenizer.save(beside)
        write_json(beside / "tokenizer_config.json", tokenizer_config(pretrained.tokenizer, shape))
    if folder.exists():
        folder.rmdir()
    os.rename(beside, folder)


def simplest_family(encoder: TransformerEncoder) -> str:
    """The first family that can hold the encoder."""
    for name in FAMILIES:
        if not lacking(name, shape_of(encoder)):
            return name
    raise ValueError(f"none of {listed(FAMILIES)} holds this encoder; see `mnemic export --help`")


def fitting(pretrained: Pretrained) -> tuple[Family, Shape]:
    """The family and the shape, if the one can hold the other."""
    name, shape = pretrained.family, shape_of(pretrained.encoder)
    if name not in FAMILIES:
        raise ValueError(f"no family {name!r}; mnemic writes {listed(FAMILIES)}")
    if wrong := lacking(name, shape):
        raise ValueError(f"{name} has no {listed(wrong)}; choose another of {listed(FAMILIES)}")
    return FAMILIES[name], shape


def lacking(name: str, shape: Shape) -> list[str]:
    """What the family does not have, but the encoder does."""
    sizes = FAMILIES[name].sizes
    able = {
        "factorised embeddings": not shape.narrow or "narrow" in sizes,
        "embeddings of the full width": bool(shape.narrow) or name != "albert",
        "shared layers": not shape.groups or "groups" in sizes,
        "segments": not shape.segments or "segments" in sizes,
        f"epsilon of {shape.epsilon:g}": shape.epsilon == EPSILON or "epsilon" in sizes,
    }
    return [part for part, there in able.items() if not there]


def config_for(pretrained: Pretrained, shape: Shape) -> dict[str, Any]:
    """What was in config.json, brought up to date."""
    family, name = FAMILIES[pretrained.family], pretrained.family
    old = dict(pretrained.config) if pretrained.config.get("model_type") == name else {}
    pad = old.get("pad_token_id")
    if pad is None:
        pad = family.pad if pretrained.tokenizer is None else pretrained.tokenizer.pad
    if not pretrained.unused or "architectures" not in old:
        old["architectures"] = [family.architecture]
    old.pop("torch_dtype", None)  # what older versions call it
    return old | config_of_shape(shape, name, pad) | {"dtype": "float32"}


def weights_for(pretrained: Pretrained, shape: Shape, before: int) -> dict[str, Tensor]:
    """Every weight under Hugging Face's name; with a head's beside them, the trunk's prefixed."""
    family, encoder = FAMILIES[pretrained.family], pretrained.encoder
    numbers = blocks_of(encoder)
    trunk = {
        their_name(name, family, numbers): weight.detach().cpu().float().contiguous()
        for name, weight in encoder.named_parameters()
    }
    table = trunk[POSITIONS]
    trunk[POSITIONS] = torch.cat([table.new_zeros(before, table.shape[1]), table])
    if not shape.segments and "segments" in family.sizes:
        trunk[SEGMENTS] = table.new_zeros(1, table.shape[1])
    if pretrained.pooler is not None and family.pooler:
        for name, weight in pretrained.pooler.dense.named_parameters():
            trunk[f"{family.pooler}.{name}"] = weight.detach().cpu().float().contiguous()
    if not pretrained.unused:
        return trunk
    heads = {name: weight.detach().cpu().contiguous() for name, weight in pretrained.unused.items()}
    return heads | {f"{family.prefix}.{name}": weight for name, weight in trunk.items()}


def tokenizer_config(tokenizer: Subwords, shape: Shape) -> dict[str, Any]:
    """The tokens that a network knows by their role, which tokenizer.json does not name."""
    names = {theirs: tokenizer.name_of(ours) for ours, theirs in ROLES.items()}
    segments = ["token_type_ids"] * (shape.segments > 1)  # else a pair would come without them
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": shape.length,
        "model_input_names": ["input_ids", *segments, "attention_mask"],
        **{f"{role}_token": name for role, name in names.items() if name is not None},
    }


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
