"""A tiny BERT-MASS learns to remember: training, segments, saved memories and evidence."""

import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
import torch
from long_runs import FACT, QUESTION, TINY, make_text, tiny

from mnemic.checkpoint.folder import weights_of
from mnemic.data.long_context.recall import OBJECTS
from mnemic.encode import Pretrained, save_encoder
from mnemic.evaluate.error_rate import compute_task_errors
from mnemic.models.segment_model import SegmentModel
from mnemic.objectives.unigram import count_targets, unigram_loss
from mnemic.predict.model import Model, load
from mnemic.recipe import ConfigError, Recipe, load_recipe, override
from mnemic.train.initialize import read_start_weights, start_recipe_from
from mnemic.train.run import fit, load_data

CHANCE_ERROR = 100 * (1 - 1 / len(OBJECTS))


def test_a_fact_is_answered_many_segments_later_and_without_memory_is_not(carrying: Path) -> None:
    checkpoint = load(carrying)
    dataset = load_data(checkpoint.recipe).test
    for later in (1, 8):
        (error,) = compute_task_errors(checkpoint.network, dataset.with_segments(later + 1)).values()
        assert error <= 2.0, f"{later} segments later"
    checkpoint.network.carry_memory = False
    (error,) = compute_task_errors(checkpoint.network, dataset.with_segments(4)).values()
    assert error > CHANCE_ERROR - 15


def test_a_text_is_remembered_with_evidence_and_can_be_forgotten(carrying: Path) -> None:
    model, text = load(carrying), make_text()
    state = model.remember(text)
    tokens = len(model.tokenizer.encode(text, special=False).ids)
    assert (state.seen, state.total, state.characters) == (tokens, tokens, len(text))
    answer = model.ask(state, QUESTION)
    assert (answer.text, answer.seen, answer.total) == ("lantern", tokens, tokens)
    assert answer.probability > 0.5
    first = text.index("felix")
    best = answer.evidence[0]
    assert first <= best.start < best.end <= first + len(FACT)
    forgotten = state.forget(first, first + len(FACT))
    after = model.ask(forgotten, QUESTION)
    assert after.text != "lantern" or after.probability < 0.5 * answer.probability
    overlapping = [evidence for evidence in after.evidence if evidence.start < first + 23 and evidence.end > first]
    assert not overlapping
    assert forgotten.filled < state.filled
    assert state.forget(len(text) + 5, len(text) + 9) is state


def test_an_answer_says_which_slots_it_read_and_what_was_written_there(carrying: Path) -> None:
    """Slots and evidence describe the same read: their weights sum to the same total."""
    model = load(carrying)
    state = model.remember(make_text())
    answer = model.ask(state, QUESTION)
    sources, shares = state.memory.origins
    for slot in answer.slots:
        indices = [int(index) for index, share in zip(sources[0, slot.number], shares[0, slot.number]) if share]
        spans = {tuple(state.spans[index].tolist()) for index in indices if index >= 0}
        assert {(source.start, source.end) for source in slot.sources} <= spans
    assert 0.9 < sum(slot.weight for slot in answer.slots) <= 1.001
    reported_weight = sum(slot.weight * source.weight for slot in answer.slots for source in slot.sources)
    assert abs(sum(evidence.weight for evidence in answer.evidence) - reported_weight) < 0.02


def test_a_state_records_the_salience_of_all_items_and_the_history_of_all_slots(carrying: Path) -> None:
    model = load(carrying)
    state = model.remember(make_text())
    assert len(state.worth) == len(state.spans) == int(state.memory.told)
    assert ((state.worth > 0) & (state.worth < 1)).all()
    assert state.history.shape == (state.segments, 16)
    sources, shares = state.memory.origins
    main_sources = sources.gather(-1, shares.argmax(-1, keepdim=True))[0, :, 0].tolist()
    assert state.history[-1, : len(main_sources)].tolist() == main_sources
    history = state.forget(2, 2 + len(FACT)).history
    forgotten = (state.spans[:, 0] < 25) & (state.spans[:, 1] > 2)
    assert not set(history[history >= 0].tolist()) & set(forgotten.nonzero().flatten().tolist())


@pytest.mark.parametrize("name", ["mass", "mann"])
def test_mass_and_mann_alone_beat_the_unigram_loss(name: str, tmp_path: Path) -> None:
    overrides = [TINY[1], TINY[2], "data.count=160", "data.length=16", "data.segments=2"]
    overrides += ["train.epochs=9", "train.batch=16", "train.rate=0.01", "train.validate=0", TINY[-3]]
    recipe = load_recipe(name, [*overrides, 'train.schedule={kind="constant"}'])
    rows = [report.row for report in fit(recipe, tmp_path / "run", device="cpu") if report.row is not None]
    dataset = load_data(recipe).train
    batch = dataset.batch(torch.arange(len(dataset)))
    counts = count_targets(batch.inputs.tokens[batch.inputs.text_mask], len(dataset.tokenizer))
    assert rows[-1]["loss"] < unigram_loss(counts, counts)


def train_steps_then_stop(recipe: Recipe, folder: Path, steps: int) -> None:
    run = fit(recipe, folder, device="cpu")
    for _ in islice(run, steps):
        pass
    run.close()  # type: ignore[attr-defined]


def test_a_run_that_was_stopped_ends_with_the_same_bits(tmp_path: Path) -> None:
    """Documents and masks are sampled in each step; the resumed run draws the same ones."""
    recipe = tiny("blended", 8, "train.batch=8", "data.count=100")
    recipe["objective"] |= {"mlm": 0.1, "write": 0.1}
    recipe["phases"] = [{"train": {"segments": 1, "steps": 4}}, {"train": {"segments": 3}}]
    for _ in fit(recipe, tmp_path / "whole", device="cpu"):
        pass
    for steps in (3, 4):
        train_steps_then_stop(recipe, tmp_path / "cut", steps)
    for _ in fit(recipe, tmp_path / "cut", device="cpu"):
        pass
    uninterrupted, resumed = (load(tmp_path / name) for name in ("whole", "cut"))
    for name, weight in weights_of(uninterrupted.network).items():
        assert torch.equal(weight, weights_of(resumed.network)[name]), name
    rows = [[row["losses"] for row in model.progress.history] for model in (uninterrupted, resumed)]
    assert rows[0] == rows[1]
    assert set(rows[0][-1]) == {"pred", "seq", "ctrl", "read", "mlm", "write"}


def test_a_hugging_face_encoder_folder_can_start_a_run(tmp_path: Path) -> None:
    no_training = "train.epochs=0"
    recipe_post_norm = tiny("selective", 0, 'model.encode.stack.norm="post"', no_training)
    for _ in fit(recipe_post_norm, tmp_path / "run", device="cpu"):
        pass
    first = load(tmp_path / "run")
    encoder = first.network.encode.eval()
    save_encoder(tmp_path / "theirs", Pretrained(encoder, first.tokenizer))
    recipe = start_recipe_from(tiny("blended", 0, no_training), tmp_path / "theirs")
    for _ in fit(recipe, tmp_path / "wrapped", device="cpu"):
        pass
    wrapped: Model = load(tmp_path / "wrapped")
    assert isinstance(wrapped.network, SegmentModel)
    start_weights = read_start_weights(tmp_path / "theirs")
    assert {f"encode.{name}" for name, _ in encoder.named_parameters()} <= start_weights.keys()
    for name, weight in wrapped.network.encode.named_parameters():
        assert torch.equal(weight, start_weights[f"encode.{name}"])
    shutil.rmtree(tmp_path / "theirs")  # a checkpoint needs no other folder
    assert load(tmp_path / "wrapped").progress.done


def test_training_in_stages_from_weights_alone(tmp_path: Path) -> None:
    """Parts named by ``model.init_parts`` are copied; the others are newly initialized."""
    for _ in fit(tiny("selective", 0, "train.epochs=0"), tmp_path / "one", seed=1, device="cpu"):
        pass
    start_weights = weights_of(load(tmp_path / "one").network)
    for parts in (["encode"], ["encode", "memory"], ["encode", "memory", "respond"]):
        recipe = start_recipe_from(tiny("selective", 0, "train.epochs=0"), tmp_path / "one")
        recipe = override(recipe, "model.init_parts", parts)
        folder = tmp_path / "-".join(parts)
        for _ in fit(recipe, folder, seed=2, device="cpu"):
            pass
        for name, weight in weights_of(load(folder).network).items():
            if name.partition(".")[0] in parts:
                assert torch.equal(weight, start_weights[name]), name
            elif weight.dim() > 1:  # biases and norms of any seed are the same
                assert not torch.equal(weight, start_weights[name]), name


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (["decode"], r"model\.init_parts is a list of some of encode, .* not \['decode'\]"),
        ("memory", r"is a list of some of .* not 'memory'"),
        (["mass"], "names 'mass', which .*theirs does not have"),
        (["encode", "memory"], "names 'memory', which .*theirs does not have"),
    ],
)
def test_parts_that_cannot_be_taken_over(parts: object, message: str, tmp_path: Path) -> None:
    recipe = tiny("selective", 0, 'model.encode.stack.norm="post"', "train.epochs=0")
    for _ in fit(recipe, tmp_path / "run", device="cpu"):
        pass
    first = load(tmp_path / "run")
    save_encoder(tmp_path / "theirs", Pretrained(first.network.encode, first.tokenizer))
    start_recipe = start_recipe_from(recipe, tmp_path / "theirs")
    with pytest.raises(ConfigError, match=message):
        list(fit(override(start_recipe, "model.init_parts", parts), tmp_path / "two", device="cpu"))
    del start_recipe["model"]["mass"]
    with pytest.raises(ConfigError, match="names 'mass', which this network does not have"):
        list(fit(override(start_recipe, "model.init_parts", ["mass"]), tmp_path / "two", device="cpu"))
    without_start = override(recipe, "model.init_parts", ["encode"])
    with pytest.raises(ConfigError, match="a network that starts from another: add --start DIR"):
        list(fit(without_start, tmp_path / "three", device="cpu"))


def set_quote_with_next_token_objective(recipe: Recipe) -> None:
    recipe["model"]["respond"] = {"kind": "quote"}
    recipe["objective"] = {"kind": "segment-next-token"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda recipe: recipe["model"].pop("segments"), "is read in segments: add model.segments"),
        (lambda recipe: recipe.update(data={"kind": "generated-babi"}), "model.segments reads in segments"),
        (lambda recipe: recipe["train"].update(segments=-1), "train.segments is at least 0"),
        (lambda recipe: recipe["model"].update(respond={"kind": "quote"}), r"set objective\.pred=0"),
        (set_quote_with_next_token_objective, "objective.kind is 'bert-mass', not 'segment-next-token'"),
    ],
)
def test_recipes_that_do_not_fit_say_so(change: Callable[[Recipe], object], message: str, tmp_path: Path) -> None:
    tiny_recipe = tiny("selective", 1)
    change(tiny_recipe)
    with pytest.raises(ConfigError, match=message):
        list(fit(tiny_recipe, tmp_path / "run", device="cpu"))
