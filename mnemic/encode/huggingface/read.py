"""A Hugging Face folder into an encoder and its tokenizer. Nothing is unpickled."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from mnemic.encode.huggingface.families import FAMILIES, Family, their_name
from mnemic.encode.huggingface.shape import blocks_of, encoder_of, rows_before, shape_of_config
from mnemic.encode.pooler import Pooler
from mnemic.encode.transformer import TransformerEncoder
from mnemic.text import Subwords, load_subwords

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "model.ckpt.index")
AGAIN = "AutoModel.from_pretrained(DIR).save_pretrained(DIR)"
POSITIONS = "embeddings.position_embeddings.weight"


class Pretrained(NamedTuple):
    """An encoder and all else that its folder held; what ``save_encoder`` writes."""

    encoder: TransformerEncoder
    tokenizer: Subwords | None = None
    family: str = "bert"
    pooler: Pooler | None = None
    unused: Mapping[str, Tensor] = {}  # weights of heads, by Hugging Face's names
    config: Mapping[str, Any] = {}  # config.json as it was


def load_encoder(folder: str | Path) -> Pretrained:
    """Read a folder of BERT, RoBERTa, DistilBERT, ELECTRA or ALBERT; weights become float32.

    It needs config.json and model.safetensors (or its index and parts); the tokenizer comes from
    tokenizer.json or vocab.txt and is None where there is neither. What the encoder does not use
    is in ``unused``. The encoder is in eval mode.
    """
    folder = Path(folder)
    config = read_json(folder / CONFIG)
    shape = shape_of_config(config, folder / CONFIG)
    family = FAMILIES[config["model_type"]]
    weights = plain_names(read_weights(folder), family)
    if POSITIONS in weights:
        weights[POSITIONS] = weights[POSITIONS][rows_before(config, family) :]
    encoder = encoder_of(shape)
    fill(encoder, weights, family, folder)
    pooler = take_pooler(weights, family, shape.width)
    tokenizer = load_subwords(folder)
    if tokenizer is not None and len(tokenizer) > shape.vocab:
        raise ValueError(
            f"the tokenizer in {folder} has {len(tokenizer)} tokens, the weights have rows for "
            f"{shape.vocab}; they do not belong together"
        )
    return Pretrained(encoder.eval(), tokenizer, config["model_type"], pooler, weights, config)


def fill(
    encoder: TransformerEncoder, weights: dict[str, Tensor], family: Family, folder: Path
) -> None:
    """Move weights from the folder's names into the encoder; each must be there and fit."""
    numbers = blocks_of(encoder)
    with torch.no_grad():
        for ours, weight in encoder.named_parameters():
            theirs = their_name(ours, family, numbers)
            if theirs not in weights:
                raise ValueError(
                    f"{folder} has no weight {theirs!r}, which its {CONFIG} asks for; it has "
                    f"{len(weights)} others: a model of another family, or cut short"
                )
            given = weights.pop(theirs)
            if given.shape != weight.shape:
                raise ValueError(
                    f"{folder}: {theirs!r} has shape {tuple(given.shape)}, its {CONFIG} asks for "
                    f"{tuple(weight.shape)}; the two files do not belong together"
                )
            weight.copy_(given)


def take_pooler(weights: dict[str, Tensor], family: Family, width: int) -> Pooler | None:
    """The pooler, where the family and the folder have one."""
    names = [f"{family.pooler}.weight", f"{family.pooler}.bias"]
    if family.pooler is None or not weights.keys() >= set(names):
        return None
    pooler = Pooler(width)
    with torch.no_grad():
        for name, weight in zip(names, (pooler.dense.weight, pooler.dense.bias)):
            weight.copy_(weights.pop(name))
    return pooler.eval()


def plain_names(weights: Mapping[str, Tensor], family: Family) -> dict[str, Tensor]:
    """Names as in the newest files: without the prefix, without TensorFlow's words for a norm."""
    found = {}
    for name, weight in weights.items():
        name = name.removeprefix(f"{family.prefix}.")
        name = name.replace("LayerNorm.gamma", "LayerNorm.weight")
        name = name.replace("LayerNorm.beta", "LayerNorm.bias")
        if name != "embeddings.position_ids":  # 0, 1, 2 …, which old files hold
            found[name] = weight
    return found


def read_weights(folder: Path) -> dict[str, Tensor]:
    """All weights, from one file or from the parts that an index names."""
    if (folder / WEIGHTS).is_file():
        return read_part(folder / WEIGHTS)
    if not (folder / INDEX).is_file():
        raise ValueError(no_weights(folder))
    index = read_json(folder / INDEX).get("weight_map")
    if not isinstance(index, dict) or not all(isinstance(part, str) for part in index.values()):
        raise ValueError(f"{folder / INDEX} has no 'weight_map' of names and files")
    found: dict[str, Tensor] = {}
    for part in sorted({Path(part).name for part in index.values()}):
        found |= read_part(folder / part)
    return found


def read_part(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise ValueError(f"{path} is missing; copy the whole folder again")
    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is no valid safetensors file: {error}") from None


def no_weights(folder: Path) -> str:
    pickled = [name for name in PICKLED if (folder / name).is_file()]
    if pickled:
        return (
            f"{folder} has {pickled[0]} but no {WEIGHTS}; mnemic opens no pickled weights, which "
            f"can run a stranger's code: where you trust them, convert them by {AGAIN}"
        )
    return f"{folder} has no {WEIGHTS} and no {INDEX}"


def read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ValueError(f"{path} is missing; a Hugging Face folder has {CONFIG} and {WEIGHTS}")
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path} holds a {type(value).__name__}; expected a JSON object")
    return value
