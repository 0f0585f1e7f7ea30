"""Generated scenes: deterministic, with captions, boxes and questions that agree; the digits."""

import sys
from itertools import chain
from pathlib import Path
from random import Random

import numpy
import pytest
import torch
from app_runs import run

from mnemic.data.pictures.batches import ATTRIBUTES, make_scene_dataset
from mnemic.data.pictures.captions import MAX_WORDS, NO_OBJECT, describe_scene
from mnemic.data.pictures.dataset import GeneratedScenes, make_scene_tokenizer
from mnemic.data.pictures.digits import DigitPictures, load_digits
from mnemic.data.pictures.draw import GROUND, draw_scenes
from mnemic.data.pictures.files import read_pictures
from mnemic.data.pictures.questions import ANSWERS, ask_questions
from mnemic.data.pictures.regions import grid_boxes, overlap_areas
from mnemic.data.pictures.scenes import CELL, HELD_OUT, SIDE, Scene, generate_scenes
from mnemic.data.text_tasks.examples import TextError
from mnemic.models import IGNORE
from mnemic.recipe import ConfigError

SPLITS = ("train", "validation", "test")


@pytest.fixture(scope="module")
def scenes() -> list[Scene]:
    return generate_scenes("train", 400, seed=0)


def pairs_of(scene: Scene) -> set[tuple[str, str]]:
    return {(item.color, item.shape) for item in scene}


def test_pairs_that_are_held_out_are_never_in_training(scenes: list[Scene]) -> None:
    assert not set(chain.from_iterable(map(pairs_of, scenes))) & HELD_OUT
    assert len(set(chain.from_iterable(map(pairs_of, scenes)))) == 30 - len(HELD_OUT)
    assert all(pairs_of(scene) & HELD_OUT for scene in generate_scenes("test", 100, seed=0, pairs="held-out"))
    for position in (0, 1):  # their colors and shapes are in training
        seen = {pair[position] for scene in scenes for pair in pairs_of(scene)}
        assert {pair[position] for pair in HELD_OUT} <= seen
    with pytest.raises(ValueError, match="never in training"):
        generate_scenes("train", 1, seed=0, pairs="held-out")


def test_a_scene_depends_on_split_seed_and_number_alone(scenes: list[Scene]) -> None:
    assert generate_scenes("train", 5, seed=0) == scenes[:5]
    others = [generate_scenes(split, 5, seed=seed) for split in SPLITS for seed in (0, 1)]
    assert len({tuple(group) for group in others}) == 6
    together = draw_scenes(scenes[:5])
    for number in range(5):
        assert torch.equal(draw_scenes([scenes[number]])[0], together[number])


def test_captions_agree_with_boxes(scenes: list[Scene]) -> None:
    """Read back from its words, a caption names each object once, where its box is."""
    dataset = make_scene_dataset(scenes[:100], make_scene_tokenizer())
    for row, scene in enumerate(scenes[:100]):
        caption = describe_scene(scene)
        assert len(caption.words) == len(caption.objects) <= MAX_WORDS
        attributes = dataset.objects.attributes[row]
        for number in range(len(scene)):
            words = [word for word, index in zip(caption.words, caption.objects) if index == number]
            shape, color, size = (names[int(index)] for names, index in zip(ATTRIBUTES, attributes[number]))
            assert words == [size, color, shape]
        boxes = SIDE * dataset.objects.boxes[row]
        middle = (boxes[:, :2] + boxes[:, 2:]) / 2
        relations = [word for word in caption.words if word in ("left", "above")]
        assert len(relations) == len(scene) - 1
        for number, relation in enumerate(relations):
            first, second = middle[number], middle[number + 1]
            rows = [int(center[1] // CELL) for center in (first, second)]
            assert (rows[0] == rows[1]) if relation == "left" else (rows[0] < rows[1])
            assert relation == "above" or first[0] < second[0]
        assert dataset.objects.mask[row].tolist() == [number < len(scene) for number in range(4)]


def test_only_boxes_have_paint(scenes: list[Scene]) -> None:
    pictures = draw_scenes(scenes[:60]).float() / 255
    for picture, scene in zip(pictures, scenes):
        painted = (picture - GROUND).abs().amax(0) > 0.02  # y x
        for item in scene:
            x1, y1, x2, y2 = item.box
            assert painted[int(y1) : int(y2) + 1, int(x1) : int(x2) + 1].any()
            rows, columns = slice(max(int(y1 - 0.5), 0), int(y2 + 1.5)), slice(max(int(x1 - 0.5), 0), int(x2 + 1.5))
            painted[rows, columns] = False
        assert not painted.any()


def test_batches_are_the_same_whatever_is_in_them(scenes: list[Scene]) -> None:
    dataset = make_scene_dataset(scenes[:20], make_scene_tokenizer())
    together = dataset.batch(torch.arange(20))
    for row in range(20):
        alone = dataset.batch(torch.tensor([row]))
        length = alone.targets.shape[1]
        for single, batched, empty in (
            (alone.targets, together.targets, IGNORE),
            (alone.inputs.words, together.inputs.words, 0),
            (alone.objects, together.objects, NO_OBJECT),
        ):
            assert torch.equal(single[0], batched[row, :length])
            assert batched[row, length:].eq(empty).all()
        assert torch.equal(alone.inputs.pictures[0], together.inputs.pictures[row])
        assert alone.targets[0, -1] == dataset.end_id == alone.inputs.words[0, 0]
    wide = dataset.batch(torch.arange(2), compact=False)
    assert wide.targets.shape[1] == dataset.words.shape[1] - 1
    assert len(dataset.select(torch.tensor([3, 5])).scenes) == 2


def test_questions_have_answers_of_one_word_that_the_scene_shows(scenes: list[Scene]) -> None:
    forms = set()
    for number, scene in enumerate(scenes[:200]):
        for question in ask_questions(scene, Random(number)):
            forms.add(question.text.split()[1])
            assert question.answer in ANSWERS
            if question.object != NO_OBJECT and question.answer != "yes":
                assert question.answer in scene[question.object]
            if question.answer in ("yes", "no"):
                color, shape = question.text.split()[-2:]
                assert ((color, shape) in pairs_of(scene)) == (question.answer == "yes")
                assert (color, shape) not in HELD_OUT
    assert forms == {"many", "color", "shape", "size", "there"}
    tokenizer = make_scene_tokenizer()
    assert not tokenizer.find_unknown_words(" ".join(ANSWERS))


def test_regions_of_a_grid_cover_an_object(scenes: list[Scene]) -> None:
    box = torch.tensor(scenes[0][0].box)
    areas = overlap_areas(box, grid_boxes(6, 6))
    torch.testing.assert_close(areas.sum(), (box[2:] - box[:2]).prod())


def test_scene_options_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"data\.count is at least 1"):
        GeneratedScenes(count=0)
    with pytest.raises(ConfigError, match="at most"):
        GeneratedScenes(test_size=10**9)


def test_digits_have_fixed_splits() -> None:
    data = DigitPictures().load()
    assert [len(split) for split in (data.train, data.validation, data.test)] == [1257, 180, 360]
    pictures = torch.cat([data.train.pictures, data.validation.pictures, data.test.pictures]).flatten(1)
    everything = load_digits()[0].flatten(1)
    assert torch.equal(pictures.sort(0).values, everything.sort(0).values)
    batch = data.test.batch(torch.tensor([4, 2]))
    assert torch.equal(batch.targets, data.test.targets[[4, 2]])
    assert batch.inputs.pictures.shape == (2, 1, 8, 8)


def test_digits_need_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ConfigError, match=r"pip install .mnemic\[pictures\]"):
        DigitPictures().load()


def test_scenes_are_written_as_files(tmp_path: Path) -> None:
    done = run("data", "scenes", "--out", tmp_path / "scenes.npy", "--count", 3, "--json")
    assert done.code == 0, done.err
    pictures = read_pictures(tmp_path / "scenes.npy")
    expected = draw_scenes(generate_scenes("test", 3, seed=0)).movedim(1, -1).numpy()
    assert numpy.array_equal(pictures, expected)
    assert (tmp_path / "scenes.jsonl").read_text().count("caption") == 3
    assert "ends in .npy" in run("data", "scenes", "--out", tmp_path / "scenes.png").err
    numpy.save(tmp_path / "floats.npy", numpy.zeros((2, 2)))
    (tmp_path / "text.npy").write_text("no picture")
    for name, message in (("floats.npy", "expected uint8"), ("text.npy", "no .npy file"), ("a.png", "give a .npy")):
        with pytest.raises(TextError, match=message):
            read_pictures(tmp_path / name)
