"""What training and evaluation use of data: kinds of data, loaded data, and datasets.

A ``DataSource`` is one kind of the table ``DATASETS``: it reads files or generates examples, and
``load`` returns ``LoadedData``: a tokenizer and one ``Dataset`` per split. Training draws batches
from a ``Dataset``. A ``QuestionDataset`` is answered with one word and measured by its error rate;
other datasets name their ``metrics``.

Shapes: q examples of the dataset, b batch, v vocabulary; with several runs a runs axis in front.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import torch
from torch import Tensor

from mnemic.recipe import ConfigError

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
MAX_EXAMPLES = 2_000_000  # that are generated for one split; 1 to 3 kB each
Layout = Literal["stories", "windows", "segments", "tokens", "sequences", "pictures"]  # of a batch
Names = tuple[str, ...]
Sizes = dict[str, Any]  # sizes a model is built from (vocab, max_length, …): integers, or lists
DatasetT = TypeVar("DatasetT")


class Dataset(Protocol):
    """A set of examples on one device that batches are drawn from."""

    @property
    def metrics(self) -> str: ...  # how networks are measured on it, a key of evaluate's table

    @property
    def device(self) -> torch.device: ...

    @property
    def num_uniforms(self) -> int: ...  # random numbers that one example of a batch needs

    @property
    def lengths(self) -> Tensor: ...  # q, to bucket examples of similar length

    @property
    def weights(self) -> Tensor | None: ...  # q, how often an epoch has each example; None: once

    @property
    def is_stream(self) -> bool: ...  # examples are pieces of one text, each going on where the last ended

    @property
    def num_unknown(self) -> int: ...  # examples whose answer does not occur in training

    def __len__(self) -> int: ...

    def to(self, device: torch.device | str) -> Self: ...

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

    def is_wrong(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Mark where the best answer is wrong: ``logits`` b v of the questions ``rows`` b."""
        ...


class LoadedData(NamedTuple, Generic[DatasetT]):
    """The splits of loaded data, with their tokenizer and a network's sizes."""

    tokenizer: Any  # a Tokenizer, of the class that the kind of data needs
    sizes: Sizes
    train: DatasetT
    validation: DatasetT
    test: Any = None  # a dataset; None: it is read on demand
    generated_tasks: tuple[int, ...] = ()  # tasks whose training set was generated
    labels: tuple[str, ...] = ()  # class names; empty where answers are words


Data: TypeAlias = LoadedData[Dataset]


def check_share(name: str, share: float) -> None:
    """Raise a ConfigError unless ``share``, the value of ``data.NAME``, is from 0 to below 1."""
    if not 0 <= share < 1:
        raise ConfigError(f"data.{name} is a share from 0 to below 1, not {share}")


def check_minimum(name: str, value: int, minimum: int) -> None:
    """Raise a ConfigError unless ``value``, that of ``data.NAME``, is at least ``minimum``."""
    if value < minimum:
        raise ConfigError(f"data.{name} is at least {minimum}, not {value}")


def check_count(name: str, count: int) -> None:
    """Raise a ConfigError if ``data.NAME`` asks for more examples than can be generated."""
    if count > MAX_EXAMPLES:
        raise ConfigError(
            f"data.{name} makes {count:,} examples; at most {MAX_EXAMPLES:,} are generated, which takes minutes and "
            "gigabytes: give a smaller number"
        )


class DataSource:
    """Base of the kinds of data: what a kind can do.

    Its fields are the keys of a recipe's ``[data]``.

    A kind has ``load()``, which reads all splits and builds the tokenizer from what may be learned
    from, and ``dataset(split, tokenizer, …)``, which encodes one split with an existing tokenizer:
    that of some ``tasks``, or with these ``labels``.
    """

    layout: ClassVar[Layout]
    response: ClassVar[str | None] = None  # the kind of response it needs, if only one fits
    objectives: ClassVar[Names] = ()  # kinds of objective that fit
    reads_segments: ClassVar[bool] = False  # windows can be read in turn, with a memory
    files: ClassVar[str] = ""  # what the files of data.folder hold
    alternative: ClassVar[str] = ""  # what can be used instead of such files
    input_description: ClassVar[str] = "reads one text at a time"
    input_fields: ClassVar[tuple[Names, ...]] = (("text",), ("sentence",))
    paired: ClassVar[bool] = False  # an example is a pair of texts
    reads_stories: ClassVar[bool] = False  # questions about stories, with their supporting facts
    has_knowledge_base: ClassVar[bool] = False  # questions about a base that all of them share
    calibrates_no_answer: ClassVar[bool] = False  # a trained network's "no answer" is calibrated
    file_kind: ClassVar[str] = ""  # of generated data: the kind that reads the same from files
    shared_keys: ClassVar[Names] = ()  # recipe keys that both kinds have
    suggestions: ClassVar[Names] = ("evaluate {run}", "predict --model {run} FILE")

    @classmethod
    def fitting_objectives(cls, spec: Mapping[str, Any]) -> Names:
        """Return the kinds of objective that fit a recipe's ``[data]``."""
        return cls.objectives

    folder: str  # of kinds that read files

    @property
    def path(self) -> Path:
        """Return the path of ``folder``, with ``~`` expanded."""
        return Path(self.folder).expanduser()

    def read_split(self, split: Split) -> Any:
        """Read or generate the examples of one split."""
        raise NotImplementedError

    @classmethod
    def next_commands(cls, run: str) -> list[str]:
        """List commands of ``mnemic`` to try after training; ``run`` is the folder of the run."""
        return [command.format(run=run) for command in cls.suggestions]
