"""Embeddings that start from word vectors: exact rows, other rows untouched, no folder later."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import text_files
import torch
from text_runs import files, tiny
from vector_files import save_table, write_vector_lines

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.checkpoint.vectors import load_vectors
from mnemic.data.contract import Data
from mnemic.predict.model import load
from mnemic.recipe import ConfigError, Recipe, load_recipe, override, parse_assignment
from mnemic.text.tokenizers.match_words import match_words
from mnemic.train.initialize import initialize_network
from mnemic.train.run import fit, load_data
from mnemic.train.start.fill_embeddings import FilledRows, fill_embeddings

WORDS = 'data.tokenizer={kind="words"}'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of a classifier, and vectors of width 32 of many of their words."""
    folder = files("classes", tmp_path_factory.mktemp("classes"))
    data = load_data(tiny("classes", folder, WORDS))
    save_table(folder / "vectors", [*data.tokenizer.vocabulary[2::2], "zebra"], 32)
    return folder


def start_recipe(folder: Path, *sets: str) -> Recipe:
    return tiny("classes", folder, WORDS, f"model.init_vectors={folder / 'vectors'}", *sets)


def fill(recipe: Recipe) -> tuple[Any, Any, Data, FilledRows]:
    """Return a network with random weights, the same with vectors, the data and the report."""
    data, model = load_data(recipe), recipe["model"]
    plain, network = (initialize_network(model, data.sizes, 0) for _ in range(2))
    return plain, network, data, fill_embeddings(network, model, data.tokenizer)


# Rows -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokenizer", ["words", "wordpiece", "bpe", "byte-bpe"])
def test_rows_of_words_are_their_vectors_and_others_stay(tokenizer: str, folder: Path) -> None:
    vocab = "" if tokenizer == "words" else ", vocab=400"
    recipe = start_recipe(folder, f'data.tokenizer={{kind="{tokenizer}"{vocab}}}')
    plain, network, data, report = fill(recipe)
    words, vectors = load_table(folder)
    before, after = (model.encode.embeddings.tokens.detach() for model in (plain, network))
    ids = dict(match_words(data.tokenizer, words))
    for row in range(len(before)):
        if row in ids:
            assert torch.equal(after[row], vectors[ids[row]] * report.scale)
        else:
            assert torch.equal(after[row], before[row])
    assert (report.filled, report.rows) == (len(ids), len(data.tokenizer))
    assert 5 < report.filled < report.rows
    for name, weight in plain.state_dict().items():
        is_table = name == "encode.embeddings.tokens"
        assert torch.equal(weight, network.state_dict()[name]) != is_table, name


def load_table(folder: Path) -> tuple[tuple[str, ...], torch.Tensor]:
    table = load_vectors(folder / "vectors")
    return table.words, table.vectors


def test_vectors_are_as_long_as_the_random_rows_on_average(folder: Path) -> None:
    plain, network, _, report = fill(start_recipe(folder))
    before, after = (model.encode.embeddings.tokens.detach().double() for model in (plain, network))
    is_filled = (before != after).any(1)
    assert int(is_filled.sum()) == report.filled
    mean_squares = [rows.square().sum(1).mean() for rows in (after[is_filled], before)]
    assert float(mean_squares[0]) == pytest.approx(float(mean_squares[1]), rel=1e-5)
    assert report.scale == pytest.approx(1 / (3 * 32**0.5), rel=0.3)  # random rows have a length of about 1


def test_a_word_that_is_spelled_like_the_token_goes_before_a_more_frequent_one(tmp_path: Path) -> None:
    text_files.classes(tmp_path)
    data = load_data(tiny("classes", tmp_path, WORDS))
    word = data.tokenizer.vocabulary[5]
    vectors = {word.upper(): [1.0] * 32, word: [2.0] * 32, f"{word}.": [3.0] * 32, word.title(): [4.0] * 32}
    path = write_vector_lines(tmp_path / "glove.txt", vectors)
    recipe = tiny("classes", tmp_path, WORDS, f"model.init_vectors={path}")
    _, network, _, report = fill(recipe)
    assert report.filled == 1
    assert torch.equal(network.encode.embeddings.tokens[5], torch.full((32,), 2.0) * report.scale)
    del vectors[word]
    write_vector_lines(path, vectors)
    _, network, _, report = fill(recipe)  # now the first of the others
    assert torch.equal(network.encode.embeddings.tokens[5], torch.ones(32) * report.scale)


def test_language_models_share_the_rows_with_their_output(tmp_path: Path) -> None:
    text_files.language_modeling(tmp_path)
    save_table(tmp_path / "vectors", ["the", "a", "on", "we"], 32)
    sets = ("model.width=32", "data.vocab=16", "data.length=12", "data.context=6", f"data.folder={tmp_path}")
    for name in ("transformer-words", "lstm-words"):
        _, network, data, report = fill(load_recipe(name, [*sets, f"model.init_vectors={tmp_path / 'vectors'}"]))
        row = data.tokenizer.id_of("the")
        expected = load_table(tmp_path)[1][0] * report.scale
        assert torch.equal(network.encode.embeddings.tokens[row], expected)
        assert torch.equal(network.respond.words[row], expected)


def test_factorized_embeddings_take_vectors_of_the_narrow_width(folder: Path) -> None:
    narrow = 'model.encode.embeddings={kind="factorised", embedding_width=32, embeddings={kind="sum"}}'
    _, network, _, report = fill(start_recipe(folder, narrow, "model.width=64"))
    assert network.encode.embeddings.narrow.tokens.shape == (report.rows, 32)
    assert report.filled > 5


def test_word_vectors_of_stories_are_filled_if_there_is_one_table(tmp_path: Path) -> None:
    save_table(tmp_path / "vectors", ["mary", "garden", "where"], 20)
    sets = ["data.kind=generated-babi", "data.tasks=[1]", "data.count=50", f"model.init_vectors={tmp_path / 'vectors'}"]
    _, network, data, report = fill(load_recipe("dmn", [*sets, "model.width=20"]))
    assert report.filled == 3
    expected = load_table(tmp_path)[1][1] * report.scale
    assert torch.equal(network.encode.words[data.tokenizer.id_of("garden")], expected)
    with pytest.raises(ConfigError, match="this encoder has several, or rows for more than words"):
        fill(load_recipe("memn2n", sets))


PICTURE_TABLES: dict[str, Callable[[Any], torch.Tensor]] = {
    "show-attend-tell": lambda network: network.respond.words.weight,
    "lbl": lambda network: network.respond.table,
    "mlbl-b": lambda network: network.respond.table,
    "mlbl-f": lambda network: network.respond.embeddings.mT,
    "alignment": lambda network: network.ask.embeddings.tokens,
    "unit": lambda network: network.ask.embeddings.tokens,
}


@pytest.mark.parametrize("name", PICTURE_TABLES)
def test_networks_that_look_at_pictures_are_filled_where_they_read_words(name: str, tmp_path: Path) -> None:
    save_table(tmp_path / "vectors", ["triangle", "small", "zebra"], 16)
    sets = ["model.width=16", "data.count=8", "data.validation_size=2", "data.test_size=2"]
    recipe = load_recipe(name, [*sets, f"model.init_vectors={tmp_path / 'vectors'}"])
    plain, network, data, report = fill(recipe)
    before, after = (PICTURE_TABLES[name](model).detach() for model in (plain, network))
    assert (report.filled, report.rows) == (2, len(before))
    ids = [data.tokenizer.id_of(word) for word in ("triangle", "small")]
    expected = before.clone()
    expected[ids] = load_table(tmp_path)[1][:2] * report.scale
    torch.testing.assert_close(after, expected, atol=1e-5, rtol=1e-4)  # MLBL-F factors them


def test_networks_of_pictures_alone_have_no_words_to_fill(tmp_path: Path) -> None:
    save_table(tmp_path / "vectors", ["one"], 8)
    recipe = load_recipe("mixer", ["model.width=8", f"model.init_vectors={tmp_path / 'vectors'}"])
    with pytest.raises(ConfigError, match="this network reads none: leave it out"):
        fill(recipe)


# Runs -------------------------------------------------------------------------------------------


def test_a_run_starts_from_the_vectors_and_needs_them_no_more(folder: Path, tmp_path: Path) -> None:
    """At step 0 the rows are the vectors; then they learn, and the folder may be gone."""
    shutil.copytree(folder / "vectors", tmp_path / "vectors")
    recipe = override(start_recipe(folder), "model.init_vectors", str(tmp_path / "vectors"))
    reports: list[FilledRows] = []
    steps = fit(override(recipe, "train.epochs", 0), tmp_path / "zero", device="cpu", on_fill=reports.append)
    assert list(steps) == []
    _, expected, _, report = fill(recipe)
    assert reports == [report]
    start = load_checkpoint(tmp_path / "zero")
    assert torch.equal(start.network.encode.embeddings.tokens, expected.encode.embeddings.tokens)

    steps = fit(recipe, tmp_path / "run", device="cpu", on_fill=reports.append)
    next(steps)
    steps.close()  # saved in the middle
    shutil.rmtree(tmp_path / "vectors")
    rest = list(fit(recipe, tmp_path / "run", device="cpu", on_fill=reports.append))
    assert rest
    assert len(reports) == 2  # a run that goes on is not filled again
    model = load(tmp_path / "run")
    assert model.progress.done
    assert not torch.equal(model.network.encode.embeddings.tokens, expected.encode.embeddings.tokens)
    assert model.classify(["a text"])


def test_embeddings_can_be_frozen(folder: Path, tmp_path: Path) -> None:
    recipe = start_recipe(folder, 'train.frozen=["encode.embeddings"]', "train.epochs=1")
    list(fit(recipe, tmp_path / "run", device="cpu"))
    _, expected, _, _ = fill(recipe)
    network = load_checkpoint(tmp_path / "run").network
    assert torch.equal(network.encode.embeddings.tokens, expected.encode.embeddings.tokens)
    assert not torch.equal(network.respond.out.weight, expected.respond.out.weight)


# Mistakes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (
            ["model.width=64"],
            r"have a width of 32, the embedding of this network 64: set model.width=32, or .* --width 64",
        ),
        (["model.init_vectors=3"], "model.init_vectors is a folder or a file with word vectors, not 3"),
        (["model.init_vectors="], "model.init_vectors is a folder or a file"),
        (["model.init_vectors=nowhere"], "no word vectors in 'nowhere'.*no such folder or file"),
        (["model.init_from=reader"], "model.init_from has embeddings already"),
    ],
)
def test_mistakes_are_named(sets: list[str], message: str, folder: Path) -> None:
    recipe = start_recipe(folder)
    for text in sets:
        recipe = override(recipe, *parse_assignment(text))
    plain_model = {key: value for key, value in recipe["model"].items() if key != "init_from"}
    data = load_data(recipe)
    with pytest.raises(ValueError, match=message):
        fill_embeddings(initialize_network(plain_model, data.sizes, 0), recipe["model"], data.tokenizer)


def test_vectors_of_other_words_or_without_length_are_refused(folder: Path, tmp_path: Path) -> None:
    save_table(tmp_path / "other", ["qqq", "zzz"], 32)
    with pytest.raises(ConfigError, match=r"no token of this network's \d+ is a word of .*other; give other vectors"):
        fill(override(start_recipe(folder), "model.init_vectors", str(tmp_path / "other")))
    words, _ = load_table(folder)
    path = write_vector_lines(tmp_path / "zero.txt", {word: [0.0] * 32 for word in words})
    with pytest.raises(ConfigError, match="are zero; give others"):
        fill(override(start_recipe(folder), "model.init_vectors", str(path)))
