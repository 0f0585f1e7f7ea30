"""Load an encoder and its tokenizer from a Hugging Face folder, without unpickling."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from mnemic.encode.huggingface.families import FAMILIES, Family, huggingface_name
from mnemic.encode.huggingface.shape import build_encoder, count_offset_rows, number_unique_blocks, shape_from_config
from mnemic.encode.huggingface.xlnet import flatten_heads
from mnemic.encode.pooler import Pooler
from mnemic.encode.transformer import TransformerEncoder
from mnemic.files import read_json
from mnemic.text import SubwordTokenizer, load_subword_tokenizer

CONFIG_FILE, WEIGHTS_FILE, INDEX_FILE = ("config.json", "model.safetensors", "model.safetensors.index.json")
PICKLE_FILES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "model.ckpt.index")
FOLDER_HINT = f"; a Hugging Face folder has {CONFIG_FILE} and {WEIGHTS_FILE}"
CONVERT_COMMAND = "AutoModel.from_pretrained(DIR).save_pretrained(DIR)"
POSITION_TABLE = "embeddings.position_embeddings.weight"


class Pretrained(NamedTuple):
    """A pretrained encoder with its tokenizer, pooler and config."""

    encoder: TransformerEncoder
    tokenizer: SubwordTokenizer | None = None
    family: str = "bert"
    pooler: Pooler | None = None
    unused: Mapping[str, Tensor] = {}  # weights of heads, by Hugging Face's names
    config: Mapping[str, Any] = {}  # the original config.json


def load_encoder(folder: str | Path) -> Pretrained:
    """Load a BERT, RoBERTa, DistilBERT, ELECTRA, ALBERT or XLNet folder, as float32.

    It needs config.json and model.safetensors (or its index and shards); the tokenizer comes from
    tokenizer.json or vocab.txt and is None where there is neither. Weights that the encoder does
    not use are in ``unused``. The encoder is in eval mode.

    >>> loaded = mnemic.load_encoder("all-MiniLM-L6-v2")  # a folder
    >>> ids = torch.tensor([loaded.tokenizer.encode("A text of nine tokens.").ids])
    >>> loaded.encoder(ids, torch.ones_like(ids, dtype=torch.bool)).shape
    torch.Size([1, 9, 384])
    """
    folder = Path(folder)
    config = read_json(folder / CONFIG_FILE, hint=FOLDER_HINT)
    shape = shape_from_config(config, folder / CONFIG_FILE)
    family = FAMILIES[config["model_type"]]
    weights = normalize_names(read_weights(folder), family)
    if shape.is_two_stream:
        weights = flatten_heads(weights)
    if POSITION_TABLE in weights:
        weights[POSITION_TABLE] = weights[POSITION_TABLE][count_offset_rows(config, family) :]
    with torch.device("meta"):  # shapes without values: nothing is believed before it is compared
        check_weights(build_encoder(shape), weights, family, folder)
    encoder = build_encoder(shape)
    copy_weights(encoder, weights, family)
    pooler = pop_pooler(weights, family, shape.width)
    tokenizer = load_subword_tokenizer(folder)
    if tokenizer is not None and len(tokenizer) > shape.vocab:
        raise ValueError(
            f"the tokenizer in {folder} has {len(tokenizer)} tokens, the weights have rows for "
            f"{shape.vocab}; they do not belong together"
        )
    return Pretrained(encoder.eval(), tokenizer, config["model_type"], pooler, weights, config)


def check_weights(encoder: TransformerEncoder, weights: Mapping[str, Tensor], family: Family, folder: Path) -> None:
    """Raise a ValueError unless the folder has all weights of the encoder, in its shapes."""
    numbers = number_unique_blocks(encoder)
    for name, weight in encoder.named_parameters():
        huggingface_key = huggingface_name(name, family, numbers)
        if huggingface_key not in weights:
            raise ValueError(
                f"{folder} has no weight {huggingface_key!r}, which its {CONFIG_FILE} asks "
                f"for; it has {len(weights)} others: a model of another family, or cut short"
            )
        if (shape := tuple(weights[huggingface_key].shape)) != tuple(weight.shape):
            raise ValueError(
                f"{folder}: {huggingface_key!r} has shape {shape}, its {CONFIG_FILE} asks for "
                f"{tuple(weight.shape)}; the two files do not belong together"
            )


@torch.no_grad()
def copy_weights(encoder: TransformerEncoder, weights: dict[str, Tensor], family: Family) -> None:
    """Move weights, which ``check_weights`` has seen, into the encoder."""
    numbers = number_unique_blocks(encoder)
    for name, weight in encoder.named_parameters():
        weight.copy_(weights.pop(huggingface_name(name, family, numbers)))


def pop_pooler(weights: dict[str, Tensor], family: Family, width: int) -> Pooler | None:
    """Build the pooler from its weights, if the family and the folder have one."""
    names = [f"{family.pooler}.weight", f"{family.pooler}.bias"]
    if family.pooler is None or not weights.keys() >= set(names):
        return None
    pooler = Pooler(width)
    pooler.dense.load_state_dict({name.rpartition(".")[2]: weights.pop(name) for name in names})
    return pooler.eval()


def normalize_names(weights: Mapping[str, Tensor], family: Family) -> dict[str, Tensor]:
    """Rename weights to current names: no model prefix, no TensorFlow names of layer norm."""
    renamed = {}
    for name, weight in weights.items():
        name = name.removeprefix(f"{family.prefix}.")
        name = name.replace("LayerNorm.gamma", "LayerNorm.weight")
        name = name.replace("LayerNorm.beta", "LayerNorm.bias")
        if name != "embeddings.position_ids":  # 0, 1, 2 …, stored by old versions
            renamed[name] = weight
    return renamed


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read all weights, from one file or from the shards that an index lists."""
    if (folder / WEIGHTS_FILE).is_file():
        return read_safetensors(folder / WEIGHTS_FILE)
    if not (folder / INDEX_FILE).is_file():
        pickled = [name for name in PICKLE_FILES if (folder / name).is_file()]
        raise ValueError(
            f"{folder} has {pickled[0]} but no {WEIGHTS_FILE}; mnemic opens no pickled weights, which can run a "
            f"stranger's code: where you trust them, convert them by {CONVERT_COMMAND}"
            if pickled
            else f"{folder} has no {WEIGHTS_FILE} and no {INDEX_FILE}"
        )
    index = read_json(folder / INDEX_FILE).get("weight_map")
    if not isinstance(index, dict) or not all(isinstance(file_name, str) for file_name in index.values()):
        raise ValueError(f"{folder / INDEX_FILE} has no 'weight_map' of names and files")
    weights: dict[str, Tensor] = {}
    for file_name in sorted({Path(file_name).name for file_name in index.values()}):
        weights |= read_safetensors(folder / file_name)
    return weights


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """Read the weights of one safetensors file."""
    if not path.is_file():
        raise ValueError(f"{path} is missing; copy the whole folder again")
    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is no valid safetensors file: {error}") from None
