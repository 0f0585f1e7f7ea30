"""Load a Hugging Face folder with a classification head, such as a cross-encoder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.checkpoint.folder import Checkpoint, TrainingProgress
from mnemic.encode.huggingface import FAMILIES, load_encoder
from mnemic.encode.huggingface.heads import read_class_head
from mnemic.encode.huggingface.read import CONFIG_FILE
from mnemic.encode.huggingface.shape import encoder_options, shape_from_config
from mnemic.models import build_model


def is_huggingface_folder(folder: Path) -> bool:
    """Whether a folder holds a Hugging Face model."""
    return (folder / CONFIG_FILE).is_file()


def load_classifier(folder: Path) -> Checkpoint:
    """Load a model for sequence classification.

    One output is a number, several are classes. Its head is that of ``ClassHead``: the first
    token's state, and two layers with a tanh between them, as in BERT, RoBERTa and ALBERT.
    """
    try:
        pretrained = load_encoder(folder)
        head = read_class_head(pretrained.unused, pretrained.pooler, FAMILIES[pretrained.family], folder)
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(str(error)) from None
    if pretrained.tokenizer is None:
        raise CheckpointError(f"{folder} has no tokenizer.json: copy that of the original into it")
    shape = shape_from_config(pretrained.config, folder / CONFIG_FILE)
    respond = {"kind": "classes", "pool": "first", "dropout": float(shape.dropout)}
    model = {"width": shape.width, "encode": {"kind": "transformer", **encoder_options(shape)}, "respond": respond}
    num_outputs = len(head["out.bias"])
    sizes = {"vocab": shape.vocab, "max_length": shape.length, "classes": num_outputs}
    with torch.random.fork_rng(devices=[]):
        network: Any = build_model(model, sizes)
    network.encode = pretrained.encoder
    network.respond.load_state_dict(head)
    return Checkpoint(
        recipe={"model": model},
        seed=0,
        sizes=sizes,
        tokenizer=pretrained.tokenizer,
        network=network.eval(),
        progress=TrainingProgress(done=True),
        state={},
        labels=read_labels(pretrained.config, num_outputs),
        origin=str(folder),
    )


def read_labels(config: Mapping[str, Any], num_outputs: int) -> tuple[str, ...]:
    """Read the names of the classes in the order of their logits.

    A number has none. A config without names means ``LABEL_0``, ``LABEL_1`` …, as in transformers.
    """
    if num_outputs == 1:
        return ()
    names = config.get("id2label")
    names = names if isinstance(names, Mapping) else {}
    return tuple(str(names.get(str(number), f"LABEL_{number}")) for number in range(num_outputs))
