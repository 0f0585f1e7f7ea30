"""Texts of the tasks about scenes: what they say is so, or is not."""

from random import Random

import pytest
import torch

from mnemic.data.pictures.captions import describe_scene
from mnemic.data.pictures.dataset import make_scene_tokenizer
from mnemic.data.pictures.questions import ANSWERS
from mnemic.data.pictures.scenes import HELD_OUT, generate_scenes
from mnemic.data.pictures.task_texts import TRUTHS, change_scene, list_captions, list_readings, make_task_texts
from mnemic.data.pictures.tasks import MAX_TEXT, SceneTasks
from mnemic.recipe import ConfigError
from mnemic.respond.pictures.tasks import TASKS

SCENES = generate_scenes("train", 300, seed=0)


def answer_from_caption(text: str) -> str | None:
    """Answer a question from the caption before it, by its words alone; None if it does not say."""
    start = min(index for word in ("how many", "what ", "is there") if (index := text.find(word)) >= 0)
    words, question = text[:start].split(), text[start:].split()
    items = [tuple(words[index + 1 : index + 4]) for index, word in enumerate(words) if word == "a"]  # size color shape
    if question[0] == "how":
        return ("one", "two", "three", "four")[len(items) - 1]
    if question[0] == "is":
        return "yes" if tuple(question[3:]) in {item[1:] for item in items} else "no"
    matches = [item for item in items if all(word in item for word in question[3:] if word != "the")]
    column = ("size", "color", "shape").index(question[1])
    return matches[0][column] if len(matches) == 1 else None


def test_readings_are_answered_by_their_caption() -> None:
    texts = [item for scene in SCENES for item in list_readings(scene, Random(0))]
    assert len(texts) > 1000
    assert all(answer_from_caption(item.text) == ANSWERS[item.target] for item in texts)
    assert max(len(item.text.split()) for item in texts) < MAX_TEXT


def test_false_captions_differ_and_give_nothing_away() -> None:
    num_exchanged = 0
    for number, scene in enumerate(SCENES):
        changed = change_scene(scene, Random(number))
        assert describe_scene(changed).words != describe_scene(scene).words
        assert not {(item.color, item.shape) for item in changed} & HELD_OUT
        num_exchanged += sorted(describe_scene(changed).words) == sorted(describe_scene(scene).words)
        true, false = list_captions(scene, Random(number))
        assert (true.text, TRUTHS[true.target], TRUTHS[false.target]) == (describe_scene(scene).text, "yes", "no")
    assert 50 < num_exchanged < 200  # the same words in another order


def test_texts_are_found_by_their_scene() -> None:
    tokenizer = make_scene_tokenizer()
    texts = make_task_texts("captions", SCENES[:20], tokenizer, "train", 0)
    assert texts.counts.tolist() == [2] * 20
    for row, scene in enumerate(SCENES[:20]):
        ids = texts.words[texts.starts[row], : texts.lengths[texts.starts[row]]].tolist()
        assert ids == tokenizer.encode_batch([describe_scene(scene).text])[0]
    again = make_task_texts("captions", SCENES[:20], tokenizer, "train", 0)
    assert all(torch.equal(first, second) for first, second in zip(texts, again))


@pytest.fixture(scope="module")
def data() -> SceneTasks:
    return SceneTasks(count=64, validation_size=8, test_size=8, ratios={"detection": 1, "questions": 2, "reading": 1})


def test_batches_are_of_one_task_by_their_ratio(data: SceneTasks) -> None:
    dataset = data.load().train
    assert dataset.task_names == ["detection", "questions", "reading"]
    uniforms = torch.rand(400, 2, generator=torch.Generator().manual_seed(0))
    rows = torch.zeros(1, dtype=torch.long)
    tasks = torch.tensor([dataset.batch(rows, uniforms[[number]]).inputs.task for number in range(400)])
    counts = tasks.bincount(minlength=len(TASKS))
    assert abs(counts / 400 - torch.tensor([0.25, 0.5, 0, 0.25])).max() < 0.06
    last = dataset.batch(rows, torch.full((1, 2), 0.999999))
    assert (last.inputs.task, last.inputs.pictures) == (TASKS.index("reading"), None)


def test_ratios_of_unknown_tasks_are_refused() -> None:
    for ratios in ({"walking": 1}, {}, {"reading": 0}, {"reading": -1, "captions": 2}):
        with pytest.raises(ConfigError, match=r"data.ratios has a number from 0 on for detection, questions"):
            SceneTasks(ratios=ratios)
