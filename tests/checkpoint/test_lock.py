"""Only one training run may write into a folder."""

from pathlib import Path

import pytest

from mnemic.checkpoint.lock import lock_folder
from mnemic.recipe import ConfigError, load_recipe
from mnemic.train.run import fit

SMALL = ['data={kind="generated", tasks=[1], count=62}', "model.width=6", "train.batch=8"]


def test_a_folder_has_one_owner_at_a_time(tmp_path: Path) -> None:
    with lock_folder(tmp_path / "runs" / "one"):
        busy = pytest.raises(ConfigError, match="another process is writing")
        with busy, lock_folder(tmp_path / "runs" / "one"):
            pass
        (tmp_path / "runs" / "kept").touch()
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["kept"]  # nothing left behind
    with lock_folder(tmp_path / "runs" / "one"):  # free again
        (tmp_path / "runs" / "one" / "log.tsv").touch()
    assert (tmp_path / "runs" / "one" / "log.tsv").exists()


def test_a_second_training_is_kept_out_until_the_first_ends(tmp_path: Path) -> None:
    recipe = load_recipe("memn2n", [*SMALL, "train.steps=3"])
    first = fit(recipe, tmp_path / "run")
    next(first)
    with pytest.raises(ConfigError, match="another process is writing into"):
        next(fit(recipe, tmp_path / "run"))
    first.close()
    assert list(fit(recipe, tmp_path / "run"))


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="is a file; give a folder"):
        next(fit(load_recipe("memn2n", SMALL), tmp_path / "run"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("train.rate=nan", "train.rate is a number above 0, not nan"),
        ("train.rate=-1", "train.rate is a number above 0, not -1"),
        ("train.clip.most=0", "clip.limit is a number above 0, not 0"),
        ("train.optimiser.momentum=2", "a momentum from 0 to below 1"),
        ("model.memory.noise=5", "noise from 0 to 1"),
        ("data.tasks=[1, 1]", "data.tasks names at least one task, each once"),
        ("data.tasks=[]", "data.tasks names at least one task, each once"),
        ("model.encode.kind=transformer", "no kind 'transformer' here; known kinds: bag"),
        ("model.fuse={kind='recurrent'}", "the parts of .model. do not fit together"),
        ("phases.0.model.respond.tied=false", "phases.0 changes the weight 'respond.table'"),
    ],
)
def test_a_setting_without_meaning_is_refused_before_training(tmp_path: Path, change: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        next(fit(load_recipe("memn2n", [*SMALL, change]), tmp_path / "run"))
    assert list(tmp_path.iterdir()) == []  # nothing was begun


def test_too_few_questions_are_said(tmp_path: Path) -> None:
    message = "a batch of 8 cannot be drawn from 3 training examples: lower it, say train.batch=1"
    with pytest.raises(ConfigError, match=message):
        next(fit(load_recipe("memn2n", [*SMALL, "data.validation=0.95"]), tmp_path / "run"))


def test_a_loss_that_is_no_number_ends_the_run(tmp_path: Path) -> None:
    changes = ["train.rate=1e30", 'train.clip={kind="none"}', "phases=[{}]", "train.epochs=2"]
    with pytest.raises(ConfigError, match=r"the loss is (nan|inf) in epoch 1 of phase 1"):
        list(fit(load_recipe("memn2n", [*SMALL, *changes]), tmp_path / "run"))
