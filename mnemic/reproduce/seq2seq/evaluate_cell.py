"""Evaluate a cell of the table of noises: metrics, or texts to score."""

from pathlib import Path
from typing import Any

import torch

from mnemic.checkpoint.folder import load_checkpoint, weights_of
from mnemic.data import DATASETS
from mnemic.evaluate.generation_metrics import (
    NUM_BEAMS,
    PERPLEXITY,
    compute_answer_perplexity,
    decode_answers,
    generate_texts,
)
from mnemic.evaluate.pretraining_metrics import attach_noises
from mnemic.evaluate.text_metrics import compute_metrics
from mnemic.recipe import build
from mnemic.reproduce.rows import describe_hardware


def evaluate_cell(run: Path, device: str) -> dict[str, Any]:
    """Evaluate a finished run on its test split; pre-training on held-out texts."""
    checkpoint = load_checkpoint(run)
    history = checkpoint.progress.history
    source = build(DATASETS, checkpoint.recipe["data"])
    split = "validation" if source.layout == "windows" and source.response == "masked" else "test"
    dataset = source.dataset(split, checkpoint.tokenizer, checkpoint.labels).to(device)
    dataset = attach_noises(dataset, checkpoint.recipe["objective"])
    network = checkpoint.network.to(device)
    line = {
        "examples": len(dataset),
        "weights": sum(weight.numel() for weight in weights_of(network).values()),
        "steps": history[-1]["steps"],
        "seconds": round(sum(row["seconds"] for row in history), 1),
        "hardware": describe_hardware(torch.device(device)),
    }
    if source.layout != "sequences":
        return line | {"metrics": compute_metrics(network, dataset)}
    return line | {
        "metrics": {PERPLEXITY: compute_answer_perplexity(network, dataset)},
        "beams": NUM_BEAMS,
        "predictions": generate_texts(network, dataset, NUM_BEAMS),
        "references": decode_answers(dataset),
    }
