"""Base of the kinds of texts: read a split, train a tokenizer, encode examples."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from mnemic.data.contract import Data, DataSource, Layout, LoadedData, Split, check_share
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
    tokenizer = None if (path / TOKENIZER_FILE).is_file() else load_subword_tokenizer(path)
    return tokenizer or load_tokenizer(path)


TOKENIZER_BUILDERS: dict[str, Callable[..., Tokenizer]] = {**TOKENIZERS, "stored": load_stored_tokenizer}


class TextSource(DataSource):
    """Base of the kinds of texts: train a tokenizer on examples, and encode them."""

    tokenizer: Mapping[str, Any]
    length: int  # the most tokens that a model reads at once

    def list_texts(self, examples: Sequence[Any]) -> Iterable[str]:
        """List the texts that the tokenizer is trained on."""
        raise NotImplementedError

    def list_labels(self, examples: Sequence[Any]) -> tuple[str, ...]:
        """List the classes or tags of the training examples."""
        return ()

    def count_outputs(self, labels: Sequence[str]) -> int:
        """Count the outputs of a model that classifies; 0: it does not."""
        return len(labels)

    def encode(self, examples: Sequence[Any], tokenizer: Tokenizer, labels: Sequence[str]) -> Any:
        """Encode examples as a dataset."""
        raise NotImplementedError

    def load(self) -> Data:
        """Read the training and validation split, and train the tokenizer."""
        train_examples, validation_examples = (self.read_split(split) for split in TRAINING_SPLITS)
        labels = self.list_labels(train_examples)
        tokenizer = build(TOKENIZER_BUILDERS, self.tokenizer, texts=list(self.list_texts(train_examples)))
        train, validation = (
            self.encode(examples, tokenizer, labels) for examples in (train_examples, validation_examples)
        )
        sizes = {"vocab": len(tokenizer), "max_length": self.length}
        if num_outputs := self.count_outputs(labels):
            sizes["classes"] = num_outputs
        return LoadedData(tokenizer, sizes, train, validation, labels=labels)

    def dataset(self, split: Split, tokenizer: Tokenizer, labels: Sequence[str] = ()) -> Any:
        """Read one split and encode it with an existing tokenizer and labels."""
        return self.encode(self.read_split(split), tokenizer, labels)


@dataclass(frozen=True, kw_only=True)
class TextFiles(TextSource):
    """Base of the kinds of text files, with the keys that all of them have.

    ``train_file``, ``validation_file`` and ``test_file`` are the files of the folder, or how their
    names start; an empty ``test_file`` means no test file. Without ``validation_file`` the share
    ``validation`` of the training examples is held out, at random with a fixed seed.
    """

    folder: str
    train_file: str = "train"
    validation_file: str = ""
    test_file: str = "test"
    validation: float = 0.1
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: WORDPIECE)
    length: int = 256

    def read_file(self, path: Path) -> list[Any]:
        """Read the examples of one file."""
        raise NotImplementedError

    def read_named(self, name: str) -> list[Any]:
        """Read the examples of the file ``name`` of the folder."""
        return self.read_file(find_file(self.folder, name))

    def list_groups(self, examples: Sequence[Any]) -> Sequence[Hashable]:
        """List the group of each example; a group stays in one split."""
        return range(len(examples))

    def read_split(self, split: Split) -> list[Any]:
        """Read the examples of one split from the only file it needs."""
        check_share("validation", self.validation)
        if split == "test":
            return self.read_named(self.test_file) if self.test_file else []
        if self.validation_file and split == "validation":
            return self.read_named(self.validation_file)
        # An example can be an article without a question.
        examples = [example for example in self.read_named(self.train_file) if example]
        if self.validation_file:
            return examples
        return split_off_validation(examples, self.validation, self.list_groups(examples))[split == "validation"]


@dataclass(frozen=True, kw_only=True)
class WindowFiles(TextFiles):
    """Base of the kinds of text files that are read in windows (see ``mnemic.text.windows``)."""

    layout: ClassVar[Layout] = "windows"
    overlap: int = 64
    truncation: Truncation = "windows"

    def __post_init__(self) -> None:
        self.window_options.check()

    @property
    def window_options(self) -> WindowOptions:
        """Return how texts are cut into windows."""
        return WindowOptions(self.length, self.overlap, self.truncation)


def split_off_validation(
    examples: Sequence[Any], fraction: float, groups: Sequence[Hashable] = ()
) -> tuple[list[Any], list[Any]]:
    """Split examples into training and validation, at random with a fixed seed.

    Taking every tenth would give validation a single class where a file alternates classes. A group
    of examples stays in one split; without ``groups`` each example is one.
    """
    examples_by_group: dict[Hashable, list[Any]] = {}
    for group, example in zip(groups or range(len(examples)), examples):
        examples_by_group.setdefault(group, []).append(example)
    count = len(examples_by_group)
    num_validation = max(int(count * fraction + 1e-9), int(fraction > 0 and count > 1))
    validation_groups = set(Random(0).sample(range(count), num_validation))
    splits: tuple[list[Any], list[Any]] = [], []
    for number, group_examples in enumerate(examples_by_group.values()):
        splits[number in validation_groups].extend(group_examples)
    return splits
