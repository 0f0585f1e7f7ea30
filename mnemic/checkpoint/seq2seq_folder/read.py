"""Load a BART or T5 of Hugging Face as a network that answers with texts."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.checkpoint.folder import Checkpoint, TrainingProgress, load_weights, shapes_of
from mnemic.checkpoint.seq2seq_folder.names import (
    LOGITS_BIAS,
    OUTPUT_WORDS,
    SHARED_WORDS,
    convert_to_mnemic,
    huggingface_seq2seq_name,
)
from mnemic.checkpoint.seq2seq_folder.shape import KINDS, Seq2SeqShape, model_options, read_shape
from mnemic.encode.huggingface.read import CONFIG_FILE, read_weights
from mnemic.files import read_json
from mnemic.models import build_model, build_on_meta
from mnemic.text import load_subword_tokenizer

STARTS = {"bart": "sep", "t5": "pad"}  # the token that decoders begin with


def is_seq2seq_folder(folder: Path) -> bool:
    """Whether a folder holds an encoder–decoder of Hugging Face."""
    path = folder / CONFIG_FILE
    return path.is_file() and read_json(path).get("model_type") in KINDS


def read_model(folder: Path) -> tuple[dict[str, Any], str]:
    """Read the ``[model]`` of a folder, and the start of its answers."""
    shape = read_shape(read_json(folder / CONFIG_FILE), folder / CONFIG_FILE)
    return model_options(shape), STARTS[shape.kind]


def load_seq2seq(folder: Path) -> Checkpoint:
    """Load a BART or T5 with its tokenizer; its method is ``generate``.

    Weights of other heads are left out. Nothing is unpickled.
    """
    try:
        config = read_json(folder / CONFIG_FILE)
        shape = read_shape(config, folder / CONFIG_FILE)
        weights = select_output(read_weights(folder), config, shape)
        tokenizer = load_subword_tokenizer(folder)
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(str(error)) from None
    if tokenizer is None:
        raise CheckpointError(f"{folder} has no tokenizer.json: copy that of the original into it")
    shape = shape._replace(has_output=OUTPUT_WORDS in weights)
    model, sizes = model_options(shape), {"vocab": shape.vocab, "max_length": shape.length}
    expected = shapes_of(build_on_meta(partial(build_model, model, sizes)))
    check_names(expected, weights, shape, folder)
    with torch.random.fork_rng(devices=[]):
        network = build_model(model, sizes)
    load_weights(network, convert_to_mnemic(weights, expected, shape), folder)
    data = {"kind": "seq2seq", "start": STARTS[shape.kind], "length": shape.length}
    return Checkpoint(
        recipe={"model": model, "data": data},
        seed=0,
        sizes=sizes,
        tokenizer=tokenizer,
        network=network.eval(),
        progress=TrainingProgress(done=True),
        state={},
        origin=str(folder),
    )


def select_output(weights: Mapping[str, Tensor], config: Mapping[str, Any], shape: Seq2SeqShape) -> dict[str, Tensor]:
    """Add missing words and biases; leave out a table of scores that equals them.

    A T5 whose words are tied divides its scores by √d, also if it has another table for them.
    """
    prefix = "model." if shape.kind == "bart" else ""
    # Models without a head for words have the names without the prefix.
    named = {f"{prefix}{name}" if name.startswith(("shared", "encoder.", "decoder.")) else name: weight
             for name, weight in weights.items()}  # fmt: skip
    words_name = SHARED_WORDS[shape.kind]
    for name in (f"{prefix}encoder.embed_tokens.weight", f"{prefix}decoder.embed_tokens.weight", OUTPUT_WORDS):
        if words_name not in named and name in named:
            named[words_name] = named[name]
    words, output = named.get(words_name), named.pop(OUTPUT_WORDS, None)
    if words is None:
        return named
    if shape.kind == "bart":
        named.setdefault(LOGITS_BIAS, words.new_zeros(1, len(words)))
        return named
    is_divided = config.get("tie_word_embeddings") is not False and config.get("scale_decoder_outputs") is not False
    output = words if output is None else output
    if not is_divided or not torch.equal(output, words):
        named[OUTPUT_WORDS] = output * shape.width**-0.5 if is_divided else output
    return named


def check_names(expected: Mapping[str, Any], weights: Mapping[str, Tensor], shape: Seq2SeqShape, folder: Path) -> None:
    """Raise a CheckpointError unless the folder has all weights of the network."""
    for name in expected:
        if (key := huggingface_seq2seq_name(name, shape)) not in weights:
            raise CheckpointError(
                f"{folder} has no weight {key!r}, which its {CONFIG_FILE} asks for; it has {len(weights)} others: "
                "a model without a decoder, or cut short"
            )
