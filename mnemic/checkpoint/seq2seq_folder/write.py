"""Save an encoder–decoder as a BART or T5 of Hugging Face."""

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import nn

from mnemic.checkpoint.folder import Checkpoint, weights_of
from mnemic.checkpoint.seq2seq_folder.names import convert_to_huggingface
from mnemic.checkpoint.seq2seq_folder.read import STARTS
from mnemic.checkpoint.seq2seq_folder.shape import Seq2SeqShape, build_config, describe_network, model_options
from mnemic.encode.huggingface.read import CONFIG_FILE, WEIGHTS_FILE
from mnemic.encode.huggingface.write import ROLE_NAMES, write_json
from mnemic.models import build_model, build_on_meta
from mnemic.recipe import join_words
from mnemic.text import SubwordTokenizer

IGNORED_FACTS = {"training", "fused", "p", "dropout", "max_length"}  # which change no score
MAX_NAMES = 4  # in an error


def save_seq2seq(folder: str | Path, checkpoint: Checkpoint, *, family: str | None = None) -> Seq2SeqShape:
    """Save config.json, model.safetensors and tokenizer.json to a new or empty folder.

    It returns the shape. ValueError if neither BART nor T5 is like the network, or not the
    ``family``.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is there and not empty; give the name of a new folder")
    shape, tokenizer = find_shape(checkpoint.network), checkpoint.tokenizer
    if family not in (None, shape.kind):
        raise ValueError(f"this network is no {family}, but like a {shape.kind}: leave out the family")
    config = build_config(shape)
    temporary = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    if isinstance(tokenizer, SubwordTokenizer):
        start = checkpoint.recipe.get("data", {}).get("start", STARTS[shape.kind])
        config |= list_special_ids(tokenizer, start)
        tokenizer.save(temporary)
        names = {key: tokenizer.name_of(role) for role, key in ROLE_NAMES.items()}
        write_json(
            temporary / "tokenizer_config.json",
            {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": shape.length}
            | {"model_input_names": ["input_ids", "attention_mask"]}
            | {f"{role}_token": name for role, name in names.items() if name is not None},
        )
    write_json(temporary / CONFIG_FILE, config | {"is_encoder_decoder": True, "dtype": "float32"})
    weights = convert_to_huggingface(weights_of(checkpoint.network), shape)
    (temporary / WEIGHTS_FILE).write_bytes(save(weights, metadata={"format": "pt"}))
    if folder.exists():
        folder.rmdir()
    os.rename(temporary, folder)
    return shape


def list_special_ids(tokenizer: SubwordTokenizer, start: str) -> dict[str, int]:
    """List the ids of special tokens by the keys of a config.json."""
    ids = {"pad_token_id": tokenizer.pad, "eos_token_id": tokenizer.sep}
    if tokenizer.name_of("cls") is not None:
        ids["bos_token_id"] = tokenizer.cls
    start_ids = {"cls": ids.get("bos_token_id"), "sep": tokenizer.sep, "pad": tokenizer.pad}
    return ids | {"decoder_start_token_id": start_ids[start] or 0}


def find_shape(network: Any) -> Seq2SeqShape:
    """Return the shape of a network; ValueError if no BART or T5 computes the same.

    A network of that shape is built, and compared by all that its parts know of themselves.
    """
    try:
        shape = describe_network(network)
    except AttributeError:
        raise ValueError("only an encoder-decoder of Transformer layers has a form as BART or T5") from None
    sizes = {"vocab": shape.vocab, "max_length": network.respond.max_length}
    expected = build_on_meta(partial(build_model, model_options(shape), sizes))
    facts, expected_facts = (dict(iterate_facts(module)) for module in (network, expected))
    names = sorted(name for name in facts.keys() | expected_facts.keys() if facts.get(name) != expected_facts.get(name))
    if names:
        raise ValueError(
            f"Hugging Face has no {shape.kind} like this network; it differs in {join_words(names[:MAX_NAMES])}: "
            "train one as the recipes bart and t5"
        )
    return shape


def iterate_facts(network: nn.Module) -> Iterator[tuple[str, Any]]:
    """Yield the class of each module, its plain attributes and the shapes of its weights.

    Shared weights come once.
    """
    for name, module in network.named_modules(remove_duplicate=False):
        yield name, type(module)
        for key, value in vars(module).items():
            if not key.startswith("_") and key not in IGNORED_FACTS:
                yield f"{name}.{key}", value
    for name, weight in network.named_parameters():
        yield name, tuple(weight.shape)
