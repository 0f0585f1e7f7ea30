"""Language models from the recipe to the table: they learn, speak, and are compared fairly."""

import json
from itertools import islice
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
    """All four, trained and tested by one command."""
    words = ("table", "words", "--data", files, *sets(*TINY), "--device", "cpu", "--json")
    done = run(*words, "--out", files / "table")
    assert done.code == 0, done.err
    return files / "table"


def runs(table: Path) -> dict[str, Model]:
    return {name: load(table / f"{name}-0") for name in DEFAULT_RECIPES}


def test_each_kind_learns_what_frequencies_cannot_tell(table: Path) -> None:
    """Four words of five follow from the one before: a perplexity far below guessing's."""
    found = json.loads((table / "table.json").read_text("utf-8"))
    guess = found["unigram"]
    assert guess["perplexity"] > 10
    for row in found["rows"]:
        assert row["perplexity"] < guess["perplexity"] / 2
        assert row["known words"] < guess["known words"] / 2
        assert row["unknown %"] == pytest.approx(guess["unknown %"])


@pytest.mark.parametrize("name", DEFAULT_RECIPES)
def test_what_is_said_first_depends_on_the_words_alike_in_all_kinds(name: str) -> None:
    """Scores of a new network differ by about one; an LSTM without a norm says all words alike.

    Its states would be over twenty times smaller than a Transformer's, and so would its scores:
    after one epoch it then knew less than an Elman network.
    """
    network = initialize_network(load_recipe(name)["model"], {"vocab": 500, "max_length": 64}, seed=0).eval()
    tokens = torch.randint(500, (4, 64), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(tokens, dtype=torch.bool)
    with torch.no_grad():
        scores = network.respond(None, None, network.encode(tokens, mask), mask)  # b n v
    assert 0.8 < float(scores.std(-1).mean()) < 1.25


def test_the_table_compares_on_the_same_words(table: Path) -> None:
    found = json.loads((table / "table.json").read_text("utf-8"))
    assert [row["recipe"] for row in found["rows"]] == list(DEFAULT_RECIPES)
    assert len({row["words_read"] for row in found["rows"]}) == 1
    every = runs(table).values()
    assert len({own.tokenizer.vocabulary for own in every}) == 1  # type: ignore[attr-defined]
    assert len({json.dumps(own.recipe["data"]) for own in every}) == 1
    kinds = [own.recipe["model"]["encode"] for own in every]
    assert [own.get("recurrent", own)["kind"] for own in kinds] == ["elman", "gru", "lstm", "causal"]
    for row, own in zip(found["rows"], every):
        assert row["weights"] == sum(weight.numel() for weight in own.network.parameters())
        data = WordsTable(data=str(table / "words"), sets=TINY).build_data_source(str(table / "words")).load()
        figures = compute_perplexity(own.network, data.test)
        assert row["perplexity"] == pytest.approx(figures["perplexity"], rel=1e-4)
    assert found["unigram"] == compute_unigram_perplexity(data.train, data.test, len(data.tokenizer))


def test_a_table_that_is_there_is_not_trained_again(table: Path, files: Path) -> None:
    before = (table / "runs.jsonl").read_text("utf-8")
    words = ("table", "words", "--data", files, *sets(*TINY), "--device", "cpu")
    shown = run(*words, "--out", table)
    assert (table / "runs.jsonl").read_text("utf-8") == before
    assert all(name in shown.out for name in (*DEFAULT_RECIPES, "word frequencies"))
    assert (
        run_plain(["table", "words", "--data", str(files), *sets(*TINY), "--device", "cpu", "--out", str(table)]) == 0
    )
    assert (table / "runs.jsonl").read_text("utf-8") == before
    other = run(*words, *sets("train.rate=0.02"), "--out", table)
    assert (other.code, "another recipe or seed" in other.err) == (2, True)


def test_other_words_cannot_be_compared(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text('base = "lstm-words"\ndata = { length = 32 }\n', "utf-8")
    with pytest.raises(ConfigError, match="perplexities can be compared only on the same"):
        WordsTable(data=".", recipes=["gru-words", str(own)]).build_data_source(".")
    with pytest.raises(ConfigError, match="does not learn from data of kind 'words'"):
        WordsTable(data=".", recipes=["memn2n"]).build_data_source(".")


@pytest.mark.parametrize("name", ["lstm-words", "transformer-words"])
def test_a_stopped_run_ends_with_the_same_bits(name: str, files: Path, tmp_path: Path) -> None:
    recipe = load_recipe(name, [*TINY, f"data.folder={files}", "train.steps=12"])
    assert len(list(fit(recipe, tmp_path / "whole", device="cpu"))) == 12
    steps: Any = fit(recipe, tmp_path / "parts", device="cpu")
    assert len(list(islice(steps, 5))) == 5
    steps.close()
    assert len(list(fit(recipe, tmp_path / "parts", device="cpu"))) == 7
    both = [weights_of(load(tmp_path / part).network) for part in ("whole", "parts")]
    assert all(torch.equal(both[0][part], both[1][part]) for part in both[0])


@pytest.mark.parametrize("name", DEFAULT_RECIPES)
def test_going_on_is_reading_on(name: str, table: Path) -> None:
    """Cached steps give the words their chances in the whole text, and the dice are the seed's."""
    own = runs(table)[name]
    text = "the old train ran past"
    said, again, other = (own.complete([text], max_words=6, seed=seed)[0] for seed in (1, 1, 2))
    assert said == again
    assert said.text != other.text
    assert (said.seen, said.total) == (5, 5)
    assert "<" not in said.text + other.text
    mark, ids = own.tokenizer.id_of(END), own.tokenizer.encode_batch([text, said.text])
    row = torch.tensor([[mark, *ids[0], *ids[1]]])
    if len(ids[1]) == 6:
        with torch.no_grad():
            states = own.network.encode(row[:, :-1], torch.ones(1, 11, dtype=torch.bool))
            scores = own.network.respond(None, None, states, row)[0]
        scores[:, [own.tokenizer.pad, own.tokenizer.unknown]] = float("-inf")  # never said
        chances = scores.log_softmax(-1)
        whole = chances.gather(1, row[0, 1:, None])[5:].sum()
        assert said.score == pytest.approx(float(whole), abs=1e-3)
    sure = own.complete([text], max_words=3, top_k=1)[0]
    assert sure.text == "a small grey"  # what most often follows
    long = own.complete([" ".join([text] * 4)], max_words=6)[0]
    assert (long.seen, long.total) == (6, 20)
    with pytest.raises(ConfigError, match="max_words is from 1 to 11, for this network, not 12"):
        own.complete([text], max_words=12)


def test_measuring_a_text(table: Path) -> None:
    own = runs(table)["gru-words"]
    likely, odd, strange, nothing = own.perplexity(
        ["the old train ran past a small grey house", "house train a the old", "old zebra", "!"]
    )
    assert likely.perplexity is not None
    assert odd.perplexity is not None
    assert strange.perplexity is not None
    assert likely.perplexity < odd.perplexity / 2
    assert (strange.unknown, strange.total) == (1, 2)
    assert strange.known is not None
    assert nothing == TextPerplexity(None, None, 0, 0)


def test_commands_of_a_language_model(table: Path, files: Path) -> None:
    model = table / "lstm-words-0"
    read = run("predict", "--model", model, stdin="the old train\n")
    assert set(read.json) == {"file", "line", "perplexity", "known", "unknown", "total"}
    more = run("predict", "--model", model, "--words", 4, stdin="the old train\n")
    assert set(more.json) == {"file", "line", "text", "score", "seen", "total"}
    tested = run("evaluate", model, "--data", files, "--json").json
    assert list(tested["figures"]) == ["perplexity", "known words", "unknown %"]
    whole = json.loads((table / "table.json").read_text("utf-8"))
    rows = {row["recipe"]: row["perplexity"] for row in whole["rows"]}
    assert tested["figures"]["perplexity"] == pytest.approx(rows["lstm-words"], rel=1e-4)
    assert "words asked for" in run("evaluate", model).out
    wrong = run("predict", "--model", model, "--beams", 2, stdin="a\n")
    assert (wrong.code, "samples its words" in wrong.err) == (2, True)
    wrong = run("predict", "--model", model, "--embed", stdin="a\n")
    assert (wrong.code, "it can complete, perplexity" in wrong.err) == (2, True)
    wrong = run("train", "lstm-words")
    assert (wrong.code, "this recipe learns from text files" in wrong.err) == (2, True)


def test_words_are_numbered_by_a_command(files: Path, tmp_path: Path) -> None:
    done = run("data", "words", "--data", files, "--out", tmp_path / "kept", *sets(*TINY))
    assert done.code == 0, done.err
    assert "a vocabulary of 16" in done.out
    again = run("data", "words", "--data", files, "--out", tmp_path / "kept", "--json")
    assert (again.code, "is there already" in again.json["error"]) == (2, True)
