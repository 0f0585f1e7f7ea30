"""Training on text tasks: metrics, best weights, resuming, and starting from weights."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from text_runs import EPOCHS, files, run_of, tiny, trained

from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.checkpoint.folder import weights_of
from mnemic.data import DATASETS
from mnemic.data.text_tasks.encode_windows import encode_tagged
from mnemic.data.text_tasks.examples import TaggedExample
from mnemic.encode import Pretrained, save_encoder
from mnemic.evaluate.error_rate import evaluate_network
from mnemic.evaluate.text_metrics import compute_metrics
from mnemic.models import build_model
from mnemic.predict.model import load
from mnemic.predict.windows import compute_class_logits, compute_tag_logits
from mnemic.recipe import ConfigError, build, load_recipe
from mnemic.text import WindowOptions, WordTokenizer
from mnemic.train.initialize import start_recipe_from
from mnemic.train.run import fit, load_data

MIN_METRICS = {
    "classes": ("accuracy", 95),
    "pairs": ("accuracy", 95),
    "numbers": ("pearson", 95),
    "spans": ("f1", 95),
    "tags": ("entity f1", 95),
}


@pytest.mark.parametrize("kind", MIN_METRICS)
def test_a_tiny_network_learns(kind: str) -> None:
    """On test texts, by the task's own metric, which comes first."""
    model = trained(kind)
    source = build(DATASETS, model.recipe["data"])
    metrics = compute_metrics(model.network, source.dataset("test", model.tokenizer, model.labels))
    name, min_value = MIN_METRICS[kind]
    assert next(iter(metrics)) == name
    assert metrics[name] >= min_value
    if kind == "spans":
        assert metrics["no answer"] >= 95  # a third of the questions has none


def test_the_weights_that_did_best_are_kept() -> None:
    model = trained("classes")
    rows = [row for row in model.progress.history if "figures" in row]
    assert len(rows) == EPOCHS["classes"]
    assert all(row["validation"] == 100 - row["figures"]["accuracy"] for row in rows)
    validation = build(DATASETS, model.recipe["data"]).dataset("validation", model.tokenizer, model.labels)
    assert evaluate_network(model.network, validation)[0] == min(row["validation"] for row in rows)


@pytest.mark.parametrize("kind", ["pairs", "spans", "tags"])
def test_a_stopped_run_ends_with_the_same_bits(kind: str, tmp_path: Path) -> None:
    """Stopped within an epoch, with dropout, buckets and best weights so far."""
    recipe = tiny(kind, files(kind, tmp_path), "train.epochs=2", "train.steps=15")
    total = len(list(fit(recipe, tmp_path / "whole", device="cpu")))
    assert total > 12
    steps: Any = fit(recipe, tmp_path / "parts", device="cpu")
    assert len(list(islice(steps, 11))) == 11
    steps.close()
    assert load(tmp_path / "parts").progress.step == 11
    reports = list(fit(recipe, tmp_path / "parts", device="cpu"))
    assert [report.step for report in reports] == list(range(12, total + 1))
    models = [load(tmp_path / name) for name in ("whole", "parts")]
    for weight, expected in zip(*(weights_of(model.network).values() for model in models)):
        assert torch.equal(weight, expected)
    losses = [[row["loss"] for row in model.progress.history] for model in models]
    assert losses[0] == losses[1]


def test_labels_are_stored_and_other_data_is_refused(tmp_path: Path) -> None:
    model = trained("classes")
    assert model.labels == ("bad", "good")
    recipe = tiny("classes", files("classes", tmp_path), "train.epochs=1")
    next(steps := fit(recipe, tmp_path / "run", device="cpu"))
    steps.close()  # type: ignore[attr-defined]
    path = tmp_path / "train.jsonl"
    path.write_text(path.read_text("utf-8").replace('"good"', '"fine"'), encoding="utf-8")
    with pytest.raises(CheckpointError, match="the data is not what"):
        next(iter(fit(recipe, tmp_path / "run", device="cpu")))


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (["objective.kind=tags"], "objective.kind is 'tags', but data of kind 'classes' needs"),
        (['model.respond.kind="spans"'], r"model\.respond\.kind is 'spans', .* needs 'classes'"),
        (["model.memory.kind=memn2n"], r"is read in windows, without a memory: leave model\.memory"),
        (["data.length=600"], "there are 512 learned positions"),
        (["data.labels=numbers", "data.metric=pearson"], "objective.kind .* needs 'numbers'"),
    ],
)
def test_recipes_that_do_not_fit_their_data(sets: list[str], message: str, tmp_path: Path) -> None:
    recipe = tiny("classes", files("classes", tmp_path), *sets)
    with pytest.raises(ConfigError, match=message):
        next(iter(fit(recipe, tmp_path / "run", device="cpu")))


def test_stories_need_a_memory() -> None:
    recipe = {"data": {"kind": "generated-babi"}, "objective": {"kind": "answer"}, "model": {
        "width": 8, "encode": {"kind": "bag"}, "respond": {"kind": "word"}}}  # fmt: skip
    with pytest.raises(ConfigError, match="data of kind 'generated-babi' needs a memory: add"):
        load_data(recipe)


def test_stories_can_be_put_together_by_length_too(tmp_path: Path) -> None:
    sets = ['data={kind="generated", tasks=[1], count=80}', "train.steps=4", "train.batch=8"]
    recipe = load_recipe("memn2n", [*sets, "phases.0.train.steps=4", "train.buckets=3"])
    assert len(list(fit(recipe, tmp_path / "run", device="cpu"))) == 8


def test_products_of_half_the_bits_learn_nearly_the_same(tmp_path: Path) -> None:
    losses = {}
    for matmul in ("float32", "bf16"):
        sets = ("train.epochs=2", f"train.matmul={matmul}", "model.encode.stack.dropout=0.0")
        recipe = tiny("classes", files("classes", tmp_path), *sets)
        list(fit(recipe, tmp_path / matmul, device="cpu"))
        model = load(tmp_path / matmul)
        losses[matmul] = [row["loss"] for row in model.progress.history]
        assert all(weight.dtype == torch.float32 for weight in model.network.parameters())
    assert losses["bf16"] == pytest.approx(losses["float32"], rel=0.1)
    assert losses["bf16"] != losses["float32"]


# Where a network begins ------------------------------------------------------------------------


def test_a_network_can_begin_with_the_encoder_of_another(tmp_path: Path) -> None:
    """A tagger starts from a classifier's encoder; the head is new."""
    start = run_of("classes")
    stored = f'data.tokenizer={{kind="stored", folder="{start / "checkpoint"}"}}'
    recipe = tiny("tags", files("tags", tmp_path), f"model.start={start}", stored, "train.epochs=0")
    assert list(fit(recipe, tmp_path / "run", device="cpu")) == []
    old, new = trained("classes"), load(tmp_path / "run")
    weights, expected = weights_of(new.network.encode), weights_of(old.network.encode)
    assert weights.keys() == expected.keys()
    assert all(torch.equal(weights[name], expected[name]) for name in weights)
    assert new.tokenizer == old.tokenizer
    assert new.network.respond.out.weight.shape[0] == 4  # O, B-person, B-place, I-place


def test_what_is_fixed_does_not_learn(tmp_path: Path) -> None:
    """Frozen weights do not change, and have no dropout; a stopped run resumes."""
    folder = files("classes", tmp_path)
    adamw = 'train.optimizer={kind="adamw", decay=1}'
    sets = ['train.fixed=["encode"]', "train.keep=last", "train.epochs=2", adamw]
    recipe = tiny("classes", folder, *sets)
    list(fit(tiny("classes", folder, "train.epochs=0"), tmp_path / "before", device="cpu"))
    list(fit(recipe, tmp_path / "run", device="cpu"))
    before, after = (weights_of(load(tmp_path / name).network) for name in ("before", "run"))
    unchanged = {name for name in before if torch.equal(before[name], after[name])}
    assert unchanged == {name for name in before if name.startswith("encode.")}
    steps = fit(recipe, tmp_path / "again", device="cpu")
    list(islice(steps, 5))
    steps.close()
    list(fit(recipe, tmp_path / "again", device="cpu"))
    again = weights_of(load(tmp_path / "again").network)
    assert all(torch.equal(after[name], again[name]) for name in after)
    dropout_sets = [f"model.encode.{layers}.dropout=0.5" for layers in ("embeddings", "stack")]
    list(fit(tiny("classes", folder, *sets, *dropout_sets), tmp_path / "torn", device="cpu"))
    weights = weights_of(load(tmp_path / "torn").network)
    assert all(torch.equal(after[name], weights[name]) for name in after)
    layer = tiny("classes", folder, 'train.fixed=["encode.stack.blocks.0"]', "train.keep=last")
    list(fit(layer, tmp_path / "layer", device="cpu"))
    weights = weights_of(load(tmp_path / "layer").network)
    unchanged = {name for name in before if torch.equal(before[name], weights[name])}
    assert unchanged == {name for name in before if name.startswith("encode.stack.blocks.0.")}
    wrong = tiny("classes", folder, 'train.fixed=["encoder"]')
    with pytest.raises(ConfigError, match="names parts of encode, respond, or of these, not enco"):
        list(fit(wrong, tmp_path / "wrong", device="cpu"))


def test_a_network_of_fewer_layers_begins_with_evenly_spaced_ones(tmp_path: Path) -> None:
    folder = files("classes", tmp_path)
    list(fit(tiny("classes", folder, "model.encode.stack.depth=3"), tmp_path / "3", device="cpu"))
    stored = f'data.tokenizer={{kind="stored", folder="{tmp_path / "3" / "checkpoint"}"}}'
    sets = [f"model.start={tmp_path / '3'}", stored, "train.epochs=0"]
    fewer = tiny("classes", folder, "model.encode.stack.depth=2", *sets)
    list(fit(fewer, tmp_path / "2", device="cpu"))
    weights, deeper_weights = (weights_of(load(tmp_path / depth).network.encode) for depth in "23")
    layers = {"stack.blocks.0.": "stack.blocks.0.", "stack.blocks.1.": "stack.blocks.2."}  # the first and the last
    for name, weight in weights.items():
        prefix = next((prefix for prefix in layers if name.startswith(prefix)), "")
        assert torch.equal(weight, deeper_weights[layers.get(prefix, "") + name.removeprefix(prefix)])
    more = tiny("classes", folder, "model.encode.stack.depth=4", *sets)
    with pytest.raises(CheckpointError, match=r"has no weight 'encode\.stack\.blocks\.3"):
        list(fit(more, tmp_path / "4", device="cpu"))


def test_a_network_can_begin_with_a_hugging_face_folder(tmp_path: Path) -> None:
    post = "model.encode.stack.norm=post"
    recipe = tiny("classes", files("classes", tmp_path), post, "train.epochs=0")
    list(fit(recipe, tmp_path / "first", device="cpu", seed=1))
    first = load(tmp_path / "first")
    save_encoder(tmp_path / "theirs", Pretrained(first.network.encode.eval(), first.tokenizer))
    stored = f'data.tokenizer={{kind="stored", folder="{tmp_path / "theirs"}"}}'
    start = f"model.start={tmp_path / 'theirs'}"
    recipe = tiny("classes", files("classes", tmp_path), post, start, stored, "train.epochs=0")
    list(fit(recipe, tmp_path / "second", device="cpu", seed=2))
    second = load(tmp_path / "second")
    weights, expected = weights_of(second.network.encode), weights_of(first.network.encode)
    assert all(torch.equal(weights[name], expected[name]) for name in expected)
    assert second.tokenizer == first.tokenizer
    texts = ["a lovely house", "an awful train"]
    assert torch.equal(second.embed(texts).vectors, first.embed(texts).vectors)
    for folder in (tmp_path / "theirs", tmp_path / "first"):  # the encoder's sizes come with it
        none = "started.train.epochs=0"
        smaller = tiny("classes", files("classes", tmp_path), none, "model.width=16")
        list(fit(start_recipe_from(smaller, folder), tmp_path / "third", device="cpu", fresh=True))
        third = load(tmp_path / "third")
        assert torch.equal(third.embed(texts).vectors, first.embed(texts).vectors)


def test_a_start_that_does_not_fit(tmp_path: Path) -> None:
    folder = files("classes", tmp_path)
    for sets, message in (
        ([f"model.start={run_of('classes')}", "model.width=16"], r"'.*' has shape \(\d+, 32\), its"),
        ([f"model.start={tmp_path / 'nowhere'}"], "nowhere', which is no folder"),
        (["model.start=3"], "model.init_from is a folder with weights, not 3"),
    ):
        with pytest.raises(ValueError, match=message):
            next(iter(fit(tiny("classes", folder, *sets), tmp_path / "run", device="cpu")))


# Reading in windows ----------------------------------------------------------------------------


def test_tags_of_windows_are_those_of_the_whole_where_context_does_not_matter() -> None:
    """An encoder without attention and positions gives the same logits in any window."""
    encode = {"kind": "transformer", "stack": {"kind": "encoder", "depth": 0},
              "embeddings": {"kind": "sum", "positions": {"kind": "none"}}}  # fmt: skip
    text = " ".join(f"w{n % 17}" for n in range(60))
    tokenizer = WordTokenizer.from_texts([text])
    sizes = {"vocab": len(tokenizer), "classes": 3, "max_length": 99}
    network = build_model({"width": 8, "encode": encode, "respond": {"kind": "tags"}}, sizes).eval()
    example = TaggedExample(text, tuple(tokenizer.encode(text).offsets), ())
    in_one_window, in_several_windows = (
        compute_tag_logits(network, encode_tagged([example], tokenizer, options, labels=("O", "B-x", "I-x")))[0]
        for options in (WindowOptions(99, 0), WindowOptions(11, 4))
    )
    assert in_one_window.shape == (60, 3)
    torch.testing.assert_close(in_several_windows, in_one_window)


def test_a_texts_class_is_the_mean_of_its_windows() -> None:
    model = trained("classes")
    source = build(DATASETS, model.recipe["data"])
    texts = source.dataset("test", model.tokenizer, model.labels)
    logits = compute_class_logits(model.network, texts)
    long_texts = [n for n in range(len(texts)) if texts.first_window[n + 1] - texts.first_window[n] > 1]
    assert long_texts
    for number in [*long_texts[:5], 0]:
        windows = torch.arange(int(texts.first_window[number]), int(texts.first_window[number + 1]))
        with torch.no_grad():
            mean_logits = model.network(texts.make_windows(windows)[0]).logits.mean(0)
        torch.testing.assert_close(logits[number], mean_logits)
