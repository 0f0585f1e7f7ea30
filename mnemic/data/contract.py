"""What training and testing ask of a data set, whatever it holds.

Training draws ``Examples``. Those that are answered with a word are ``Questions``, and are tested
by how many are wrong; texts that are read in windows (``texts.tensors``) are judged by figures of
their own kind.

Shapes: q examples of the set, b batch, v vocabulary; with many runs a runs axis in front.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from mnemic.text import Tokenizer, Words

Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, ...] = ("train", "validation", "test")
Sizes = dict[str, Any]  # facts a network is built from: whole numbers, or lists of them


class Examples(Protocol):
    """A set of examples on one device, ready to be drawn from."""

    @property
    def device(self) -> torch.device: ...

    @property
    def rolls(self) -> int: ...  # uniform random numbers an example takes, beside the network's

    @property
    def lengths(self) -> Tensor: ...  # q, by which examples of like length can be put together

    @property
    def unknown(self) -> int: ...  # examples whose answer the training set never had

    def __len__(self) -> int: ...

    def to(self, device: torch.device | str) -> "Examples": ...

    def batch(
        self,
        rows: Tensor,
        rolls: Tensor | None = None,
        *,
        compact: bool = True,
        most: int | None = None,
    ) -> Any:
        """What a network reads (``inputs``) and what an objective compares it with.

        ``most``: none of these is longer, so nothing need have room for more.
        """
        ...


class Questions(Examples, Protocol):
    """Examples that are answered with a word, or an entity."""

    @property
    def task(self) -> Tensor: ...  # q, which task each question belongs to

    def to(self, device: torch.device | str) -> "Questions": ...

    def wrong(self, scores: Tensor, rows: Tensor) -> Tensor:
        """True where the best answer is not right: ``scores`` b v of the questions ``rows`` b."""
        ...


class Data(Protocol):
    """What training knows of a data set: its words, the facts a network is built from, two sets."""

    @property
    def words(self) -> Tokenizer: ...

    @property
    def labels(self) -> tuple[str, ...]: ...  # what answers are called; none where they are words

    @property
    def sizes(self) -> Sizes: ...

    @property
    def train(self) -> Examples: ...

    @property
    def validation(self) -> Examples: ...

    @property
    def made(self) -> tuple[int, ...]: ...  # tasks whose training set came from a generator


class Source(Protocol):
    """Where questions come from; its fields are what a recipe's ``[data]`` may say."""

    @property
    def tasks(self) -> Sequence[int]: ...

    @property
    def names(self) -> Mapping[int, str]: ...  # of its tasks

    def data(self) -> Data:
        """Read everything, and number the words of what may be learnt from."""
        ...

    def asked(self, part: Part, words: Words, tasks: Sequence[int] | None = None) -> Questions:
        """The questions of a part, of all tasks or some, in words that are already numbered."""
        ...


class TextSource(Protocol):
    """Where texts come from, as ``Source``; answers have names instead of tasks."""

    def data(self) -> Data: ...

    def asked(self, part: Part, words: Tokenizer, labels: Sequence[str]) -> Examples:
        """The texts of a part, in words and labels that are already numbered."""
        ...
