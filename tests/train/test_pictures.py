"""Runs of networks that look at pictures: trained, stopped, evaluated, asked and plotted."""

import json
from math import log2
from pathlib import Path

import numpy
import pytest
import torch
from app_runs import run
from learn_runs import finish, stop_after, weights_in
from safetensors.torch import load_file

import mnemic
from mnemic.data.pictures.captions import describe_scene
from mnemic.data.pictures.draw import draw_scenes
from mnemic.data.pictures.files import write_scenes
from mnemic.data.pictures.scenes import generate_scenes
from mnemic.evaluate.intervals import wilson_interval
from mnemic.evaluate.pictures.captions import compute_caption_metrics
from mnemic.evaluate.pictures.retrieval import TextScores, compute_retrieval_metrics, select_distinct
from mnemic.recipe import ConfigError, load_recipe
from mnemic.train.run import load_data

TINY = ["model.width=8", "data.count=40", "data.validation_size=6", "data.test_size=12", "train.batch=8"]
TINY += ["train.epochs=1", "train.validate=1"]


@pytest.fixture(scope="module")
def captioner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captioner")
    return finish(load_recipe("show-attend-tell", TINY), folder, device="cpu")


@pytest.fixture(scope="module")
def bilinear(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finish(load_recipe("mlbl-f", TINY), tmp_path_factory.mktemp("bilinear"), device="cpu")


def test_a_stopped_run_with_hard_looks_ends_with_the_same_bits(tmp_path: Path) -> None:
    """The baseline of REINFORCE is in the checkpoint of a stopped run."""
    recipe = load_recipe("show-attend-tell-hard", [*TINY, "train.save=2"])
    recipe["phases"] = [{"train": {"epochs": 1}}]
    uninterrupted = finish(recipe, tmp_path / "uninterrupted", device="cpu")
    stop_after(3, recipe, tmp_path / "stopped", device="cpu")
    stored = load_file(tmp_path / "stopped" / "checkpoint" / "progress.safetensors")
    assert stored["carried.baseline"] < 0
    finish(recipe, tmp_path / "stopped", device="cpu")
    assert weights_in(tmp_path / "stopped") == weights_in(uninterrupted)
    assert "carried.baseline" not in load_file(uninterrupted / "checkpoint" / "progress.safetensors")


def test_captions_are_written_with_their_gaze(captioner: Path) -> None:
    model = mnemic.load(captioner)
    assert model.methods == ("caption",)
    pictures = draw_scenes(generate_scenes("test", 3, seed=0))
    tensor, array = pictures.float() / 255, pictures.movedim(1, -1).numpy()
    captions = model.caption(tensor)
    assert [caption.text for caption in model.caption(array)] == [caption.text for caption in captions]
    for caption in captions:
        assert " ".join(gaze.word for gaze in caption.gaze) == caption.text
        for gaze in caption.gaze:
            weights = torch.tensor(gaze.weights)
            assert weights.shape == (6, 6)
            assert float(weights.sum()) == pytest.approx(1, abs=1e-4)
            assert weights.flatten().argmax() == 6 * gaze.region[0] + gaze.region[1]
    for wrong in (array[:, :8], array.astype(float), "picture", tensor[:, :1]):
        with pytest.raises(ConfigError, match="pictures"):
            model.caption(wrong)


def test_metrics_of_captions(captioner: Path, bilinear: Path) -> None:
    for folder, first in ((captioner, "exact"), (bilinear, "perplexity")):
        model = mnemic.load(folder)
        data = load_data(model.recipe)
        metrics = compute_caption_metrics(model.network, data.test)
        assert next(iter(metrics)) == first
        assert metrics["perplexity"] > 1
        assert ("gaze" in metrics) == (folder == captioner)
        right = [caption.text for caption in model.caption(data.test.read_pictures(torch.arange(12)))]
        expected = sum(describe_scene(scene).text == text for scene, text in zip(data.test.scenes, right))
        assert metrics["exact"] == pytest.approx(100 * expected / 12)
    evaluated = run("evaluate", captioner, "--json", "--device", "cpu")
    assert evaluated.code == 0, evaluated.err
    assert {"exact", "perplexity", "gaze", "uniform gaze"} == evaluated.json["figures"].keys()
    assert evaluated.json["bits"] == pytest.approx(log2(evaluated.json["figures"]["perplexity"]))
    assert "bits per word" in run("evaluate", captioner, "--device", "cpu").out
    share = evaluated.json["figures"]["exact"] / 100
    assert evaluated.json["intervals"] == {"exact": pytest.approx([100 * end for end in wilson_interval(share, 12)])}


def test_pictures_are_described_and_plotted_by_the_command(captioner: Path, bilinear: Path, tmp_path: Path) -> None:
    write_scenes(generate_scenes("test", 2, seed=0), tmp_path / "scenes.npy")
    command = ("predict", "--device", "cpu", "--model")
    done = run(*command, captioner, tmp_path / "scenes.npy", "--plot", tmp_path / "gaze.svg", "--beams", 2)
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [row["picture"] for row in rows] == [0, 1]
    assert all(row["caption"] == " ".join(gaze["word"] for gaze in row["gaze"]) for row in rows)
    assert "<svg" in (tmp_path / "gaze.svg").read_text()
    assert "gaze" not in json.loads(run(*command, bilinear, tmp_path / "scenes.npy").out.splitlines()[0])
    numpy.save(tmp_path / "wide.npy", numpy.zeros((1, 20, 30, 3), numpy.uint8))
    for arguments, message in (
        ((captioner, tmp_path / "wide.npy"), "48×48 pixels"),
        ((captioner,), "give .npy files"),
        ((bilinear, tmp_path / "scenes.npy", "--plot", tmp_path / "gaze.svg"), "reads no regions"),
        ((captioner, tmp_path / "scenes.npy", "--words", 3), "leave out --words"),
    ):
        refused = run(*command, *arguments)
        assert refused.code == 2
        assert message in refused.err


def test_retrieval_ranks_by_perplexity_and_by_its_ratio() -> None:
    """A text that is likely anyway is not a good match because it is likely."""
    scores = TextScores(torch.tensor([[1.0, 1.2, 3.0], [4.0, 2.0, 5.0]]), torch.tensor([1.1, 4.5]))
    assert scores.rank_pictures().tolist() == [[0, 1, 2], [1, 0, 2]]
    assert scores.rank_texts().tolist() == [[1, 0], [1, 0], [1, 0]]


def test_retrieval_is_measured_among_different_captions(bilinear: Path) -> None:
    model = mnemic.load(bilinear)
    data = load_data(model.recipe)
    scenes = select_distinct(data.test, 8)
    texts = [describe_scene(scene).text for scene in scenes.scenes]
    assert len(texts) == len(set(texts)) == 8
    metrics = compute_retrieval_metrics(model.network, scenes, data.train)
    assert metrics.keys() == {"picture R@1", "picture R@10", "text R@1", "text R@10"}
    assert metrics["picture R@10"] == metrics["text R@10"] == 100


def test_pictures_and_texts_do_not_mix() -> None:
    with pytest.raises(ConfigError, match="need each other"):
        load_data(load_recipe("show-attend-tell", [*TINY, 'model.encode={kind="bag"}']))
    with pytest.raises(ConfigError, match="need each other"):
        load_data(load_recipe("memn2n", ['model.encode={kind="conv"}', 'data={kind="generated-babi", tasks=[1]}']))


def test_digits_are_classified(tmp_path: Path) -> None:
    sets = ['data={kind="digits"}', 'objective={kind="classes"}', 'model.encode={kind="conv", halvings=1, depth=1}']
    sets += ["model.width=16", 'model.respond={kind="classes"}', "train.epochs=3", "train.batch=32", "train.rate=0.01"]
    run_folder = finish(load_recipe("lbl", sets), tmp_path / "run", device="cpu")
    evaluated = run("evaluate", run_folder, "--json", "--device", "cpu")
    assert evaluated.code == 0, evaluated.err
    assert evaluated.json["figures"]["accuracy"] > 50
    assert evaluated.json["intervals"]["accuracy"][0] < evaluated.json["figures"]["accuracy"]
