"""A tiny BERT-MASS learns to remember: from a recipe, through segments, and as a value on disk."""

import dataclasses
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
import torch
from app_runs import run

from mnemic.ask.recollection import (
    MemoryFileError,
    Remembered,
    load_memory,
    recollect,
    remember,
)
from mnemic.data.long.recall import THINGS
from mnemic.encode import Pretrained, save_encoder
from mnemic.learn.checkpoint import Checkpoint, load, weights_of
from mnemic.learn.evaluate import task_errors
from mnemic.learn.fit import data_of, fit
from mnemic.learn.start import encoder_weights, with_start
from mnemic.network.carrier import Carrier
from mnemic.objectives.unigram import counts_of, unigram_loss
from mnemic.recipe import ConfigError, Recipe
from mnemic.recipe import load as load_recipe

CHANCE = 100 * (1 - 1 / len(THINGS))
TINY = [
    'data={kind="long-keys", count=500, length=16, segments=2, where="first"}',
    'data.tokenizer={kind="wordpiece", vocab=400}',
    "model.width=32",
    'model.encode={kind="transformer", stack={kind="encoder", depth=1, norm="pre"}}',
    "train.epochs=10", "train.batch=32", "train.rate=0.005", "train.validate=0", "train.save=7",
    'train.matmul="float32"', 'train.schedule={kind="constant"}',
    'model.respond={kind="predictor"}',
]  # fmt: skip
MEMORIES = {
    "bert-mass": ['model.memory={kind="bert-mass", slots=16, hops=2}'],
    "keeps": ['model.memory={kind="keeps", slots=16, hops=2}', "model.carry.unit=sentences"],
}


def tiny(kind: str, steps: int, *sets: str) -> Recipe:
    recipe = load_recipe("bert-mass", [*TINY, *MEMORIES[kind], f"train.steps={steps}", *sets])
    del recipe["phases"]
    return recipe | {"objective": {"kind": "bert-mass", "ctrl": 0.3, "read": 0.1}}


@pytest.fixture(scope="module", params=list(MEMORIES))
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of one and two segments, the fact in the first; nothing longer is ever seen."""
    folder = tmp_path_factory.mktemp(request.param)
    torch.manual_seed(0)
    for _ in fit(tiny(request.param, 100, "train.save=1000"), folder / "run", device="cpu"):
        pass
    return folder / "run"


def test_a_fact_is_answered_many_segments_later_and_without_memory_is_not(trained: Path) -> None:
    checkpoint = load(trained)
    asked = data_of(checkpoint.recipe).test
    for later in (1, 8):
        (error,) = task_errors(checkpoint.network, asked.upto(later + 1)).values()
        assert error <= 2.0, f"{later} segments later"
    checkpoint.network.lasts = False
    (error,) = task_errors(checkpoint.network, asked.upto(4)).values()
    assert error > CHANCE - 15


BACK = "the old mill slept all winter . the grey road waited at noon . " * 4


def told() -> str:
    return f"  felix has the lantern . {BACK}"


def test_a_text_is_remembered_with_evidence_and_can_be_forgotten(trained: Path) -> None:
    model, text = load(trained), told()
    memory = remember(model, text)
    assert memory.tokens == len(model.tokenizer.encode(text, special=False).ids)
    assert memory.characters == len(text)
    answer = recollect(model, memory, "what does felix have ?")
    assert answer.text == "lantern"
    assert answer.probability > 0.5
    first = text.index("felix")
    best = answer.evidence[0]
    assert first <= best.start < best.end <= first + len("felix has the lantern .")
    forgotten = memory.forget(model, first, first + len("felix has the lantern ."))
    after = recollect(model, forgotten, "what does felix have ?", most=1000)
    assert after.text != "lantern" or after.probability < 0.5 * answer.probability
    touched = [own for own in after.evidence if own.start < first + 23 and own.end > first]
    assert not touched
    assert memory.forget(model, len(text) + 5, len(text) + 9) is memory


def test_a_memory_survives_the_disk_and_is_read_on(trained: Path, tmp_path: Path) -> None:
    model = load(trained)
    first = remember(model, told())
    first.save(tmp_path / "notes.mem")
    back = load_memory(tmp_path / "notes.mem")
    assert [f.name for f in tmp_path.iterdir()] == ["notes.mem"]
    for name, part in first.state._asdict().items():
        assert torch.equal(part, getattr(back.state, name))
    assert dataclasses.replace(back, state=0, spans=0) == dataclasses.replace(  # type: ignore[arg-type]
        first, state=0, spans=0
    )
    both = remember(model, BACK, back)
    assert both.tokens == remember(model, BACK).tokens + first.tokens
    assert int(both.spans[-1, 1]) == len((told() + BACK).rstrip())
    whole = remember(model, told())
    assert torch.equal(whole.state.slots, first.state.slots)
    answer = recollect(model, both, "what does felix have ?")
    assert answer.text == "lantern"
    quoted = (told() + BACK)[answer.evidence[0].start : answer.evidence[0].end]
    assert quoted in "felix has the lantern ."


def test_the_command_line_reads_a_text_and_keeps_the_memory(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(told(), encoding="utf-8")
    asked = ("ask", "--model", trained, "what does felix have ?", "--state", tmp_path / "notes.mem")
    first = run(*asked, "--story", tmp_path / "text.txt", "--json").json
    assert first["answer"] == "lantern"
    assert first["evidence"][0]["text"] in "felix has the lantern ."
    assert first["tokens"] == remember(load(trained), told()).tokens
    again = run(*asked).out
    assert "lantern" in again
    assert f"read: all {first['tokens']} tokens" in again
    nothing = run("ask", "--model", trained, "what does felix have ?")
    assert (nothing.code, nothing.err.count("\n")) == (2, 1)
    assert "nothing is remembered" in nothing.err


def test_a_memory_of_another_network_is_refused(trained: Path, tmp_path: Path) -> None:
    model, other = load(trained), load(trained)
    with torch.no_grad():
        next(other.network.parameters()).add_(1.0)
    memory = remember(model, told())
    with pytest.raises(MemoryFileError, match="another network"):
        recollect(other, memory, "what does felix have ?")
    with pytest.raises(MemoryFileError, match="another network"):
        remember(other, told(), memory)
    (tmp_path / "broken.mem").write_bytes(b"no memory")
    with pytest.raises(MemoryFileError, match="is no memory"):
        load_memory(tmp_path / "broken.mem")
    with pytest.raises(MemoryFileError, match="there is no memory"):
        load_memory(tmp_path / "none.mem")
    assert isinstance(memory, Remembered)


@pytest.mark.parametrize("name", ["mass", "mann"])
def test_mass_and_mann_alone_learn_more_than_how_often_words_are(name: str, tmp_path: Path) -> None:
    sets = [TINY[1], TINY[2], "data.count=160", "data.length=16", "data.segments=2"]
    sets += ["train.epochs=9", "train.batch=16", "train.rate=0.01", "train.validate=0", TINY[-3]]
    recipe = load_recipe(name, [*sets, 'train.schedule={kind="constant"}'])
    rows = [own.row for own in fit(recipe, tmp_path / "run", device="cpu") if own.row is not None]
    part = data_of(recipe).train
    batch = part.batch(torch.arange(len(part)))
    counts = counts_of(batch.inputs.tokens[batch.inputs.inside], len(part.tokenizer))
    assert rows[-1]["loss"] < unigram_loss(counts, counts)


def stopped_after(recipe: Recipe, folder: Path, steps: int) -> None:
    run = fit(recipe, folder, device="cpu")
    for _ in islice(run, steps):
        pass
    run.close()  # type: ignore[attr-defined]


def test_a_run_that_was_stopped_ends_with_the_same_bits(tmp_path: Path) -> None:
    """Documents are drawn anew in every step, and still the same ones; so are their masks."""
    recipe = tiny("bert-mass", 8, "train.batch=8", "data.count=100")
    recipe["objective"] |= {"mlm": 0.1, "write": 0.1}
    recipe["phases"] = [{"train": {"segments": 1, "steps": 4}}, {"train": {"segments": 3}}]
    for _ in fit(recipe, tmp_path / "whole", device="cpu"):
        pass
    for cut in (3, 4):
        stopped_after(recipe, tmp_path / "cut", cut)
    for _ in fit(recipe, tmp_path / "cut", device="cpu"):
        pass
    whole, again = (load(tmp_path / name) for name in ("whole", "cut"))
    for name, weight in weights_of(whole.network).items():
        assert torch.equal(weight, weights_of(again.network)[name]), name
    rows = [[row["losses"] for row in own.progress.history] for own in (whole, again)]
    assert rows[0] == rows[1]
    assert set(rows[0][-1]) == {"pred", "seq", "ctrl", "read", "mlm", "write"}


def test_an_encoder_of_a_hugging_face_folder_is_wrapped(tmp_path: Path) -> None:
    nothing = "train.epochs=0"
    post = tiny("keeps", 0, 'model.encode.stack.norm="post"', nothing)
    for _ in fit(post, tmp_path / "run", device="cpu"):
        pass
    first = load(tmp_path / "run")
    encoder = first.network.encode.eval()
    save_encoder(tmp_path / "theirs", Pretrained(encoder, first.tokenizer))
    recipe = with_start(tiny("bert-mass", 0, nothing), tmp_path / "theirs")
    for _ in fit(recipe, tmp_path / "wrapped", device="cpu"):
        pass
    wrapped: Checkpoint = load(tmp_path / "wrapped")
    assert isinstance(wrapped.network, Carrier)
    theirs = encoder_weights(tmp_path / "theirs")
    assert {name for name, _ in encoder.named_parameters()} <= theirs.keys()
    for name, weight in wrapped.network.encode.named_parameters():
        assert torch.equal(weight, theirs[name])
    shutil.rmtree(tmp_path / "theirs")  # a checkpoint needs no other folder
    assert load(tmp_path / "wrapped").progress.done


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r["model"].pop("carry"), "is read in segments: add model.carry"),
        (lambda r: r.update(data={"kind": "generated"}), "model.carry reads in segments"),
        (lambda r: r["train"].update(segments=-1), "train.segments is at least 0"),
    ],
)
def test_recipes_that_do_not_fit_say_so(
    change: Callable[[Recipe], object], said: str, tmp_path: Path
) -> None:
    recipe = tiny("keeps", 1)
    change(recipe)
    with pytest.raises(ConfigError, match=said):
        list(fit(recipe, tmp_path / "run", device="cpu"))
