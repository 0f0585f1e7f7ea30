"""Start from an encoder–decoder: a run that answers with texts, or a BART or T5.

A recipe whose response is ``seq2seq`` takes both halves as they are. One whose encoder is of kind
``encoder-decoder`` takes both as its body, for heads of its own.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.checkpoint.folder import RECIPE, find_checkpoint, read_metadata
from mnemic.checkpoint.seq2seq_folder import is_seq2seq_folder, read_model
from mnemic.encode import ENCODERS
from mnemic.encode.seq2seq.encoder_decoder import EncoderDecoder
from mnemic.encode.seq2seq.translation import TranslationEncoder
from mnemic.recipe import Recipe, kind_of, merge_recipes
from mnemic.respond import RESPONSES
from mnemic.respond.sequence import DEFAULT_DECODER, DEFAULT_EMBEDDINGS, SequenceDecoder

# Prefixes of weights of a decoder that responds → of the same in an encoder–decoder.
BODY_NAMES = {"respond.decoder.": "encode.decoder.", "respond.embeddings.": "encode.decoder_embeddings."}


def list_seq2seq_settings(recipe: Recipe, folder: Path) -> dict[str, Any] | None:
    """List the settings of a recipe that starts from an encoder–decoder, by dotted key.

    None if the recipe takes no decoder, or the folder has none.
    """
    takes_response = kind_of(RESPONSES, recipe["model"]["respond"]) is SequenceDecoder
    encoder = kind_of(ENCODERS, recipe["model"]["encode"])
    takes_body = encoder is EncoderDecoder
    if not takes_response and not takes_body:
        return None
    if is_seq2seq_folder(folder):
        tokenizer_folder, (model, start) = folder, read_model(folder)
    else:
        try:
            tokenizer_folder = find_checkpoint(folder)
        except CheckpointError:
            return None
        start_recipe = read_metadata(tokenizer_folder / RECIPE)["recipe"]
        model, start = start_recipe["model"], start_recipe.get("data", {}).get("start", "cls")
    if "memory" in model or kind_of(RESPONSES, model["respond"]) is not SequenceDecoder:
        return None
    settings = {"model.width": model["width"], "model.init_from": str(folder)}
    settings |= {"data.tokenizer": {"kind": "stored", "folder": str(tokenizer_folder)}}
    if takes_body:
        return settings | {"model.encode": join_body(model)}
    encode = model["encode"]
    if encoder is TranslationEncoder and kind_of(ENCODERS, encode) is not TranslationEncoder:
        encode = {**recipe["model"]["encode"], **encode, "kind": "translation"}
    settings |= {"model.encode": encode, "model.respond": model["respond"]}
    settings |= {"model.init_parts": ["encode", "respond"]}
    return settings if start == "cls" else settings | {"data.start": start}


def join_body(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of an encoder–decoder with the parts of a model."""
    respond, encode = model["respond"], {**model["encode"], "kind": "encoder-decoder"}
    for key, name, default in (
        ("decoder_embeddings", "embeddings", DEFAULT_EMBEDDINGS),
        ("decoder", "decoder", DEFAULT_DECODER),
    ):
        spec = respond.get(name, default)
        encode[key] = spec if "kind" in spec else merge_recipes(dict(default), dict(spec))
    return encode | {"tied": respond.get("tied", True)}


def fit_start_weights(weights: Mapping[str, Tensor], network_weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give the weights to start from the names of the network that takes them.

    A decoder that responds becomes the decoder of a body. A new encoder, for another language,
    keeps the network's own random weights.
    """
    has_body = any(name.startswith("encode.decoder.") for name in network_weights)
    renamed = {}
    for name, weight in weights.items():
        prefix = next((prefix for prefix in BODY_NAMES if has_body and name.startswith(prefix)), "")
        renamed[BODY_NAMES[prefix] + name.removeprefix(prefix) if prefix else name] = weight
    return {name: weight for name, weight in network_weights.items() if name.startswith("encode.new.")} | renamed
