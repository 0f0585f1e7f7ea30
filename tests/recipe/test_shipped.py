"""Every shipped recipe trains, and a mistake in one is said before a step is taken."""

import re
from math import isfinite
from pathlib import Path
from typing import Any

import pytest
import text_files

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.data import DATASETS
from mnemic.recipe import load_recipe, recipe_comment, recipe_names
from mnemic.train.run import fit

# The shipped recipes ---------------------------------------------------------------------------

KNOWLEDGE = 'data={kind="generated-knowledge", films=20}'
TOY = ['data={kind="generated", tasks=[1], count=80}', "train.validate=0", "train.keep=last"]
TOY += ["train.patience=0"]
FEW = ["data.articles=2", "data.passages=3", "data.length=64", "model.encode.stack.depth=1"]
SMALL_BERT = ["model.width=16", "model.encode.stack.depth=1", "train.matmul=float32"]
SMALL_BERT += ['data.tokenizer={kind="wordpiece", vocab=200}', "data.length=32"]
SEGMENTS = ["data.count=60", "data.length=24", "data.segments=2", "model.width=32"]
SEGMENTS += ['data.tokenizer={kind="wordpiece", vocab=600}', 'train.matmul="float32"']
LITTLE = ["segments=2", "batch=4"]


def toy(name: str, folder: Path) -> dict[str, Any]:
    """A shipped recipe with four steps a phase on a few generated stories, or texts."""
    phases = load_recipe(name).get("phases", [])
    short = [f"phases.{n}.train.steps=4" for n in range(len(phases))]
    short += ["train.steps=4", "train.batch=8"]
    kind = load_recipe(name)["data"]["kind"]
    if kind == "dates":
        return load_recipe(name, ["data.count=80", "data.validation_size=8", "data.test_size=8", *TOY[1:], *short])
    if DATASETS[kind].response is not None:
        numbers = {"numbers": True} if "numbers" in name else {}
        getattr(text_files, kind.replace("-", "_"))(folder, 40, **numbers)
        few = {"retrieval": FEW, "corpus": ["train.log=0", *SMALL_BERT]}.get(kind, [])
        return load_recipe(name, [f"data.folder={folder}", *TOY[1:], *short, *few])
    if DATASETS[kind].layout == "segments":
        short += [f"phases.{n}.train.{key}" for n in range(len(phases)) for key in LITTLE]
        few = SEGMENTS
        if kind == "long-articles":
            text_files.retrieval(folder, 40)
            few = [f"data.folder={folder}", *SEGMENTS[1:]]
        if kind == "long-stories":
            short += ["data.tasks=[1]", "model.encode.stack.depth=1"]
        return load_recipe(name, [*TOY[1:], *few, *short])
    known = [KNOWLEDGE] if kind == "knowledge" else []
    return load_recipe(name, [*TOY, *known, *short])


def test_recipes_are_shipped() -> None:
    assert {"memn2n", "memn2n-joint"} <= set(recipe_names())


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_says_whose_it_is_and_what_was_published(name: str) -> None:
    """A paper is a name with a year; a score is a number in a sentence with "published"."""
    said = recipe_comment(name)
    assert re.search(r"[A-Z]\w+ .*\b(19|20)\d\d\b", said)
    assert re.search(r"[Pp]ublished.*\d", said)


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_builds_and_takes_a_step_in_every_phase(name: str, tmp_path: Path) -> None:
    recipe = toy(name, tmp_path / "data")
    reports = list(fit(recipe, tmp_path / "run"))
    count = len(recipe.get("phases", [{}]))
    every = [(phase, step) for phase in range(count) for step in (1, 2, 3, 4)]
    assert [(report.phase, report.step) for report in reports] == every
    rows = [report.row for report in reports if report.row is not None]
    assert rows
    assert all(isfinite(row["loss"]) and row["loss"] > 0 for row in rows)
    assert all(isfinite(row["norm"]) and row["norm"] > 0 for row in rows)
    done = load_checkpoint(tmp_path / "run")
    assert done.progress.done
    assert done.recipe == recipe
    assert all(bool(weight.isfinite().all()) for weight in done.network.parameters())


# Mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("phases.2.train.epochs=1", "'phases' has items 0 to 1"),
        ("phases.first.train=1", "'phases' has items 0 to 1"),
        ("train.rate.fast=1", "'rate' holds 0.005, which has no parts"),
        ("trian.rate=1", "no section 'trian' (did you mean 'train'?)"),
        ("train=3", "'train' is a table"),
        ("phases=3", "'phases' is a list"),
        ("model.memory=memn2n", 'kind = "memn2n"'),
        ("model.width=wide", "model.width is a whole number"),
        ("model.memory.slots=0", "slots"),
        ("model.memory.hops=three", "memn2n.hops is a whole number, not 'three'"),
        ("model.memory.hops=-1", "hops"),
        ("model.memory.kind=memn2m", "did you mean 'memn2n'?"),
        ("model.hops=3", "[model] does not take 'hops'"),
        ("data.kind=story", "known kinds: babi, generated-babi"),
        ("data.count=0", "count"),
        ("train.batch=0", "batch"),
        ("train.save=0", "save"),
        ("train.optimiser.kind=adanw", "did you mean 'adamw'?"),
        ("train.schedule.every=0", "every"),
        ("train.clip.most=big", "spectral.limit is a number, not 'big'"),
        ("phases.0.modle.width=3", "no section 'modle' (did you mean 'model'?)"),
        ("phases.0.data.count=3", "data"),
        ("phases.0.model.memory.slots=3", "slots"),
        ("objective.kind=anser", "did you mean 'answer'?"),
    ],
)
def test_a_mistake_in_a_recipe_is_one_line_that_helps(text: str, says: str, tmp_path: Path) -> None:
    """Whatever is wrong is said before a step is taken, wherever in the library it is noticed."""
    with pytest.raises(ValueError, match=re.escape(says)) as caught:
        next(fit(load_recipe("memn2n", [*TOY, text]), tmp_path / "run"))
    assert "\n" not in str(caught.value)
