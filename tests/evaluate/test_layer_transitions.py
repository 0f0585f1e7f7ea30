"""How much each layer changes the states of a text, and ``mnemic inspect --layers``."""

import json
from math import sqrt
from pathlib import Path

import pytest
import text_files
import torch
from app_runs import run
from learn_runs import finish
from matplotlib import image

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.evaluate.layer_transitions import compute_layer_transitions, measure_text_transitions
from mnemic.recipe import load_recipe

TEXT = "the old train ran past a lovely house today"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Train two tiny classifiers for a step, with and without shared layers; return their runs."""
    folder = tmp_path_factory.mktemp("layers")
    text_files.classes(folder / "data", 40)
    runs = []
    for groups in (0, 1):
        options = [f"data.folder={folder / 'data'}", "model.width=16", "model.encode.stack.depth=3", "train.steps=1"]
        options += [f"model.encode.stack.groups={groups}", "model.encode.stack.share=attention"]
        options += ["train.validate=0", "train.keep=last", "data.length=16"]
        recipe = load_recipe("bert-classes", options)
        runs.append(finish(recipe, folder / f"run{groups}", device="cpu"))
    return runs


def test_transitions_of_known_states() -> None:
    """Right angles, a turn back, and a layer that only makes states longer."""
    start = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    turned, longer = torch.tensor([[0.0, 1.0], [0.0, -2.0]]), torch.tensor([[0.0, 3.0], [0.0, -6.0]])
    first, second = compute_layer_transitions([start, turned, longer])
    assert first.layer == 1
    assert first.distance == pytest.approx((sqrt(2) + 4) / 2)
    assert first.cosine == pytest.approx(-0.5)
    assert first.angle == pytest.approx((90 + 180) / 2)
    assert (second.distance, second.cosine, second.angle) == pytest.approx((3.0, 1.0, 0.0))


def test_a_long_text_is_read_in_windows(folders: list[Path]) -> None:
    """All of its tokens count, and the measure is the mean over the windows' tokens."""
    checkpoint = load_checkpoint(folders[0])
    encoder, tokenizer = checkpoint.network.encode, checkpoint.tokenizer
    encoder.embeddings.positions.max_length = 12
    long_text = " ".join([TEXT] * 6)
    measured = measure_text_transitions(encoder, tokenizer, long_text)
    ids = tokenizer.encode(long_text, special=False).ids
    specials = sum(map(len, tokenizer.special_tokens(pair=False)))
    assert len(ids) > 20
    pieces = [ids[start : start + 12 - specials] for start in range(0, len(ids), 12 - specials)]
    assert measured.tokens == len(ids) + specials * len(pieces)
    distances = []
    before, _, after = tokenizer.special_tokens(pair=False)
    with torch.no_grad():
        for piece in pieces:
            tokens = torch.tensor([[*before, *piece, *after]])
            states = list(encoder.iterate_layers(tokens, torch.ones_like(tokens, dtype=torch.bool)))
            distances += (states[2] - states[1])[0].norm(dim=-1).tolist()
    assert measured.layers[1].distance == pytest.approx(sum(distances) / len(distances), rel=1e-5)


def test_inspect_shows_the_layers_of_networks(folders: list[Path], tmp_path: Path) -> None:
    plot = tmp_path / "layers.png"
    command = ("inspect", folders[0], "--layers", TEXT, "--compare", folders[1], "--plot", plot)
    report = run(*command, "--json").json
    assert [network["name"] for network in report["networks"]] == [str(folder) for folder in folders]
    checkpoint = load_checkpoint(folders[0])
    expected = measure_text_transitions(checkpoint.network.encode, checkpoint.tokenizer, TEXT)
    assert report["networks"][0]["tokens"] == expected.tokens
    assert report["networks"][0]["layers"] == json.loads(json.dumps([layer._asdict() for layer in expected.layers]))
    assert image.imread(plot).std() > 0.01
    seen = run(*command).out  # the plot is there now, and is written again
    assert seen.count("L2 distance") == 2
    assert f"{expected.layers[2].angle:.1f}" in seen
    assert (
        run("inspect", folders[0], "--layers", "-", stdin=TEXT).out == run("inspect", folders[0], "--layers", TEXT).out
    )


def test_inspect_reads_folders_of_hugging_face(folders: list[Path], tmp_path: Path) -> None:
    exportable = load_recipe("bert-classes", [f"data.folder={folders[0].parent / 'data'}", "model.width=16"])
    exportable["model"]["encode"]["stack"] |= {"norm": "post"}
    exportable["train"] |= {"steps": 1, "validate": 0, "keep": "last"}
    exported = finish(exportable, tmp_path / "run", device="cpu")
    assert run("export", exported, tmp_path / "model").code == 0
    ours, theirs = (
        run("inspect", path, "--layers", TEXT, "--json").json["networks"][0]["layers"]
        for path in (exported, tmp_path / "model")
    )
    for layer, other in zip(ours, theirs, strict=True):
        assert layer == pytest.approx(other, rel=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--plot", "a.png"], "add --layers and a text"),
        (["--layers", "Hello."], "--layers needs a network"),
        (["entnet-babi", "--layers", "Hello."], "has 0 Transformer encoders"),
        (["reader", "--layers", "Hello.", "--plot", "a.doc"], "ends in .png"),
    ],
)
def test_mistakes_are_named(arguments: list[str], message: str) -> None:
    result = run("inspect", *arguments)
    assert result.code == 2
    assert message in result.err
