"""Tasks that only a memory can solve: keys with values, and words to be repeated.

Each gives ``Example``s as stories do, so that they can be hidden among background like them.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Literal

from mnemic.data.babi.format import Example

Recall = Literal["keys", "copies"]
KEYS, COPY = 101, 102  # numbers of the two tasks, beside the stories' 1 to 20
NUMBERS: Mapping[Recall, int] = {"keys": KEYS, "copies": COPY}
NAMES = {KEYS: "key-value", COPY: "copy"}
OWNERS = [
    "anna", "boris", "clara", "david", "elena", "felix", "greta", "henry", "irene", "jonas",
    "karen", "lucas", "maria", "nadia", "oscar", "paula", "robert", "sofia", "thomas", "vera",
]  # fmt: skip
THINGS = [
    "apple", "candle", "drum", "feather", "guitar", "hammer", "lantern", "mirror", "needle",
    "orange", "pencil", "ribbon", "spoon", "ticket", "umbrella", "violin",
]  # fmt: skip


def key_values(count: int, pairs: int, seed: int) -> list[Example]:
    """``pairs`` facts of who has what, and a question about one of them."""
    dice = Random(f"keys {pairs} {seed}")
    found = []
    for _ in range(count):
        owners = dice.sample(OWNERS, pairs)
        things = [dice.choice(THINGS) for _ in owners]
        asked = dice.randrange(pairs)
        told = tuple(f"{owner} has the {thing} ." for owner, thing in zip(owners, things))
        question = f"what does {owners[asked]} have ?"
        found.append(Example(told, question, things[asked], (asked,), KEYS))
    return found


def copies(count: int, words: int, seed: int) -> list[Example]:
    """A row of words to be said again, in their order."""
    dice = Random(f"copy {words} {seed}")
    found = []
    for _ in range(count):
        row = " ".join(dice.choice(THINGS) for _ in range(words))
        told = (f"the words to remember are {row} .",)
        found.append(Example(told, "which words were to be remembered ?", row, (0,), COPY))
    return found


RECALLS: Mapping[Recall, Callable[[int, int, int], list[Example]]] = {
    "keys": key_values,
    "copies": copies,
}
