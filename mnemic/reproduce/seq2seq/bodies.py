"""Turn a network that answers with texts into the body of a head."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mnemic.checkpoint.folder import TrainingProgress, load_checkpoint, save_checkpoint
from mnemic.models import build_model
from mnemic.recipe import override

BODY_FOLDER = "body"  # in the folder of a run
PREFIXES = {"respond.embeddings.": "encode.decoder_embeddings.", "respond.decoder.": "encode.decoder."}


def body_of(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return the encoder of kind ``encoder-decoder`` with the layers of a ``[model]``."""
    respond = model["respond"]
    return {
        **model["encode"],
        "kind": "encoder-decoder",
        "decoder_embeddings": respond["embeddings"],
        "decoder": respond["decoder"],
    }


def write_body(run: Path) -> Path:
    """Write a trained network as a body, whose head has random weights; return its folder."""
    folder = run / BODY_FOLDER
    if folder.exists():
        return folder
    checkpoint = load_checkpoint(run)
    model = checkpoint.recipe["model"]
    recipe = override(override(checkpoint.recipe, "model.encode", body_of(model)), "model.respond", {"kind": "spans"})
    for key in ("init_from", "init_parts"):
        recipe["model"].pop(key, None)
    network = build_model(recipe["model"], checkpoint.sizes)
    weights = network.state_dict()
    for name, weight in checkpoint.network.state_dict().items():
        for old, new in PREFIXES.items():
            if name.startswith(old):
                weights[new + name.removeprefix(old)] = weight
        if name.startswith("encode."):
            weights[name] = weight
    network.load_state_dict(weights)
    save_checkpoint(folder, replace(checkpoint, recipe=recipe, network=network, progress=TrainingProgress(), state={}))
    return folder
