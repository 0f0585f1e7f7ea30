"""The reader: training of retrieval and answers, calibration, and 8-bit weights."""

import json
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import text_files
import torch
from safetensors.torch import load_file
from shared_folders import make_temporary_folder

from mnemic.checkpoint.folder import save_checkpoint, weights_of
from mnemic.checkpoint.quantize import dequantize_weights, quantize_weights
from mnemic.cli.main import main
from mnemic.data import DATASETS
from mnemic.data.text_tasks.batches import TextDataset
from mnemic.data.text_tasks.retrieval import ArticleFiles
from mnemic.evaluate.calibration import Calibration, apply_calibration, calibrate_no_answer, fit_platt_scaling
from mnemic.evaluate.metrics import balanced_accuracy, expected_calibration_error
from mnemic.evaluate.text_metrics import compute_metrics
from mnemic.predict.model import Model, load
from mnemic.predict.windows import compute_text_vectors, predict_spans
from mnemic.recipe import ConfigError, Recipe, build, load_recipe
from mnemic.reproduce import publish as ship_module
from mnemic.reproduce.publish import publish_checkpoint
from mnemic.respond.spans import SpanHead
from mnemic.train.initialize import start_recipe_from
from mnemic.train.run import fit, load_data

TINY = [
    "model.width=32",
    "model.encode.stack.depth=2",
    "model.encode.stack.attention.heads=4",
    'data.tokenizer={kind="wordpiece", vocab=400}',
    "data.length=24",
    "data.overlap=6",
    "data.validation=0.1",
    "data.articles=4",
    "data.passages=4",
    "data.asked_each=1",
    "data.wrong=0.4",
    "data.elsewhere=0.1",
    "train.matmul=float32",
    "train.rate=0.003",
    "train.batch=16",
    "train.epochs=14",
]
SOURCES = ["training data: texts of this test (Apache-2.0)"]


def tiny(folder: Path, *sets: str) -> Recipe:
    text_files.retrieval(folder, 400)
    return load_recipe("reader", [*TINY, f"data.folder={folder}", *sets])


@cache
def run() -> Path:
    folder = make_temporary_folder()
    for _ in fit(tiny(folder), folder / "run", device="cpu"):
        pass
    return folder / "run"


@cache
def trained() -> Model:
    return load(run())


def article_files() -> ArticleFiles:
    source = build(DATASETS, trained().recipe["data"])
    assert isinstance(source, ArticleFiles)
    return source


def held_out_articles() -> TextDataset:
    return article_files().dataset("test", trained().tokenizer)


@cache
def compute_test_metrics() -> dict[str, float]:
    return compute_metrics(trained().network, held_out_articles())


def test_a_tiny_network_learns_both_jobs() -> None:
    """Chance retrieves one text of four, and is right about no answer half the time."""
    metrics = compute_test_metrics()
    assert metrics["f1"] >= 95
    assert metrics["exact"] >= 95
    assert metrics["no answer"] >= 80
    assert metrics["no answer AUROC"] >= 85
    assert metrics["calibration error"] <= 10
    model, num_right = trained(), 0
    articles = article_files().read_split("test")
    for article in articles:
        questions, texts = ([getattr(example, field) for example in article] for field in ("question", "text"))
        scores = model.embed(questions).vectors @ model.embed(texts).vectors.mT
        num_right += int((scores.argmax(1) == torch.arange(len(article))).sum())
    assert num_right >= 0.9 * sum(map(len, articles))


def test_recall_counts_the_texts_that_are_nearer() -> None:
    """Compare with a sort of all texts."""
    model = trained()
    test: Any = held_out_articles()
    questions, texts = (compute_text_vectors(model.network, windows) for windows in test.retrieval[:2])
    order = (questions @ texts.mT).argsort(1, descending=True)
    right = torch.tensor(test.retrieval.gold_texts).unsqueeze(1)
    for top_k in (1, 5):
        share = (order[:, :top_k] == right).any(1).float().mean()
        assert compute_test_metrics()[f"recall@{top_k}"] == pytest.approx(100 * float(share), abs=2)


def test_it_answers_declines_and_finds() -> None:
    model = trained()
    text = "the old train Bob was in Lima a small house"
    answer = model.answer("where was Bob ?", text)
    assert (answer.quote(text), answer.has_answer) == ("Lima", True)
    assert not model.answer("where was Eve ?", text).has_answer
    texts = ["old Ann was in Rome today", "grey Bob was in Oslo the", "past Eve was in Lima a"]
    vectors, questions = model.embed(texts).vectors, model.embed(["where was Eve ?"]).vectors
    assert int((vectors @ questions[0]).argmax()) == 2


def test_products_in_bf16_say_the_same() -> None:
    text, question = "the old train Bob was in Lima a small house", "where was Bob ?"
    fast, exact = load(run(), precision="bfloat16"), trained()
    answer, expected = (model.answer(question, text) for model in (fast, exact))
    assert (answer.start, answer.end) == (expected.start, expected.end)
    assert answer.no_answer == pytest.approx(expected.no_answer, abs=0.1)
    vector, expected_vector = (model.embed([text]).vectors for model in (fast, exact))
    assert float((vector * expected_vector).sum()) > 0.999


def test_a_stopped_run_ends_with_the_same_bits(tmp_path: Path) -> None:
    """It is calibrated once, at the end: resuming a finished run changes nothing."""
    recipe = tiny(tmp_path, "train.steps=8")
    list(fit(recipe, tmp_path / "whole", device="cpu"))
    steps: Any = fit(recipe, tmp_path / "parts", device="cpu")
    assert len(list(islice(steps, 5))) == 5
    steps.close()
    list(fit(recipe, tmp_path / "parts", device="cpu"))
    before = weights_of(load(tmp_path / "parts").network)
    assert list(fit(recipe, tmp_path / "parts", device="cpu")) == []
    for run_name in ("whole", "parts"):
        for name, weight in weights_of(load(tmp_path / run_name).network).items():
            assert torch.equal(weight, before[name]), name


def test_products_in_bf16_train_as_well(tmp_path: Path) -> None:
    recipe = tiny(tmp_path, "train.steps=3", "train.matmul=bf16", "objective.smooth=0.1")
    rows = [report.row for report in fit(recipe, tmp_path / "run", device="cpu")]
    assert 0 < rows[-1]["loss"] < 20  # type: ignore[index]


def test_a_start_keeps_the_dropout_of_the_recipe(tmp_path: Path) -> None:
    recipe = tiny(tmp_path, "model.encode.stack.dropout=0.3")
    started_recipe = start_recipe_from(recipe, run())
    assert started_recipe["model"]["encode"]["stack"]["dropout"] == 0.3
    assert started_recipe["model"]["encode"]["stack"]["depth"] == 2


def test_a_head_learns_which_texts_answer(tmp_path: Path) -> None:
    """From the encoder of a network without one; distractors are of the same article."""
    sets = ("model.respond.relevance=true", "objective.relevance=1.0", "train.epochs=2")
    recipe = start_recipe_from(tiny(tmp_path, *sets), run())
    rows: list[Any] = [report.row for report in fit(recipe, tmp_path / "run", device="cpu") if report.row]
    losses = [row["losses"]["relevance"] for row in rows]
    assert losses[-1] < losses[0]
    model, num_best = load(tmp_path / "run"), 0
    articles = build(DATASETS, model.recipe["data"]).read_split("test")  # type: ignore[attr-defined]
    for article in articles:
        texts = [example.text for example in article]
        num_best += sum(
            model.rerank(example.question, texts)[0].index == index for index, example in enumerate(article)
        )
    assert num_best >= 0.9 * sum(map(len, articles))


# Calibration -----------------------------------------------------------------------------------


def test_a_scale_and_a_shift_are_found_again() -> None:
    generator = torch.Generator().manual_seed(0)
    margins = 4 * torch.randn(40_000, generator=generator).double()
    has_no_answer = torch.rand(40_000, generator=generator) < (0.5 * margins + 1).sigmoid()
    calibration = fit_platt_scaling(margins, has_no_answer)
    class_ratio = float(has_no_answer.sum() / (~has_no_answer).sum())  # both classes have the same weight
    assert calibration.scale == pytest.approx(0.5, rel=0.1)
    assert calibration.shift == pytest.approx(1 - torch.tensor(class_ratio).log().item(), abs=0.15)
    separable = fit_platt_scaling(torch.tensor([-3.0, -2.0, 2.0, 3.0]).double(), torch.tensor([0, 0, 1, 1]).bool())
    assert 0 < separable.scale < 10  # finite, though no text is on the wrong side
    assert fit_platt_scaling(margins, torch.ones_like(has_no_answer)) == Calibration(1.0, 0.0)


def test_calibration_moves_doubts_and_keeps_answers() -> None:
    """In a network whose logits are four times too large and biased to answering."""
    model, validation = load(run()), load_data(trained().recipe).validation
    respond = model.network.respond
    assert isinstance(respond, SpanHead)
    before = predict_spans(model.network, validation)  # type: ignore[arg-type]
    apply_calibration(respond, Calibration(4.0, -12.0))
    uncalibrated = compute_metrics(model.network, validation)  # type: ignore[arg-type]
    calibrate_no_answer(model.network, validation)  # type: ignore[arg-type]
    after = predict_spans(model.network, validation)  # type: ignore[arg-type]
    assert [span[:3] for span in after] == [span[:3] for span in before]
    calibrated = compute_metrics(model.network, validation)  # type: ignore[arg-type]
    assert calibrated["no answer"] >= uncalibrated["no answer"]
    probabilities = torch.tensor(
        [[first.no_answer_probability, second.no_answer_probability] for first, second in zip(before, after)]
    )
    torch.testing.assert_close(probabilities[:, 0], probabilities[:, 1], atol=0.05, rtol=0)


def test_balance_and_calibration_error_are_counted_by_hand() -> None:
    assert balanced_accuracy([True, True, False, False], [True, True, True, False]) == (2 / 3 + 1) / 2
    assert balanced_accuracy([True, False], [True, True]) == 0.5
    assert expected_calibration_error([1.0, 1.0, 0.0], [True, True, False]) == 0
    assert expected_calibration_error([0.9, 0.9], [True, False]) == pytest.approx(0.4)
    assert expected_calibration_error([0.5, 0.5, 0.5], [True, True, False]) == pytest.approx(0)


# Eight bits ------------------------------------------------------------------------------------


def test_eight_bits_are_off_by_half_a_scale_at_most() -> None:
    torch.manual_seed(0)
    weights = {"a": torch.randn(5, 7), "b": torch.randn(7), "z": torch.zeros(2, 3)}
    weights["a"][1] *= 1000  # a row of large numbers does not spoil the others
    stored = quantize_weights(weights)
    assert (stored["a"].dtype, stored["b"].dtype) == (torch.int8, torch.float32)
    restored = dequantize_weights(stored)
    assert restored.keys() == weights.keys()
    assert torch.equal(restored["b"], weights["b"])
    assert torch.equal(restored["z"], weights["z"])
    max_error = (restored["a"] - weights["a"]).abs().amax(1)
    assert (max_error <= 0.501 * stored["a.scale"]).all()
    assert torch.equal(dequantize_weights(quantize_weights(restored))["a"], restored["a"])  # once is enough
    assert dequantize_weights(weights) == weights  # weights that were never quantized stay


def test_a_small_checkpoint_is_loaded_as_any_other(tmp_path: Path) -> None:
    model = trained()
    save_checkpoint(tmp_path / "small", model.checkpoint, quantize=True)
    save_checkpoint(tmp_path / "whole", model.checkpoint)
    sizes = [(tmp_path / name / "weights.safetensors").stat().st_size for name in ("small", "whole")]
    assert sizes[0] < 0.4 * sizes[1]
    quantized = load(tmp_path / "small")
    assert {weight.dtype for weight in quantized.network.parameters()} == {torch.float32}
    expected = compute_test_metrics()
    for name, metric in compute_metrics(quantized.network, held_out_articles()).items():
        assert metric == pytest.approx(expected[name], abs=3), name


def test_it_ships_in_eight_bits_with_a_card(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [
        "ship",
        str(run()),
        "reader",
        "--command",
        "mnemic train reader",
        "--precision",
        "int8",
        "--source",
        *SOURCES,
    ]
    assert main([*arguments, "--into", str(tmp_path)]) == 0
    card = json.loads(capsys.readouterr().out)
    assert card["figures"]["f1"] >= 95
    assert card["texts"] == 120
    stored = load_file(tmp_path / "reader" / "weights.safetensors")
    assert stored["encode.embeddings.tokens"].dtype == torch.int8
    recipe = load(tmp_path / "reader").recipe
    assert recipe["data"] == card["data"]
    assert str(run().parent) not in json.dumps(recipe)
    monkeypatch.setattr(ship_module, "MAX_NETWORK_BYTES", 1000)
    with pytest.raises(ConfigError, match="over 1000; try precision int8"):
        publish_checkpoint(run(), "reader", command="…", sources=SOURCES, into=tmp_path)
