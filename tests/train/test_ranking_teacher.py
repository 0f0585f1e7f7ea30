"""Readers that learn rankings from a cross-encoder in a Hugging Face folder."""

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import text_files
import torch
from learn_runs import TINY_READER, finish, weights_in
from ranker_folders import SHAPE, write_classifier
from text_runs import run_of, tiny

from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.checkpoint.folder import load_checkpoint
from mnemic.encode import Pretrained, save_encoder
from mnemic.encode.huggingface.shape import build_encoder
from mnemic.recipe import ConfigError, Recipe, load_recipe
from mnemic.reproduce.publish import strip_checkpoint
from mnemic.text import SubwordTokenizer
from mnemic.text.tokenizers.trainers import train_wordpiece
from mnemic.train.run import fit, load_data
from mnemic.train.teacher import load_teachers
from mnemic.train.teaching import Teachers

CPU = torch.device("cpu")
RANKING = '{kind="distil-ranking", hard={kind="retrieve-and-read"}, candidates=3, temperature=0.1}'


def learn_tokenizer(folder: Path) -> SubwordTokenizer:
    """Train a vocabulary on the texts of the folder's articles."""
    return train_wordpiece([(folder / "train.json").read_text(encoding="utf-8")], vocab=150)


def reader(folder: Path, *sets: str) -> Recipe:
    """A tiny reader with the vocabulary of the folder ``first``, its teacher."""
    teacher = folder / "first"
    if not teacher.exists():
        text_files.retrieval(folder, 40)
        write_classifier(teacher, learn_tokenizer(folder))
    return load_recipe(
        "reader",
        [
            *TINY_READER, "data.passages=3",
            f"data.folder={folder}", f'data.tokenizer={{kind="stored", folder="{teacher}"}}', f"objective={RANKING}",
            f"teacher.folder={teacher}", *sets,
        ],
    )  # fmt: skip


def test_a_reader_learns_how_a_cross_encoder_ranks(tmp_path: Path) -> None:
    """The ranking by vectors comes nearer to the teacher's; without weight it goes far away."""
    sets = [
        "train.epochs=40",
        "train.validate=0",
        "train.keep=last",
        "train.rate=0.003",
        "train.log=40",
        "model.width=32",
    ]
    sets += ["objective.hard.keys=0.001", "objective.hard.passages=0.0", "objective.hard.spans=0.0"]
    sets += ["objective.hard.temperature=0.2", 'train.schedule={kind="constant"}']
    finish(reader(tmp_path, *sets), tmp_path / "run", device="cpu")
    losses = [row["losses"] for row in load_checkpoint(tmp_path / "run").progress.history]
    assert losses[0].keys() == {"hard", "ranking", "spans", "keys", "passages"}
    assert losses[-1]["ranking"] < 0.65 * losses[0]["ranking"]
    row = load_checkpoint(tmp_path / "run").progress.history[0]
    assert row["loss"] == pytest.approx(row["losses"]["hard"] + row["losses"]["ranking"], rel=1e-4)
    weights = load_checkpoint(tmp_path / "run").network.state_dict()
    assert not any("out" in name and "respond" in name for name in weights)  # only the student is saved


def test_a_stopped_run_counts_its_steps(tmp_path: Path) -> None:
    recipe = reader(tmp_path, "train.steps=6", "objective.delay=2", "objective.ramp_up=3", "train.log=1")
    whole = finish(recipe, tmp_path / "whole", device="cpu")
    steps = fit(recipe, tmp_path / "stopped", device="cpu")
    assert len(list(islice(steps, 3))) == 3
    steps.close()
    finish(recipe, tmp_path / "stopped", device="cpu")
    assert weights_in(tmp_path / "stopped") == weights_in(whole)
    rows = load_checkpoint(whole).progress.history
    assert ["ranking" in row["losses"] for row in rows] == [False] * 2 + [True] * 4
    weights = [(row["loss"] - row["losses"]["hard"]) / row["losses"]["ranking"] for row in rows[2:]]
    assert weights == pytest.approx([1 / 3, 2 / 3, 1, 1], rel=1e-2)


def test_a_reader_and_two_cross_encoders_teach_together(tmp_path: Path) -> None:
    plain = reader(tmp_path, 'objective={kind="retrieve-and-read"}', "train.epochs=0")
    plain.pop("teacher")
    finish(plain, tmp_path / "reader", device="cpu")
    write_classifier(tmp_path / "second!", learn_tokenizer(tmp_path))
    folders = json.dumps([str(tmp_path / name) for name in ("first", "reader", "second!")])
    sets = [f"teacher.folder={folders}", "train.steps=2"]
    hard = 'objective.hard={kind="distil", hard={kind="retrieve-and-read"}}'
    run = finish(reader(tmp_path, *sets, hard), tmp_path / "run", device="cpu")
    (row,) = load_checkpoint(run).progress.history
    assert row["losses"].keys() == {"hard", "ranking", "soft", "spans", "keys", "passages"}
    with pytest.raises(ConfigError, match=r"objective.hard of kind 'retrieve-and-read' learns from no reader"):
        finish(reader(tmp_path, *sets), tmp_path / "other", device="cpu")
    with pytest.raises(ConfigError, match=r"objective.hard = distil learns from a reader, too"):
        finish(reader(tmp_path, hard), tmp_path / "other", device="cpu")
    with pytest.raises(ConfigError, match=r"distil-ranking learns from a network that scores a question with a text"):
        finish(reader(tmp_path, hard, f"teacher.folder={tmp_path}/reader"), tmp_path / "other", device="cpu")


def test_what_cannot_rank_is_refused(tmp_path: Path) -> None:
    recipe, tokenizer = reader(tmp_path), learn_tokenizer(tmp_path)
    data = load_data(recipe)
    with pytest.raises(ConfigError, match=r"distil-ranking learns from trained networks: set teacher.folder"):
        Teachers(recipe | {"teacher": {"learns": True}}, data, CPU, 0)
    soft = {"objective": {"kind": "distil", "hard": {"kind": "retrieve-and-read"}}}
    with pytest.raises(ConfigError, match=r"distil in one phase learns from no cross-encoder"):
        Teachers(recipe | {"phases": [{}, soft]}, data, CPU, 0)

    def load_from(folder: Path) -> None:
        load_teachers(recipe | {"teacher": {"folder": str(folder)}}, data, CPU)

    with pytest.raises(ConfigError, match=r"has 3 classes; one that ranks has one output"):
        load_from(write_classifier(tmp_path / "three", tokenizer, 3))
    with pytest.raises(ConfigError, match=r"reads at most 20 tokens, a window of the data has 24: set data.length=20"):
        load_from(write_classifier(tmp_path / "short", tokenizer, length=20))
    other = train_wordpiece(["a quite different text"], vocab=60)
    folder = write_classifier(tmp_path / "other", other)
    remedy = rf'has another vocabulary than the student: set data.tokenizer=\{{kind="stored", folder="{folder}"\}}'
    with pytest.raises(ConfigError, match=remedy):
        load_from(folder)
    again = reader(tmp_path, f'data.tokenizer={{kind="stored", folder="{folder}"}}', f"teacher.folder={folder}")
    (teacher,) = load_teachers(again, load_data(again), CPU)  # the remedy works
    assert not any(weight.requires_grad for weight in teacher.parameters())
    headless = Pretrained(build_encoder(SHAPE._replace(vocab=len(tokenizer))), tokenizer)
    save_encoder(tmp_path / "headless", headless)
    with pytest.raises(CheckpointError, match=r"teacher.folder: .*/headless has no classification head"):
        load_from(tmp_path / "headless")


def test_a_classifier_from_there_teaches_classes(tmp_path: Path) -> None:
    """Its labels are named in config.json; unnamed ones are refused with the remedy."""
    source = load_checkpoint(run_of("classes"))
    assert isinstance(source.tokenizer, SubwordTokenizer)
    folder = write_classifier(tmp_path / "teacher", source.tokenizer, 2)
    sets = [f'data.tokenizer={{kind="stored", folder="{folder}"}}', f"teacher.folder={folder}", "train.steps=3"]
    recipe = tiny("classes", run_of("classes").parent, *sets, 'objective={kind="distil", hard={kind="classes"}}')
    with pytest.raises(ConfigError, match=r"labels LABEL_0, LABEL_1, the data has bad, good; name them so in id2label"):
        finish(recipe, tmp_path / "run", device="cpu")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"id2label": {"0": "bad", "1": "good"}}), encoding="utf-8")
    run = finish(recipe, tmp_path / "run", device="cpu")
    assert load_checkpoint(run).progress.history[0]["losses"]["soft"] > 0


def test_a_published_student_has_no_path_of_its_teachers(tmp_path: Path) -> None:
    plain = load_checkpoint(run_of("classes"))
    teacher = {"folder": ["/home/me/one", "two"], "data": {"folder": "/home/me/data"}}
    stripped = strip_checkpoint(replace(plain, recipe=plain.recipe | {"teacher": teacher}), "float32")
    assert stripped.recipe["teacher"] == {"folder": ["one", "two"], "data": {"folder": "data"}}
    assert not stripped.state
