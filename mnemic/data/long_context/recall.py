"""Synthetic recall tasks for memories: key-value lookup and copying words.

Both generate ``StoryExample``s, which can be hidden in background text like bAbI stories.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Literal, TypeAlias

from mnemic.data.babi.format import StoryExample

RecallTask = Literal["keys", "copies"]
KEYS, COPY = 101, 102  # numbers of the two tasks; those of bAbI are 1 to 20
TASK_NUMBERS: Mapping[RecallTask, int] = {"keys": KEYS, "copies": COPY}
TASK_NAMES = {KEYS: "key-value", COPY: "copy"}
OWNERS = [
    "anna", "boris", "clara", "david", "elena", "felix", "greta", "henry", "irene", "jonas",
    "karen", "lucas", "maria", "nadia", "oscar", "paula", "robert", "sofia", "thomas", "vera",
]  # fmt: skip
OBJECTS = [
    "apple", "candle", "drum", "feather", "guitar", "hammer", "lantern", "mirror", "needle",
    "orange", "pencil", "ribbon", "spoon", "ticket", "umbrella", "violin",
]  # fmt: skip


def make_key_value_examples(num_examples: int, num_facts: int, seed: int) -> list[StoryExample]:
    """Generate examples of ``num_facts`` facts about owners, each with a question about one."""
    generator = Random(f"keys {num_facts} {seed}")
    examples = []
    for _ in range(num_examples):
        owners = generator.sample(OWNERS, num_facts)
        objects = [generator.choice(OBJECTS) for _ in owners]
        fact = generator.randrange(num_facts)
        sentences = tuple(f"{owner} has the {object_name} ." for owner, object_name in zip(owners, objects))
        question = f"what does {owners[fact]} have ?"
        examples.append(StoryExample(sentences, question, objects[fact], (fact,), KEYS))
    return examples


def make_copy_examples(num_examples: int, num_words: int, seed: int) -> list[StoryExample]:
    """Generate examples of ``num_words`` words that the answer repeats in order."""
    generator = Random(f"copy {num_words} {seed}")
    examples = []
    for _ in range(num_examples):
        words = " ".join(generator.choice(OBJECTS) for _ in range(num_words))
        sentences = (f"the words to remember are {words} .",)
        examples.append(StoryExample(sentences, "which words were to be remembered ?", words, (0,), COPY))
    return examples


ExampleMaker: TypeAlias = Callable[[int, int, int], list[StoryExample]]
EXAMPLE_MAKERS: Mapping[RecallTask, ExampleMaker] = {"keys": make_key_value_examples, "copies": make_copy_examples}
