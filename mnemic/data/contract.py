"""What training and testing ask of a data set, whatever it holds.

Shapes: q questions of the set, b batch, v vocabulary; with many runs a runs axis in front.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from mnemic.text import Words

Part = Literal["train", "validation", "test"]
Sizes = dict[str, Any]  # facts a network is built from: whole numbers, or lists of them


class Questions(Protocol):
    """A set of questions on one device, ready to be drawn from."""

    @property
    def task(self) -> Tensor: ...  # q, which task each question belongs to

    @property
    def device(self) -> torch.device: ...

    @property
    def unknown(self) -> int: ...  # questions that cannot be answered in the words of the set

    @property
    def lengths(self) -> Tensor: ...  # q, how much there is to read before each question

    def __len__(self) -> int: ...

    def to(self, device: torch.device | str) -> "Questions": ...

    def batch(
        self,
        rows: Tensor,
        rolls: Tensor | None = None,
        *,
        compact: bool = True,
        most: int | None = None,
    ) -> Any:
        """What a network reads (``inputs``) and what an objective compares it with.

        ``most``: none of these questions is longer, so nothing need have room for more.
        """
        ...

    def wrong(self, scores: Tensor, rows: Tensor) -> Tensor:
        """True where the best answer is not right: ``scores`` b v of the questions ``rows`` b."""
        ...


class Data(Protocol):
    """A whole data set: its words, the facts a network is built from, and three sets."""

    @property
    def words(self) -> Words: ...

    @property
    def sizes(self) -> Sizes: ...

    @property
    def train(self) -> Questions: ...

    @property
    def validation(self) -> Questions: ...

    @property
    def test(self) -> Questions: ...

    @property
    def made(self) -> tuple[int, ...]: ...  # tasks whose training set came from a generator


class Source(Protocol):
    """Where a data set comes from; its fields are what a recipe's ``[data]`` may say."""

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
