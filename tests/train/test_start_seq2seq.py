"""Starting from an encoder–decoder: its decoder comes along, to answer or as a body for heads."""

from pathlib import Path

import pytest
import text_files
import torch
from app_runs import run
from learn_runs import finish

from mnemic.checkpoint.folder import load_checkpoint, weights_of
from mnemic.checkpoint.seq2seq_folder import load_seq2seq, save_seq2seq
from mnemic.encode.seq2seq.encoder_decoder import EncoderDecoder
from mnemic.predict.model import load
from mnemic.recipe import load_recipe
from mnemic.train.initialize import initialize_network, start_recipe_from

TINY = ["model.width=16", "model.encode.stack.depth=1", "model.respond.decoder.depth=1", "data.count=40"]
TINY += ["data.validation_size=4", "data.test_size=4", "train.steps=2", "train.batch=8", "train.validate=0"]
TINY += ["train.keep=last", "model.encode.stack.dropout=0.0"]


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BART that was trained for two steps."""
    return finish(load_recipe("bart", TINY), tmp_path_factory.mktemp("bart") / "run", device="cpu")


@pytest.fixture(scope="module")
def folder(bart: Path) -> Path:
    """The same as a folder of Hugging Face."""
    save_seq2seq(bart.parent / "folder", load_checkpoint(bart))
    return bart.parent / "folder"


@pytest.mark.parametrize("start", ["bart", "folder"])
def test_a_decoder_that_answers_is_taken(start: str, request: pytest.FixtureRequest, bart: Path) -> None:
    path = request.getfixturevalue(start)
    recipe = start_recipe_from(load_recipe("dates", TINY), path)
    assert (recipe["data"]["start"], recipe["model"]["init_parts"]) == ("sep", ["encode", "respond"])
    assert recipe["model"]["respond"]["decoder"]["norm"] == "post"
    network = initialize_network(recipe["model"], load_checkpoint(bart).sizes, 0)
    expected = weights_of(load_checkpoint(bart).network)
    assert weights_of(network).keys() == expected.keys()
    assert all(torch.equal(weight, expected[name]) for name, weight in weights_of(network).items())


@pytest.mark.parametrize("start", ["bart", "folder"])
def test_both_halves_become_the_body_of_a_head(
    start: str, request: pytest.FixtureRequest, bart: Path, tmp_path: Path
) -> None:
    text_files.spans(tmp_path / "data", 12)
    options = [f"data.folder={tmp_path / 'data'}", "data.length=64", "data.overlap=8", "train.steps=1", "train.batch=4"]
    options += ["train.validate=0", "train.keep=last"]
    recipe = start_recipe_from(load_recipe("bart-spans", options), request.getfixturevalue(start))
    network = initialize_network(recipe["model"], {"vocab": 400, "max_length": 64}, 0)
    assert isinstance(network.encode, EncoderDecoder)
    expected = weights_of(load_checkpoint(bart).network)
    state = dict(network.encode.named_parameters())
    for name, weight in expected.items():
        moved = name.replace("respond.embeddings", "encode.decoder_embeddings").replace("respond.", "encode.")
        if name != "respond.bias":
            assert torch.equal(state[moved.removeprefix("encode.")], weight)
    assert len(state) == len(expected) - 1
    finish(recipe, tmp_path / "run", device="cpu")
    answer = load(tmp_path / "run").answer("what?", "one two three four five")
    assert answer.seen == answer.total > 5


def test_a_translation_learns_in_two_steps(bart: Path, tmp_path: Path) -> None:
    """First the new encoder, positions and the first layer's projections; the rest is BART's."""
    sizes = [option for option in TINY if option.startswith(("data", "train.batch", "train.validate", "train.keep"))]
    recipe = start_recipe_from(load_recipe("bart-translation", [*sizes, "phases.0.train.steps=1"]), bart)
    assert recipe["model"]["encode"]["source"]["stack"]["depth"] == 1
    frozen = [name for name in recipe["phases"][0]["train"]["frozen"] if "blocks.1" not in name]  # BART has one layer
    first_phase = {**recipe["phases"][0], "train": {**recipe["phases"][0]["train"], "frozen": frozen}}
    run_folder = finish({**recipe, "phases": [first_phase]}, tmp_path / "run", device="cpu")
    before, after = (weights_of(load_checkpoint(path).network) for path in (bart, run_folder))
    changed = {name for name, weight in before.items() if not torch.equal(after[name], weight)}
    projections = {f"encode.stack.blocks.0.attention.project.{name}" for name in ("query", "key", "value")}
    expected = {f"{name}.{kind}" for name in projections for kind in ("weight", "bias")}
    expected |= {"encode.embeddings.positions.table", "respond.embeddings.positions.table", "respond.bias"}
    assert changed <= expected
    assert changed >= expected - {"encode.stack.blocks.0.attention.project.key.bias"}  # which no softmax sees
    assert {name for name in after if name.startswith("encode.new.")}


def test_a_folder_answers_and_is_exported(folder: Path, bart: Path, tmp_path: Path) -> None:
    """What was trained here answers there, and what is there answers here, with the same text."""
    texts = ["march the third nineteen ten", "june the first"]
    assert load(folder).methods == ("generate",)
    expected = load(bart).generate(texts)
    for answer, text in zip(load(folder).generate(texts), expected):
        assert len(answer.text) > len(text.text) > 20  # it may have as many tokens as positions
        assert answer.text.startswith(text.text[:20])
    assert load(folder, precision="bfloat16").generate(texts)[0].total == expected[0].total
    result = run("export", bart, tmp_path / "exported", "--json")
    assert result.code == 0, result.err
    assert result.json["family"] == "bart"
    exported, original = (
        weights_of(load_seq2seq(tmp_path / "exported").network),
        weights_of(load_checkpoint(bart).network),
    )
    assert all(torch.equal(exported[name], weight) for name, weight in original.items())
    assert run("export", bart, tmp_path / "wrong", "--family", "t5").code == 2
