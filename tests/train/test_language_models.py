"""Language models from the recipe to the table: training, sampling, perplexity."""

import json
from itertools import islice
from math import log2
from pathlib import Path
from typing import Any

import pytest
import text_files
import torch
from app_runs import run, sets

from mnemic.checkpoint.folder import weights_of
from mnemic.cli.plain_parser import run as run_plain
from mnemic.data.language_modeling.batches import END
from mnemic.predict.model import Model, load
from mnemic.predict.perplexity import compute_perplexity, compute_unigram_perplexity
from mnemic.predict.results import TextPerplexity
from mnemic.recipe import ConfigError, load_recipe
from mnemic.reproduce.words_table import DEFAULT_RECIPES, WordsTable
from mnemic.train.initialize import initialize_network
from mnemic.train.run import fit

TINY = (
    "model.width=32",
    "data.vocab=16",
    "data.length=12",
    "data.context=6",
    "data.validation=0.1",
    "train.batch=16",
    "train.epochs=6",
    "train.rate=0.01",
    "train.validate=3",
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return text_files.language_modeling(tmp_path_factory.mktemp("words"), 60)


@pytest.fixture(scope="module")
def table(files: Path) -> Path:
    """Train and test all four models with one command."""
    arguments = ("table", "words", "--data", files, *sets(*TINY), "--device", "cpu", "--json")
    result = run(*arguments, "--out", files / "table")
    assert result.code == 0, result.err
    return files / "table"


def runs(table: Path) -> dict[str, Model]:
    return {name: load(table / f"{name}-0") for name in DEFAULT_RECIPES}


def test_each_kind_learns_what_frequencies_cannot_tell(table: Path) -> None:
    """Four words of five follow from the word before: perplexity is far below unigram's."""
    results = json.loads((table / "table.json").read_text("utf-8"))
    guess = results["unigram"]
    assert guess["perplexity"] > 10
    for row in results["rows"]:
        assert row["perplexity"] < guess["perplexity"] / 2
        assert row["known words"] < guess["known words"] / 2
        assert row["unknown %"] == pytest.approx(guess["unknown %"])


@pytest.mark.parametrize("name", DEFAULT_RECIPES)
def test_what_is_said_first_depends_on_the_words_alike_in_all_kinds(name: str) -> None:
    """Logits of a new network have a standard deviation of about one.

    Without a norm an LSTM's states, and so its logits, would be over twenty times smaller than a
    Transformer's: after one epoch it was then worse than an Elman network.
    """
    network = initialize_network(load_recipe(name)["model"], {"vocab": 500, "max_length": 64}, seed=0).eval()
    tokens = torch.randint(500, (4, 64), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(tokens, dtype=torch.bool)
    with torch.no_grad():
        logits = network.respond(None, None, network.encode(tokens, mask), mask)  # b n v
    assert 0.8 < float(logits.std(-1).mean()) < 1.25


def test_the_table_compares_on_the_same_words(table: Path) -> None:
    results = json.loads((table / "table.json").read_text("utf-8"))
    assert [row["recipe"] for row in results["rows"]] == list(DEFAULT_RECIPES)
    assert len({row["words_read"] for row in results["rows"]}) == 1
    models = runs(table).values()
    assert len({model.tokenizer.vocabulary for model in models}) == 1  # type: ignore[attr-defined]
    assert len({json.dumps(model.recipe["data"]) for model in models}) == 1
    encoders = [model.recipe["model"]["encode"] for model in models]
    assert [encoder.get("recurrent", encoder)["kind"] for encoder in encoders] == ["elman", "gru", "lstm", "causal"]
    for row, model in zip(results["rows"], models):
        assert row["weights"] == sum(weight.numel() for weight in model.network.parameters())
        data = WordsTable(data=str(table / "words"), sets=TINY).build_data_source(str(table / "words")).load()
        metrics = compute_perplexity(model.network, data.test)
        assert row["perplexity"] == pytest.approx(metrics["perplexity"], rel=1e-4)
    assert results["unigram"] == compute_unigram_perplexity(data.train, data.test, len(data.tokenizer))


def test_a_table_that_is_there_is_not_trained_again(table: Path, files: Path) -> None:
    before = (table / "runs.jsonl").read_text("utf-8")
    arguments = ("table", "words", "--data", files, *sets(*TINY), "--device", "cpu")
    repeated = run(*arguments, "--out", table)
    assert (table / "runs.jsonl").read_text("utf-8") == before
    assert all(name in repeated.out for name in (*DEFAULT_RECIPES, "word frequencies"))
    assert (
        run_plain(["table", "words", "--data", str(files), *sets(*TINY), "--device", "cpu", "--out", str(table)]) == 0
    )
    assert (table / "runs.jsonl").read_text("utf-8") == before
    conflicting = run(*arguments, *sets("train.rate=0.02"), "--out", table)
    assert (conflicting.code, "another recipe or seed" in conflicting.err) == (2, True)


def test_other_words_cannot_be_compared(tmp_path: Path) -> None:
    recipe_path = tmp_path / "mine.toml"
    recipe_path.write_text('base = "lstm-words"\ndata = { length = 32 }\n', "utf-8")
    with pytest.raises(ConfigError, match="perplexities can be compared only on the same"):
        WordsTable(data=".", recipes=["gru-words", str(recipe_path)]).build_data_source(".")
    with pytest.raises(ConfigError, match="does not learn from data of kind 'words'"):
        WordsTable(data=".", recipes=["memn2n"]).build_data_source(".")


@pytest.mark.parametrize("name", ["lstm-words", "transformer-words", "elmo-words"])
def test_a_stopped_run_ends_with_the_same_bits(name: str, files: Path, tmp_path: Path) -> None:
    recipe = load_recipe(name, [*TINY, f"data.folder={files}", "train.steps=12"])
    assert len(list(fit(recipe, tmp_path / "whole", device="cpu"))) == 12
    steps: Any = fit(recipe, tmp_path / "parts", device="cpu")
    assert len(list(islice(steps, 5))) == 5
    steps.close()
    assert len(list(fit(recipe, tmp_path / "parts", device="cpu"))) == 7
    weights = [weights_of(load(tmp_path / name).network) for name in ("whole", "parts")]
    assert all(torch.equal(weights[0][weight_name], weights[1][weight_name]) for weight_name in weights[0])


@pytest.mark.parametrize("name", DEFAULT_RECIPES)
def test_going_on_is_reading_on(name: str, table: Path) -> None:
    """Cached steps give the log-probabilities of the full text; the seed decides."""
    model = runs(table)[name]
    text = "the old train ran past"
    completion, again, different = (model.complete([text], max_words=6, seed=seed)[0] for seed in (1, 1, 2))
    assert completion == again
    assert completion.text != different.text
    assert (completion.seen, completion.total) == (5, 5)
    assert "<" not in completion.text + different.text
    mark, ids = model.tokenizer.id_of(END), model.tokenizer.encode_batch([text, completion.text])
    row = torch.tensor([[mark, *ids[0], *ids[1]]])
    if len(ids[1]) == 6:
        with torch.no_grad():
            states = model.network.encode(row[:, :-1], torch.ones(1, 11, dtype=torch.bool))
            logits = model.network.respond(None, None, states, row)[0]
        logits[:, [model.tokenizer.pad, model.tokenizer.unknown]] = float("-inf")  # never sampled
        log_probabilities = logits.log_softmax(-1)
        log_probability = log_probabilities.gather(1, row[0, 1:, None])[5:].sum()
        assert completion.score == pytest.approx(float(log_probability), abs=1e-3)
    sure = model.complete([text], max_words=3, top_k=1)[0]
    assert sure.text == "a small grey"  # what most often follows
    long = model.complete([" ".join([text] * 4)], max_words=6)[0]
    assert (long.seen, long.total) == (6, 20)
    with pytest.raises(ConfigError, match="max_words is from 1 to 11, for this network, not 12"):
        model.complete([text], max_words=12)


def test_measuring_a_text(table: Path) -> None:
    model = runs(table)["gru-words"]
    likely, unlikely, with_unknown, empty = model.perplexity(
        ["the old train ran past a small grey house", "house train a the old", "old zebra", "!"]
    )
    assert likely.perplexity is not None
    assert unlikely.perplexity is not None
    assert with_unknown.perplexity is not None
    assert likely.perplexity < unlikely.perplexity / 2
    assert (with_unknown.unknown, with_unknown.total) == (1, 2)
    assert with_unknown.known is not None
    assert empty == TextPerplexity(None, None, 0, 0)


def test_commands_of_a_language_model(table: Path, files: Path) -> None:
    model = table / "lstm-words-0"
    result = run("predict", "--model", model, stdin="the old train\n")
    assert set(result.json) == {"file", "line", "perplexity", "known", "unknown", "total"}
    completed = run("predict", "--model", model, "--words", 4, stdin="the old train\n")
    assert set(completed.json) == {"file", "line", "text", "score", "seen", "total"}
    evaluation = run("evaluate", model, "--data", files, "--json").json
    assert list(evaluation["figures"]) == ["perplexity", "known words", "unknown %"]
    results = json.loads((table / "table.json").read_text("utf-8"))
    rows = {row["recipe"]: row["perplexity"] for row in results["rows"]}
    assert evaluation["bits"] == pytest.approx(log2(evaluation["figures"]["perplexity"]))
    assert evaluation["figures"]["perplexity"] == pytest.approx(rows["lstm-words"], rel=1e-4)
    assert "words asked for" in run("evaluate", model).out
    wrong = run("predict", "--model", model, "--beams", 2, stdin="a\n")
    assert (wrong.code, "samples its words" in wrong.err) == (2, True)
    wrong = run("predict", "--model", model, "--embed", stdin="a\n")
    assert (wrong.code, "it can complete, perplexity" in wrong.err) == (2, True)
    wrong = run("train", "lstm-words")
    assert (wrong.code, "this recipe learns from text files" in wrong.err) == (2, True)


def test_words_are_numbered_by_a_command(files: Path, tmp_path: Path) -> None:
    result = run("data", "words", "--data", files, "--out", tmp_path / "kept", *sets(*TINY))
    assert result.code == 0, result.err
    assert "a vocabulary of 16" in result.out
    again = run("data", "words", "--data", files, "--out", tmp_path / "kept", "--json")
    assert (again.code, "is there already" in again.json["error"]) == (2, True)
