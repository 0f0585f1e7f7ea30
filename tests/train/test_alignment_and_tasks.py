"""Runs of networks that read words beside pictures: trained, evaluated, aligned and asked."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from app_runs import run
from learn_runs import finish

import mnemic
from mnemic.data.pictures.draw import draw_scenes
from mnemic.data.pictures.files import write_scenes
from mnemic.data.pictures.scenes import COLORS, SHAPES, generate_scenes
from mnemic.encode.pictures import merge_repmlp
from mnemic.evaluate.intervals import bound_best, wilson_interval
from mnemic.evaluate.pictures.alignment import POINTING, POINTING_SMALLEST, compute_alignment_metrics, count_better
from mnemic.models import build_model
from mnemic.predict.pictures.align import list_region_boxes
from mnemic.recipe import ConfigError, load_recipe

TINY = ["data.count=40", "data.validation_size=6", "data.test_size=20", "model.width=8", "train.batch=8"]
TINY += ["train.epochs=1", "train.validate=1"]


@pytest.fixture(scope="module")
def aligner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finish(load_recipe("alignment", TINY), tmp_path_factory.mktemp("aligner"), device="cpu")


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finish(load_recipe("unit", TINY), tmp_path_factory.mktemp("worker"), device="cpu")


def make_pictures(count: int) -> torch.Tensor:
    return draw_scenes(generate_scenes("test", count, seed=0)).float() / 255


def test_words_are_aligned_with_regions(aligner: Path) -> None:
    model = mnemic.load(aligner)
    assert model.methods == ("align",)
    caption = "a large purple triangle above a small ring"
    first, second = model.align(make_pictures(2), [caption, "a ring"])
    assert [item.word for item in first] == caption.split()
    assert len(second) == 2
    boxes = list_region_boxes(model.network.encode)
    assert all(item.box == pytest.approx(boxes[item.region].tolist()) for item in first)
    [together] = model.align(make_pictures(1), [caption], beta=1e4)
    assert len({item.region for item in together}) == 1
    with pytest.raises(ConfigError, match="one caption per picture, not 1 captions and 2 pictures"):
        model.align(make_pictures(2), ["a ring"])
    with pytest.raises(ConfigError, match="at least one word"):
        model.align(make_pictures(1), [""])


def test_things_are_detected_with_their_names(worker: Path) -> None:
    model = mnemic.load(worker)
    assert model.methods == ("detect",)
    detections = model.detect(make_pictures(3), threshold=0.0)
    assert [len(items) for items in detections] == [16] * 3
    probabilities = [item.probability for item in detections[0]]
    assert probabilities == sorted(probabilities, reverse=True)
    assert {item.label for items in detections for item in items} <= set(SHAPES)
    assert {item.attribute for items in detections for item in items} <= set(COLORS)
    assert all(0 <= edge <= 1 for items in detections for item in items for edge in item.box)
    assert not any(model.detect(make_pictures(3), threshold=1.1))


def test_both_predict_by_the_command(aligner: Path, worker: Path, tmp_path: Path) -> None:
    write_scenes(generate_scenes("test", 3, seed=0), tmp_path / "s.npy")
    command = ("predict", "--device", "cpu", "--model")
    done = run(*command, aligner, tmp_path / "s.npy")
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [row["picture"] for row in rows] == [0, 1, 2]
    assert all(row["caption"] == " ".join(word["word"] for word in row["words"]) for row in rows)
    assert all(len(word["box"]) == 4 for row in rows for word in row["words"])
    done = run(*command, worker, tmp_path / "s.npy")
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in done.out.splitlines()]
    expected = mnemic.load(worker).detect(make_pictures(3))
    assert [[item["label"] for item in row["objects"]] for row in rows] == [
        [item.label for item in items] for items in expected
    ]


@pytest.mark.parametrize(
    ("captions", "message"),
    [
        (None, "s.npy: this network finds the words of a caption in its picture: give one JSON line per picture"),
        ('{"caption": "a ring"}\n', "has 1 captions for 3 pictures"),
        ('{"text": "a ring"}\n', "line 1: there is no caption"),
        ("a ring\n", "line 1: no valid JSON"),
    ],
)
def test_alignment_says_which_captions_it_needs(
    captions: str | None, message: str, aligner: Path, tmp_path: Path
) -> None:
    write_scenes(generate_scenes("test", 3, seed=0), tmp_path / "s.npy")
    (tmp_path / "s.jsonl").unlink()
    if captions is not None:
        (tmp_path / "s.jsonl").write_text(captions, encoding="utf-8")
    done = run("predict", "--device", "cpu", "--model", aligner, tmp_path / "s.npy")
    assert done.code == 2
    assert message in done.err


def test_a_network_of_digits_says_what_it_can_do(tmp_path: Path) -> None:
    recipe = load_recipe("mixer", ["model.width=8", "train.epochs=0"])
    done = run("predict", "--model", finish(recipe, tmp_path / "run", device="cpu"), tmp_path / "s.npy")
    assert (done.code, "mnemic evaluate measures it" in done.err) == (2, True)


def test_both_are_evaluated_by_the_command(aligner: Path, worker: Path) -> None:
    for folder, names in (
        (aligner, ("captions r@1", "pictures r@10", "pointing accuracy")),
        (worker, ("detection", "reading")),
    ):
        done = run("evaluate", folder, "--json")
        assert done.code == 0, done.err
        assert set(names) <= set(done.json["figures"]), done.json


def test_shares_have_intervals_of_their_own_numbers_of_examples(aligner: Path, worker: Path) -> None:
    """Scenes are ranked, words point, and each task has texts of its own."""
    scenes, tasks = load_recipe_data("alignment").test, load_recipe_data("unit").test
    words = int((scenes.word_objects >= 0).sum())
    assert words > len(scenes) == 20
    counts = {f"{name} r@{top_k}": 20 for name in ("captions", "pictures") for top_k in (1, 10)}
    counts |= {"pointing accuracy": words, "pointing accuracy, smallest region": words}
    numbers = [len(texts.targets) for texts in tasks.texts]
    assert min(numbers) >= 20
    task_counts = dict(zip(("questions", "captions", "reading"), numbers), colors=int(tasks.boxes.mask.sum()))
    for folder, expected in ((aligner, counts), (worker, task_counts)):
        report = run("evaluate", folder, "--best-of", "3", "--json").json
        assert report["intervals"].keys() == report["bounds"].keys() == expected.keys()
        for name, count in expected.items():
            share = report["figures"][name] / 100
            assert report["intervals"][name] == pytest.approx([100 * end for end in wilson_interval(share, count)])
            assert report["bounds"][name] == pytest.approx([100 * end for end in bound_best(share, count, 3)])


def test_recall_counts_captions_that_say_the_same_as_right() -> None:
    scores = torch.tensor([[1.0, 2.0, 0.0], [5.0, 4.0, 3.0], [0.0, 7.0, 7.0]])
    ids = torch.tensor([0, 0, 1])
    assert count_better(scores, ids == ids.unsqueeze(1)).tolist() == [0, 0, 1]  # a tie counts as wrong


def test_words_that_know_their_objects_point_at_them() -> None:
    """Regions and words that hold the answer find everything; chance is what it is."""
    dataset = load_recipe_data("alignment")
    network = build_model(load_recipe("alignment", ["model.width=64"])["model"], dataset.sizes)
    boxes = list_region_boxes(network.encode)[:9]  # the cells

    class Seer(torch.nn.Module):
        """Make words that point at the cell of their object, and regions that are cells."""

        encode, respond = network.encode, network.respond

        def forward(self, inputs: Any) -> Any:
            rows = [row for picture in inputs.pictures for row in range(20) if torch.equal(pictures[row], picture)]
            regions = torch.eye(20, 64).expand(len(rows), -1, -1)
            words = torch.zeros(*inputs.words.shape, 64)
            for number, row in enumerate(rows):
                for column, item in enumerate(objects[row, : words.shape[1]].tolist()):
                    if item >= 0:
                        center = (corners[row, item, :2] + corners[row, item, 2:]) / 2
                        cell = ((center >= boxes[:, :2]) & (center < boxes[:, 2:])).all(-1).nonzero()
                        words[number, column, int(cell)] = 1
            return type("Output", (), {"regions": regions, "words": words, "logits": None})()

    test = dataset.test
    pictures, corners = test.read_pictures(torch.arange(20)), test.objects.boxes
    objects = test.batch(torch.arange(20), compact=False).objects
    metrics = compute_alignment_metrics(Seer(), test)
    assert metrics[POINTING] == metrics[POINTING_SMALLEST] == 100
    assert metrics[f"{POINTING_SMALLEST} by chance"] == pytest.approx(5)
    assert 25 < metrics[f"{POINTING} by chance"] < 35


def load_recipe_data(name: str) -> Any:
    from mnemic.train.run import load_data

    return load_data(load_recipe(name, TINY))


def test_a_trained_repmlp_is_stored_as_fully_connected_layers() -> None:
    """The merged weights fit the network that ``merged`` builds, and compute the same."""
    sizes = {"vocab": 3, "max_length": 1, "classes": 10, "channels": 1, "side": 8}
    model = load_recipe("repmlp", ["model.width=8", "model.encode.bottleneck=8"])["model"]
    network = build_model(model, sizes)
    pictures = torch.rand(16, 1, 8, 8)
    for _ in range(3):
        network.encode(pictures).sum().backward()  # statistics
    plain = build_model({**model, "encode": {**model["encode"], "merged": True}}, sizes).eval()
    plain.load_state_dict(merge_repmlp(network).state_dict())
    torch.testing.assert_close(plain.encode(pictures), network.eval().encode(pictures), rtol=0, atol=1e-5)
