"""Texts of the tasks about scenes: questions, true and false captions, captions with questions.

Shapes: t texts, e scenes, m words of the longest.
"""

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemic.data.contract import Split
from mnemic.data.pictures.captions import describe_scene
from mnemic.data.pictures.questions import ANSWERS, RELATIONS, ask_questions
from mnemic.data.pictures.scenes import COLORS, HELD_OUT, SHAPES, SIZES, Scene
from mnemic.text import WordTokenizer

TRUTHS = ("no", "yes")  # whether a caption is true
EXCHANGE_SHARE = 0.5  # of false captions that exchange an attribute of two objects, where they can
NUM_TRIES = 100  # to change a scene; a try succeeds in most


class TaskText(NamedTuple):
    """A text about a scene, and the number of its answer."""

    text: str
    target: int


class TaskTexts(NamedTuple):
    """All texts of a task, those of a scene after one another."""

    words: Tensor  # t m, padded with 0
    lengths: Tensor  # t
    targets: Tensor  # t
    starts: Tensor  # e, the first text of each scene
    counts: Tensor  # e


def list_questions(scene: Scene, random: Random) -> list[TaskText]:
    """List questions about a scene, to be answered from its picture."""
    return [TaskText(question.text, ANSWERS.index(question.answer)) for question in ask_questions(scene, random)]


def list_captions(scene: Scene, random: Random) -> list[TaskText]:
    """List a true and a false caption of a scene."""
    texts = describe_scene(scene).text, describe_scene(change_scene(scene, random)).text
    return [TaskText(text, TRUTHS.index(truth)) for text, truth in zip(texts, ("yes", "no"))]


def list_readings(scene: Scene, random: Random) -> list[TaskText]:
    """List captions with a question that they answer: no picture is needed.

    Questions about places are left out: a caption does not say which objects share a column.
    """
    caption = describe_scene(scene).text
    questions = [item for item in ask_questions(scene, random) if not any(word in item.text for word in RELATIONS)]
    return [TaskText(f"{caption} {item.text}", ANSWERS.index(item.answer)) for item in questions]


def change_scene(scene: Scene, random: Random) -> Scene:
    """Change an attribute of an object, or exchange those of two.

    The caption changes with it. No pair of color and shape comes about that is held out: it would
    give the caption away.
    """
    caption = describe_scene(scene).words
    for _ in range(NUM_TRIES):
        name, values = random.choice([("shape", SHAPES), ("color", COLORS), ("size", SIZES)])
        items = list(scene)
        index = random.randrange(len(items))
        new_values: dict[int, Any] = {index: random.choice(values)}
        if len(items) > 1 and random.random() < EXCHANGE_SHARE:
            index, second = random.sample(range(len(items)), 2)
            new_values = {index: getattr(items[second], name), second: getattr(items[index], name)}
        for number, value in new_values.items():
            items[number] = items[number]._replace(**{name: value})
        is_seen = all((item.color, item.shape) not in HELD_OUT or item in scene for item in items)
        if is_seen and describe_scene(tuple(items)).words != caption:
            return tuple(items)
    raise AssertionError("no change of the scene was found")


MAKERS = {"questions": list_questions, "captions": list_captions, "reading": list_readings}


def make_task_texts(name: str, scenes: Sequence[Scene], tokenizer: WordTokenizer, split: Split, seed: int) -> TaskTexts:
    """Make and encode the texts of a task.

    A split, the seed and a scene's number decide them.
    """
    rows = [MAKERS[name](scene, Random(f"{name}/{split}/{seed}/{row}")) for row, scene in enumerate(scenes)]
    texts = [item for row in rows for item in row]
    ids = tokenizer.encode_batch([item.text for item in texts])
    lengths = torch.tensor([len(sequence) for sequence in ids])
    words = torch.zeros(len(ids), int(lengths.max()), dtype=torch.short)
    for number, sequence in enumerate(ids):
        words[number, : len(sequence)] = torch.tensor(sequence)
    counts = torch.tensor([len(row) for row in rows])
    targets = torch.tensor([item.target for item in texts])
    return TaskTexts(words, lengths, targets, counts.cumsum(0) - counts, counts)
