"""Make small training runs that tests stop, kill and compare."""

import csv
import json
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from mnemic.recipe import Recipe, load_recipe
from mnemic.train.run import StepReport, fit

# Two phases of 2 epochs, 7 steps per epoch; saved every 5 steps, so mostly within an epoch.
SMALL = [
    'data={kind="generated", tasks=[1], count=62}',
    "model.width=6",
    "train.batch=8",
    "train.epochs=2",
    "phases.0.train.epochs=2",
    "train.save=5",
    "train.validate=1",
]
# A reader that retrieves and reads in under a second; add the folder of text_files.retrieval.
TINY_READER = [
    "model.width=16", "model.encode.stack.depth=1", "model.encode.stack.attention.heads=2", "data.length=24",
    "data.overlap=6", "data.articles=2", "data.passages=2", "train.matmul=float32", "train.batch=8",
    'data.tokenizer={kind="wordpiece", vocab=200}',
]  # fmt: skip
ADAMW = ['train.optimiser={kind="adamw"}', 'train.clip={kind="norm"}', 'train.reduce="mean"']
ADAMW += ['phases.0.train.clip={kind="norm"}', 'train.schedule={kind="cosine"}']
MOMENTUM = ["train.optimiser.momentum=0.5", "train.optimiser.decay=0.01", "train.rate=0.001"]
LAMB = ['train.optimiser={kind="lamb"}', "train.towards=0.1", 'train.schedule={kind="inverse-root"}', "train.rate=0.01"]
OPTIMISERS = {"sgd": [], "momentum": MOMENTUM, "adamw": ADAMW, "lamb": LAMB}


def small(*sets: str) -> Recipe:
    return load_recipe("memn2n", [*SMALL, *sets])


def finish(recipe: Recipe, folder: Path, **options: Any) -> Path:
    for _ in fit(recipe, folder, **options):
        pass
    return folder


def stop_after(num_steps: int, recipe: Recipe, folder: Path, **options: Any) -> list[StepReport]:
    """Stop a run after some steps, as Ctrl-C does; return their reports."""
    steps = fit(recipe, folder, **options)
    reports = list(islice(steps, num_steps))
    steps.close()
    torch.rand(7)  # somebody else's random numbers
    return reports


def weights_in(run: Path) -> bytes:
    return (run / "checkpoint" / "weights.safetensors").read_bytes()


def log_of(run: Path) -> list[dict[str, str]]:
    """Read the rows of log.tsv without the seconds."""
    with (run / "log.tsv").open(encoding="utf-8", newline="") as file:
        return [
            {name: value for name, value in row.items() if name != "seconds"}
            for row in csv.DictReader(file, delimiter="\t")
        ]


def numbers_in(run: Path) -> dict[tuple[int, str], float]:
    """Read what TensorBoard reads: (step, tag) → number.

    A number that was logged twice must be the same.
    """
    numbers: dict[tuple[int, str], float] = {}
    for path in sorted(run.glob("events.out.tfevents.*")):
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                number = value.tensor.float_val[0]
                assert numbers.setdefault((event.step, value.tag), number) == number
    return numbers


def read_progress(run: Path) -> tuple[int, int]:
    """Read phase and step of a run's checkpoint; (-1, 0) if there is none."""
    try:
        progress = json.loads((run / "checkpoint" / "progress.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return -1, 0
    return progress["phase"], progress["step"]
