"""Training stories told again with other names: words that mean alike things change places."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from random import Random

from mnemic.data.babi.format import Example, StoryError

Alike = Sequence[Sequence[str]]  # groups of words; those of a group can stand for each other
ByTask = Mapping[str, Alike]  # groups for some tasks, by their numbers; the others are told once
WORD = re.compile(r"([^\W\d_]+)")


def retold(told: Sequence[Example], alike: Alike, times: int, *, seed: int) -> list[Example]:
    """The questions as they are, then each ``times`` more, every time with names of its own.

    One name always becomes the same other one within a question and its story, so facts still
    prove the answer. No story is made up: each is an old one with its names exchanged.
    """
    check(told, alike, times)
    dice = Random(f"retold {seed}")
    again = [
        exchanged(example, drawn)
        for example, drawn in zip(list(told) * times, draws(alike, dice), strict=False)
    ]
    return [*told, *again]


def retold_by_task(
    told: Sequence[Example], alike: ByTask, times: int, *, seed: int
) -> list[Example]:
    """As `retold`, each task with groups of its own; a task that has none is told once."""
    tasks = {str(example.task) for example in told}
    if strange := [task for task in alike if task not in tasks]:
        raise StoryError(
            f"data.alike has groups for task {strange[0]!r}, which is not in data.tasks"
        )
    whole: list[Example] = []
    for task in sorted(tasks, key=int):
        own = [example for example in told if str(example.task) == task]
        whole += retold(own, alike[task], times, seed=seed) if task in alike else own
    return whole


def draws(alike: Alike, dice: Random) -> Iterator[Mapping[str, str]]:
    """For ever new exchanges: each word, small and large, and what stands for it."""
    groups = [[word.lower() for word in group] for group in alike]
    while True:
        drawn: dict[str, str] = {}
        for group in groups:
            for word, other in zip(group, dice.sample(group, len(group))):
                drawn |= {word: other, word.capitalize(): other.capitalize()}
        yield drawn


def exchanged(example: Example, drawn: Mapping[str, str]) -> Example:
    """An example with other words."""

    def rewritten(text: str) -> str:
        return "".join([drawn.get(piece, piece) for piece in pieces(text)])

    return example._replace(
        sentences=tuple(map(rewritten, example.sentences)),
        question=rewritten(example.question),
        answer=rewritten(example.answer),
    )


@lru_cache(maxsize=100_000)
def pieces(text: str) -> tuple[str, ...]:
    """The text in words and what stands between them."""
    return tuple(WORD.split(text))


def check(told: Sequence[Example], alike: Alike, times: int) -> None:
    """Every group has words that occur, each in one group."""
    if times < 0:
        raise StoryError(f"data.retold is at least 0, not {times}")
    if times and not alike:
        raise StoryError(
            "data.retold tells stories again with other names; data.alike says which may stand "
            'for each other, such as [["mary", "john"], ["kitchen", "garden"]]'
        )
    words = [word.lower() for group in alike for word in group]
    if twice := {word for word in words if words.count(word) > 1}:
        raise StoryError(f"data.alike has {sorted(twice)[0]!r} twice; a word is in one group, once")
    if few := [list(group) for group in alike if len(group) < 2]:
        raise StoryError(f"each group of data.alike has at least two words, not {few[0]}")
    texts = {text for example in told for text in (*example.sentences, example.question)}
    used = {word.lower() for text in texts for word in WORD.findall(text)}
    if told and (strange := [word for word in words if word not in used]):
        raise StoryError(f"data.alike has {strange[0]!r}, a word that no training story has")
