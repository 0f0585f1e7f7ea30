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
    "tokenizer",
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
    suggestions: ClassVar[Names] = (
        "evaluate {run}",
        "predict --model {run} --task NAME FILE",
        "train bert-pairs --start {run} --data DIR",
    )
    tasks: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        names = [task.get("name") for task in self.tasks]
        are_names = all(isinstance(name, str) and name and SEPARATOR not in name for name in names)
        if not names or len({*names}) < len(names) or not are_names:
            raise ConfigError(
                f'data.tasks lists tasks, each with a name of its own, such as {{ name = "RTE", kind = "pairs" }}, '
                f"not {self.tasks!r}"
            )
        _ = self.sources

    @cached_property
    def sources(self) -> dict[str, ClassFiles]:
        """The data source of each task, by its name."""
        return {task["name"]: build(TASK_KINDS, self.task_spec(task["name"])) for task in self.tasks}

    def task_spec(self, name: str) -> dict[str, Any]:
        """Return the data section of a recipe for one task alone."""
        task = next(task for task in self.tasks if task["name"] == name)
        spec = {key: value for key, value in task.items() if key != "name"}
        shared = {key: getattr(self, key) for key in SHARED_KEYS}
        return shared | spec | {"folder": str(Path(self.folder) / spec.get("folder", name))}

    def find_outputs(self, name: str, labels: Sequence[str]) -> tuple[TaskOutputs, tuple[str, ...]]:
        """Find the outputs of a task among ``labels``, those of a network, and its classes."""
        prefix = f"{name}{SEPARATOR}"
        columns = [number for number, label in enumerate(labels) if label.startswith(prefix)]
        if not columns:
            known = join_words(dict.fromkeys(label.partition(SEPARATOR)[0] for label in labels))
            raise TextError(f"the network has not learned the task {name!r}; it knows {known}")
        is_number = self.sources[name].labels == "numbers"
        classes = () if is_number else tuple(labels[column].removeprefix(prefix) for column in columns)
        return TaskOutputs(columns[0], len(columns), is_number), classes

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
            outputs[name], classes = self.find_outputs(name, labels)
            datasets[name] = source.encode(of_task, tokenizer, classes)
        return join_datasets(datasets, outputs)
