"""Load text datasets: read files, split them, train a tokenizer, encode examples."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, Protocol

from mnemic.data.contract import Split
from mnemic.data.text_tasks.batches import TextDataset
from mnemic.data.text_tasks.examples import TextError
from mnemic.data.text_tasks.files import find_file
from mnemic.recipe import build
from mnemic.text import TOKENIZERS, Tokenizer, WindowOptions, load_subword_tokenizer, load_tokenizer
from mnemic.text.tokenizers.contract import TOKENIZER_FILE
from mnemic.text.windows import Truncation

WORDPIECE: Mapping[str, Any] = {"kind": "wordpiece", "vocab": 8000}
TRAINING_SPLITS: tuple[Split, ...] = ("train", "validation")


def load_stored_tokenizer(texts: Iterable[str], *, folder: str) -> Tokenizer:
    """Load the tokenizer of a pre-trained model or of a run, without training."""
    path = Path(folder).expanduser()
    return (
        load_tokenizer(path)
        if (path / TOKENIZER_FILE).is_file()
        else load_subword_tokenizer(path) or load_tokenizer(path)
    )


TOKENIZER_BUILDERS: dict[str, Callable[..., Tokenizer]] = {**TOKENIZERS, "stored": load_stored_tokenizer}


class TextFiles(Protocol):
    """The recipe keys that all kinds of text files have."""

    @property
    def folder(self) -> str: ...

    @property
    def train_file(self) -> str: ...

    @property
    def validation_file(self) -> str: ...

    @property
    def test_file(self) -> str: ...

    @property
    def validation(self) -> float: ...

    @property
    def tokenizer(self) -> Mapping[str, Any]: ...

    @property
    def length(self) -> int: ...

    @property
    def overlap(self) -> int: ...

    @property
    def truncation(self) -> Truncation: ...


class TextTask(NamedTuple):
    """The functions that read and encode the examples of one task."""

    read_file: Callable[[Path], list[Any]]  # the examples of one file
    list_texts: Callable[[Sequence[Any]], Iterable[str]]  # what the tokenizer is trained on
    list_labels: Callable[[Sequence[Any]], tuple[str, ...]]  # the classes or tags
    encode: Callable[[Sequence[Any], Tokenizer, Sequence[str]], Any]  # into a dataset
    num_outputs: int = 0  # outputs of a model without labels: 1 for numbers
    group_key: Callable[[Any], Hashable] | None = None  # examples with one key stay in one split


class TextData(NamedTuple):
    """Loaded data of a text task; the test split is read on demand."""

    tokenizer: Tokenizer
    sizes: dict[str, int]  # that the model is built from
    train: TextDataset
    validation: TextDataset
    generated_tasks: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()


def make_window_options(files: TextFiles) -> WindowOptions:
    """Return how texts are cut into windows, checked."""
    return WindowOptions(files.length, files.overlap, files.truncation).check()


def load_text_data(files: TextFiles, task: TextTask) -> TextData:
    """Read both training splits; build tokenizer and labels from the training examples."""
    make_window_options(files)
    train_examples, validation_examples = (read_split(files, task, split) for split in TRAINING_SPLITS)
    labels = task.list_labels(train_examples)
    tokenizer = build(TOKENIZER_BUILDERS, files.tokenizer, texts=list(task.list_texts(train_examples)))
    train, validation = (task.encode(examples, tokenizer, labels) for examples in (train_examples, validation_examples))
    sizes = {"vocab": len(tokenizer), "max_length": files.length}
    if num_outputs := task.num_outputs or len(labels):
        sizes["classes"] = num_outputs
    return TextData(tokenizer, sizes, train, validation, labels=labels)


def read_split(files: TextFiles, task: TextTask, split: Split) -> list[Any]:
    """Read the examples of one split from the only file it needs."""
    if not 0 <= files.validation < 1:
        raise TextError(f"data.validation is a share from 0 to below 1, not {files.validation}")
    if split == "test":
        return task.read_file(find_file(files.folder, files.test_file)) if files.test_file else []
    if files.validation_file and split == "validation":
        return task.read_file(find_file(files.folder, files.validation_file))
    examples = task.read_file(find_file(files.folder, files.train_file))
    if files.validation_file:
        return examples
    return split_off_validation(examples, files.validation, task.group_key)[split == "validation"]


def split_off_validation(
    examples: Sequence[Any], fraction: float, group_key: Callable[[Any], Hashable] | None = None
) -> tuple[list[Any], list[Any]]:
    """Split examples into training and validation, at random with a fixed seed.

    Taking every tenth would give validation a single class where a file alternates classes.
    """
    groups: dict[Hashable, list[Any]] = {}
    for number, example in enumerate(examples):
        groups.setdefault(group_key(example) if group_key else number, []).append(example)
    count = max(int(len(groups) * fraction + 1e-9), int(fraction > 0 and len(groups) > 1))
    validation_groups = set(Random(0).sample(range(len(groups)), count))
    splits: tuple[list[Any], list[Any]] = [], []
    for number, group in enumerate(groups.values()):
        splits[number in validation_groups].extend(group)
    return splits
