"""Each shipped recipe trains, and mistakes in a recipe are reported before the first step."""

import re
from math import isfinite
from pathlib import Path
from typing import Any

import pytest
import text_files
from learn_runs import finish
from ranker_folders import write_classifier
from seq2seq_files import write_parallel, write_questions

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.data import DATASETS
from mnemic.objectives import OBJECTIVES
from mnemic.recipe import Recipe, kind_of, load_recipe, recipe_comment, recipe_names
from mnemic.train.run import fit

# The shipped recipes ---------------------------------------------------------------------------

KNOWLEDGE_DATA = 'data={kind="generated-knowledge", films=20}'
TOY_OPTIONS = ['data={kind="generated", tasks=[1], count=80}', "train.validate=0", "train.keep=last"]
TOY_OPTIONS += ["train.patience=0"]
RETRIEVAL_OPTIONS = ["data.articles=2", "data.passages=3", "data.length=64", "model.encode.stack.depth=1"]
SMALL_BERT_OPTIONS = ["model.width=16", "model.encode.stack.depth=1", "train.matmul=float32"]
SMALL_BERT_OPTIONS += ['data.tokenizer={kind="wordpiece", vocab=200}', "data.length=32"]
SMALL_SEQ2SEQ_OPTIONS = ["model.width=16", "model.encode.stack.depth=1", "model.respond.decoder.depth=1"]
SMALL_SEQ2SEQ_OPTIONS += ["train.matmul=float32"]
SEQ2SEQ_FILES = {"parallel": write_parallel, "question-generation": write_questions}
SEGMENT_OPTIONS = ["data.count=60", "data.length=24", "data.segments=2", "model.width=32"]
SEGMENT_OPTIONS += ['data.tokenizer={kind="wordpiece", vocab=600}', 'train.matmul="float32"']
WORDS_OPTIONS = ["model.width=32", "data.length=32", "data.context=16"]
QUESTION_OPTIONS = ['data.sources=[{path="train.jsonl"}, {documents=4}]', *RETRIEVAL_OPTIONS]
QUESTION_OPTIONS += ["model.width=24", "data.overlap=16"]
GENERATED_SIZES = {
    "dates": [],
    "copies": ["data.length=16", "model.width=32"],
    "scenes": ["model.width=8"],
}  # of texts that need no files
GENERATED_SIZES |= {"aligned-scenes": ["model.width=8"], "scene-tasks": ["model.width=8"]}
TEACHERS = {"corpus": "bert-pretrain", "question-articles": "reader-12"}  # of students, by their data
PHASE_OPTIONS = ["segments=2", "batch=4"]


def make_toy_teacher(student: Recipe, options: list[str], folder: Path) -> list[str]:
    """Train a teacher for a step; return the options of its students."""
    kind = student["data"]["kind"]
    options = [*options, "train.steps=1", "train.batch=8", "train.validate=0", "train.keep=last"]
    if kind == "classes":  # as many heads as the student, and a multiple of its layers
        options += ["model.width=24", 'model.encode.stack={depth=3, attention={kind="full", heads=12}}']
    recipe = load_recipe(TEACHERS.get(kind, "bert-classes"), options)
    run = finish(recipe, folder.with_name("teacher"), device="cpu")
    tokenizer = f'{{kind="stored", folder="{run / "checkpoint"}"}}'
    teachers = [run]
    if getattr(kind_of(OBJECTIVES, student["objective"]), "ranks_texts", False):
        tokenizer_of_run = load_checkpoint(run).tokenizer
        teachers.append(write_classifier(folder.with_name("ranker"), tokenizer_of_run, length=64))
    return [f"teacher.folder={[str(teacher) for teacher in teachers]}", f"data.tokenizer={tokenizer}"]


def make_toy_recipe(name: str, folder: Path) -> dict[str, Any]:
    """Load a shipped recipe with two steps per phase on a little generated data."""
    phases = load_recipe(name).get("phases", [])
    step_overrides = [f"phases.{phase}.train.steps=2" for phase in range(len(phases))]
    step_overrides += ["train.steps=2", "train.batch=8"]
    kind = load_recipe(name)["data"]["kind"]
    if kind == "digits":
        return load_recipe(name, [*TOY_OPTIONS[1:], "train.log=0", "model.width=16", *step_overrides])
    if kind in GENERATED_SIZES:
        sizes = ["data.count=80", "data.validation_size=8", "data.test_size=8", *GENERATED_SIZES[kind]]
        return load_recipe(name, [*sizes, *TOY_OPTIONS[1:], "train.log=0", *step_overrides])
    if kind in SEQ2SEQ_FILES:
        SEQ2SEQ_FILES[kind](folder)
        options = [f"data.folder={folder}", *SMALL_SEQ2SEQ_OPTIONS, "data.length=128", "train.log=0"]
        return load_recipe(
            name, [*TOY_OPTIONS[1:], *step_overrides, *options, 'data.tokenizer={kind="byte-bpe", vocab=300}']
        )
    if DATASETS[kind].response is not None:
        numbers = {"numbers": True} if "numbers" in name else {}
        getattr(text_files, kind.replace("-", "_"))(folder, 40, **numbers)
        small = ["train.log=0", *SMALL_BERT_OPTIONS]
        if load_recipe(name)["objective"]["kind"] == "denoising":
            small += [*SMALL_SEQ2SEQ_OPTIONS[1:], "data.tokenizer.sentinels=9"]
        options = {
            "retrieval": RETRIEVAL_OPTIONS,
            "corpus": small,
            "question-articles": QUESTION_OPTIONS,
            "language-modeling": WORDS_OPTIONS,
        }.get(kind, [])
        options = [f"data.folder={folder}", *options]
        if "teacher" in load_recipe(name):
            options += make_toy_teacher(load_recipe(name), options, folder)
        return load_recipe(name, [*TOY_OPTIONS[1:], *step_overrides, *options])
    if DATASETS[kind].layout == "segments":
        step_overrides += [f"phases.{phase}.train.{key}" for phase in range(len(phases)) for key in PHASE_OPTIONS]
        data_overrides = SEGMENT_OPTIONS
        if kind == "long-articles":
            text_files.retrieval(folder, 40)
            data_overrides = [f"data.folder={folder}", *SEGMENT_OPTIONS[1:]]
        if kind == "long-stories":
            step_overrides += ["data.tasks=[1]", "model.encode.stack.depth=1"]
        return load_recipe(name, [*TOY_OPTIONS[1:], *data_overrides, *step_overrides])
    knowledge_overrides = [KNOWLEDGE_DATA] if kind == "knowledge" else []
    return load_recipe(name, [*TOY_OPTIONS, *knowledge_overrides, *step_overrides])


def test_recipes_are_shipped() -> None:
    assert {"memn2n", "memn2n-joint"} <= set(recipe_names())


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_says_whose_it_is_and_what_was_published(name: str) -> None:
    """A paper is a name with a year; a score is a number after "published"."""
    comment = recipe_comment(name)
    assert re.search(r"[A-Z]\w+ .*\b(19|20)\d\d\b", comment)
    assert re.search(r"[Pp]ublished.*\d", comment)


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_builds_and_takes_a_step_in_every_phase(name: str, tmp_path: Path) -> None:
    recipe = make_toy_recipe(name, tmp_path / "data")
    reports = list(fit(recipe, tmp_path / "run"))
    num_phases = len(recipe.get("phases", [{}]))
    expected = [(phase, step) for phase in range(num_phases) for step in (1, 2)]
    assert [(report.phase, report.step) for report in reports] == expected
    rows = [report.row for report in reports if report.row is not None]
    assert rows
    assert all(isfinite(row["loss"]) and row["loss"] > 0 for row in rows)
    assert all(isfinite(row["norm"]) and row["norm"] > 0 for row in rows)
    checkpoint = load_checkpoint(tmp_path / "run")
    assert checkpoint.progress.done
    assert checkpoint.recipe == recipe
    assert all(bool(weight.isfinite().all()) for weight in checkpoint.network.parameters())


# Mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
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
def test_a_mistake_in_a_recipe_is_one_line_that_helps(text: str, message: str, tmp_path: Path) -> None:
    """Mistakes are reported before the first step, wherever the library notices them."""
    with pytest.raises(ValueError, match=re.escape(message)) as error_info:
        next(fit(load_recipe("memn2n", [*TOY_OPTIONS, text]), tmp_path / "run"))
    assert "\n" not in str(error_info.value)
