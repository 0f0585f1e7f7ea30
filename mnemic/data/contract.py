"""Protocols of data sources and datasets: everything that training and evaluation use of them.

A ``DataSource`` is one kind of the table ``DATASETS``: it reads files or generates examples, and
``load`` returns ``Data``: a tokenizer and one ``Dataset`` per split. Training draws batches from a
``Dataset``. A ``QuestionDataset`` is answered with one word and measured by its error rate; texts
that are read in windows (``text_tasks.batches``) have metrics of their own.

Shapes: q examples of the dataset, b batch, v vocabulary; with several runs a runs axis in front.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from mnemic.text import Tokenizer, WordTokenizer

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
Sizes = dict[str, Any]  # sizes a model is built from (vocab, longest, …): integers, or lists


class Dataset(Protocol):
    """A set of examples on one device that batches are drawn from."""

    @property
    def device(self) -> torch.device: ...

    @property
    def num_uniforms(self) -> int: ...  # random numbers that one example of a batch needs

    @property
    def lengths(self) -> Tensor: ...  # q, to bucket examples of similar length

    @property
    def num_unknown(self) -> int: ...  # examples whose answer does not occur in training

    def __len__(self) -> int: ...

    def to(self, device: torch.device | str) -> "Dataset": ...

    def batch(
        self, rows: Tensor, uniforms: Tensor | None = None, *, compact: bool = True, max_length: int | None = None
    ) -> Any:
        """Return the examples ``rows`` (b): the model's ``inputs`` and the objective's targets.

        ``uniforms`` (b num_uniforms) are random numbers from [0, 1) that decide what is drawn.
        ``compact`` cuts padding to these examples; without it all batches of a bucket have one
        shape. ``max_length``: no example of the bucket is longer.
        """
        ...


class QuestionDataset(Dataset, Protocol):
    """A dataset of questions that are answered with one word or entity."""

    @property
    def task(self) -> Tensor: ...  # q, the task of each question

    def to(self, device: torch.device | str) -> "QuestionDataset": ...

    def is_wrong(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Mark where the best answer is wrong: ``logits`` b v of the questions ``rows`` b."""
        ...


class Data(Protocol):
    """Loaded data: tokenizer, labels, the model's sizes, training and validation datasets."""

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def labels(self) -> tuple[str, ...]: ...  # class names; empty where answers are words

    @property
    def sizes(self) -> Sizes: ...

    @property
    def train(self) -> Dataset: ...

    @property
    def validation(self) -> Dataset: ...

    @property
    def generated_tasks(self) -> tuple[int, ...]: ...  # tasks whose training set was generated


class DataSource(Protocol):
    """A source of questions; its fields are the keys of a recipe's ``[data]`` table."""

    @property
    def tasks(self) -> Sequence[int]: ...

    @property
    def names(self) -> Mapping[int, str]: ...  # of its tasks

    def load(self) -> Data:
        """Read all splits and build the tokenizer from what may be learned from."""
        ...

    def dataset(self, split: Split, tokenizer: WordTokenizer, tasks: Sequence[int] | None = None) -> QuestionDataset:
        """Read one split, of all tasks or some, and encode it with an existing tokenizer."""
        ...


class TextDataSource(Protocol):
    """A source of texts, like ``DataSource``, with labels instead of tasks."""

    def load(self) -> Data: ...

    def dataset(self, split: Split, tokenizer: Tokenizer, labels: Sequence[str]) -> Dataset:
        """Read one split and encode it with an existing tokenizer and labels."""
        ...
