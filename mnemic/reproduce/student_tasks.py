"""The tasks of the table of students: their files, recipes and metrics."""

from pathlib import Path
from typing import NamedTuple

from mnemic.data.text_tasks.examples import TextError
from mnemic.data.text_tasks.files import find_file, read_bytes
from mnemic.data.text_tasks.whole_sentences import split_whole_sentences
from mnemic.files import ANYONE, replace_file


class StudentTask(NamedTuple):
    """A task: where its files are, its recipe and its metrics, the main one first."""

    title: str
    recipe: str
    metrics: tuple[str, ...]
    subfolder: str = ""  # of the folder of GLUE; "": the folder of SQuAD
    settings: tuple[str, ...] = ()
    start_settings: tuple[str, ...] = ()  # of networks that start from trained weights
    splits_sentences: bool = False  # its training file has phrases of sentences
    baseline: str = ""  # the kind of data of a baseline of words; "": it has none
    finds_texts: bool = False  # its students differ in their negatives, not in what they learn from
    held_out: str = "a tenth of train, at random"


TASKS = {
    "sst2": StudentTask(
        "SST-2", "bert-classes", ("accuracy",), "SST-2",
        ("train.batch=64",), ("train.rate=1e-4",), splits_sentences=True, baseline="classes",
        held_out="whole sentences",
    ),
    "mrpc": StudentTask(
        "MRPC", "bert-pairs", ("f1", "accuracy"), "MRPC",
        ("data.metric=f1",), ("train.rate=5e-5", "train.epochs=12"), baseline="pairs",
    ),
    "rte": StudentTask(
        "RTE", "bert-pairs", ("accuracy",), "RTE", (), ("train.rate=2e-4", "train.epochs=12"), baseline="pairs",
    ),
    "stsb": StudentTask("STS-B", "bert-numbers", ("pearson", "spearman"), "STS-B", (), ("train.rate=1e-4",)),
    "cola": StudentTask(
        "CoLA", "bert-classes", ("matthews", "accuracy"), "CoLA",
        ("data.columns={ text = 4, label = 2 }", "data.metric=matthews"), baseline="classes",
    ),
    "squad": StudentTask("SQuAD", "bert-spans", ("f1", "exact")),
    "retrieval": StudentTask(
        "SQuAD, finding", "reader", ("recall@1", "recall@5"),
        settings=("objective.spans=0", "train.batch=128", "train.epochs=1", "train.validate=0", "train.keep=last"),
        start_settings=("train.rate=1e-4",), finds_texts=True, held_out="nothing: the last weights count",
    ),
}  # fmt: skip
DEFAULT_TASKS = tuple(name for name, task in TASKS.items() if not task.finds_texts)


class TaskFiles(NamedTuple):
    """The files of a task; without ``validation`` a tenth of ``train`` is held out."""

    train: Path
    dev: Path
    validation: Path | None = None


def find_task_files(task: StudentTask, squad: str, glue: str) -> TaskFiles:
    """Find the files of a task; raise a TextError that names what is missing."""
    option, root = ("--glue", glue) if task.subfolder else ("--squad", squad)
    if not root:
        raise TextError(f"no folder with the files of {task.title}: add {option} DIR")
    folder = Path(root).expanduser() / task.subfolder
    if not folder.is_dir():
        raise TextError(f"no folder {str(folder)!r} with the files of {task.title}: see {option}")
    return TaskFiles(*(find_file(str(folder), name) for name in ("train", "dev")))


def hold_out_sentences(files: TaskFiles, folder: Path) -> TaskFiles:
    """Split the phrases of a training file into two files in ``folder``.

    Files that are there stay as they are. Validation has a tenth of the whole sentences.
    """
    validation, train = folder / "validation.tsv", folder / "train.tsv"
    if not train.is_file():  # it is written last
        folder.mkdir(parents=True, exist_ok=True)
        train_lines, validation_lines = split_whole_sentences(read_bytes(files.train))
        for path, lines in ((validation, validation_lines), (train, train_lines)):
            with replace_file(path, mode=ANYONE) as file:
                file.write(lines)
    return TaskFiles(train, files.dev, validation)
