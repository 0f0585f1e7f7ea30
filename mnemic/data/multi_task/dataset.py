"""Data source of several tasks that one network learns together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from mnemic.data.contract import Names, Split
from mnemic.data.multi_task.batches import SEPARATOR, MultiTaskDataset, TaskOutputs, join_datasets
from mnemic.data.text_tasks.dataset import ClassFiles, PairFiles
from mnemic.data.text_tasks.examples import LabeledExample, TextError
from mnemic.data.text_tasks.splits import WindowFiles
from mnemic.recipe import ConfigError, build, join_words
from mnemic.text import Tokenizer

TASK_KINDS: dict[str, type[ClassFiles]] = {"classes": ClassFiles, "pairs": PairFiles}
SHARED_KEYS = (
    "length",
    "overlap",
    "truncation",
    "validation",
    "train_file",
    "validation_file",
    "test_file",
)  # of all tasks, unless one has its own


@dataclass(frozen=True, kw_only=True)
class MultiTaskFiles(WindowFiles):
    """Texts or pairs of several ``tasks``, each with classes or a number.

    A task has a ``name`` and the keys of the kind ``classes`` or ``pairs``; its files are in the
    folder of its name below ``folder``, unless it names another one. Tasks share the tokenizer, and
    the names of files unless they have their own.
    """

    response: ClassVar[str] = "multi-task"
    objectives: ClassVar[Names] = ("multi-task",)
    files: ClassVar[str] = "text"
    alternative: ClassVar[str] = "your own .tsv or .jsonl files, a folder per task"
    suggestions: ClassVar[Names] = ("evaluate {run}", "train bert-pairs --start {run} --data DIR")
    tasks: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        names = [task.get("name") for task in self.tasks]
        if not names or len({*names}) < len(names) or not all(isinstance(name, str) and name for name in names):
            raise ConfigError(
                f'data.tasks lists tasks, each with a name of its own, such as {{ name = "RTE", kind = "pairs" }}, '
                f"not {self.tasks!r}"
            )
        _ = self.sources

    @cached_property
    def sources(self) -> dict[str, ClassFiles]:
        """The data source of each task, by its name."""
        sources = {}
        for task in self.tasks:
            spec = {key: value for key, value in task.items() if key != "name"}
            shared = {key: getattr(self, key) for key in SHARED_KEYS}
            folder = str(Path(self.folder) / spec.get("folder", task["name"]))
            sources[task["name"]] = build(TASK_KINDS, shared | spec | {"folder": folder})
        return sources

    def read_split(self, split: Split) -> list[list[LabeledExample]]:
        """Read the examples of one split, task by task."""
        return [source.read_split(split) for source in self.sources.values()]

    def list_texts(self, examples: Sequence[Sequence[LabeledExample]]) -> Iterable[str]:
        """List all texts of the examples."""
        for source, of_task in zip(self.sources.values(), examples):
            yield from source.list_texts(of_task)

    def list_labels(self, examples: Sequence[Sequence[LabeledExample]]) -> tuple[str, ...]:
        """List the names of all outputs."""
        labels = []
        for (name, source), of_task in zip(self.sources.items(), examples):
            labels += [f"{name}{SEPARATOR}{label}" for label in source.list_labels(of_task) or ("number",)]
        return tuple(labels)

    def encode(
        self, examples: Sequence[Sequence[LabeledExample]], tokenizer: Tokenizer, labels: Sequence[str]
    ) -> MultiTaskDataset:
        """Encode the examples of all tasks."""
        datasets, outputs = {}, {}
        for (name, source), of_task in zip(self.sources.items(), examples):
            prefix = f"{name}{SEPARATOR}"
            columns = [number for number, label in enumerate(labels) if label.startswith(prefix)]
            if not columns:
                known = join_words({label.partition(SEPARATOR)[0] for label in labels})
                raise TextError(f"the network has not learned the task {name!r}; it knows {known}")
            is_number = source.labels == "numbers"
            classes = () if is_number else tuple(labels[column].removeprefix(prefix) for column in columns)
            datasets[name] = source.encode(of_task, tokenizer, classes)
            outputs[name] = TaskOutputs(columns[0], len(columns), is_number)
        return join_datasets(datasets, outputs)
