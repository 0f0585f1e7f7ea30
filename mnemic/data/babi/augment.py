"""Augment training stories by swapping interchangeable words, such as names of people."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from random import Random

from mnemic.data.babi.format import StoryError, StoryExample

WordGroups = Sequence[Sequence[str]]  # the words of one group are interchangeable
TaskWordGroups = Mapping[str, WordGroups]  # task number -> groups; other tasks get no copies
WORD = re.compile(r"([^\W\d_]+)")


def augment_examples(
    examples: Sequence[StoryExample], groups: WordGroups, num_copies: int, *, seed: int
) -> list[StoryExample]:
    """Append ``num_copies`` copies of each example with randomly swapped words.

    Within one copy a word is always replaced by the same other word, so the facts still prove the
    answer. No story is new: each copy is an original story with its names swapped.
    """
    check_groups(examples, groups, num_copies)
    substitutions = sample_substitutions(groups, Random(f"retold {seed}"))
    return [*examples, *map(substitute_words, list(examples) * num_copies, substitutions)]


def augment_by_task(
    examples: Sequence[StoryExample], groups_by_task: TaskWordGroups, num_copies: int, *, seed: int
) -> list[StoryExample]:
    """Augment the examples of each task with the word groups of that task.

    A task without groups keeps its original examples and gets no copies.
    """
    tasks = {str(example.task) for example in examples}
    if unknown_tasks := [task for task in groups_by_task if task not in tasks]:
        raise StoryError(f"data.interchangeable has groups for task {unknown_tasks[0]!r}, which is not in data.tasks")
    augmented: list[StoryExample] = []
    for task in sorted(tasks, key=int):
        task_examples = [example for example in examples if str(example.task) == task]
        if task in groups_by_task:
            task_examples = augment_examples(task_examples, groups_by_task[task], num_copies, seed=seed)
        augmented += task_examples
    return augmented


def sample_substitutions(groups: WordGroups, generator: Random) -> Iterator[Mapping[str, str]]:
    """Yield random word substitutions endlessly, for lower-case and capitalized words."""
    lowercase_groups = [[word.lower() for word in group] for group in groups]
    while True:
        substitution: dict[str, str] = {}
        for group in lowercase_groups:
            for word, replacement in zip(group, generator.sample(group, len(group))):
                substitution |= {word: replacement, word.capitalize(): replacement.capitalize()}
        yield substitution


def substitute_words(example: StoryExample, substitution: Mapping[str, str]) -> StoryExample:
    """Replace words in the story, question and answer of an example."""

    def substitute(text: str) -> str:
        return "".join([substitution.get(piece, piece) for piece in split_words(text)])

    return example._replace(
        sentences=tuple(map(substitute, example.sentences)),
        question=substitute(example.question),
        answer=substitute(example.answer),
    )


@lru_cache(maxsize=100_000)
def split_words(text: str) -> tuple[str, ...]:
    """Split a text into words and the characters between them."""
    return tuple(WORD.split(text))


def check_groups(examples: Sequence[StoryExample], groups: WordGroups, num_copies: int) -> None:
    """Raise a StoryError unless the word groups fit the examples.

    Each group needs at least two words, each word occurs in the training stories and belongs to
    one group only.
    """
    if num_copies < 0:
        raise StoryError(f"data.augment is at least 0, not {num_copies}")
    if num_copies and not groups:
        raise StoryError(
            "data.augment tells stories again with other names; data.interchangeable says which may stand "
            'for each other, such as [["mary", "john"], ["kitchen", "garden"]]'
        )
    words = [word.lower() for group in groups for word in group]
    if duplicates := {word for word in words if words.count(word) > 1}:
        raise StoryError(f"data.interchangeable has {sorted(duplicates)[0]!r} twice; a word is in one group, once")
    if short_groups := [list(group) for group in groups if len(group) < 2]:
        raise StoryError(f"each group of data.interchangeable has at least two words, not {short_groups[0]}")
    texts = {text for example in examples for text in (*example.sentences, example.question)}
    story_words = {word.lower() for text in texts for word in WORD.findall(text)}
    if examples and (unused_words := [word for word in words if word not in story_words]):
        raise StoryError(f"data.interchangeable has {unused_words[0]!r}, a word that no training story has")
