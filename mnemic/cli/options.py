"""Options that several commands share, and the checks of their values."""

from pathlib import Path
from typing import Annotated

from mnemic.checkpoint import shipped
from mnemic.cli.declare import Argument, Option
from mnemic.recipe import ConfigError, join_words

MODEL_HELP = f"A run's folder, a checkpoint, or a network that ships: {', '.join(shipped.list_networks())}."
QUESTIONS_HELP = "A file with one question per line, or - for standard input; prints JSON lines."
MEMORY_HELP = "The memory: a file such as notes.db, a name such as work, or postgresql://…"
MEMORY_DEFAULT = "this project's (.mnemic), else your own"
EMBEDDER_HELP = (
    f"The embedding model: {', '.join(shipped.EMBEDDERS)}, hashed-ngrams, minilm, none, or a model's folder."
)
EMBEDDER_DEFAULT = f"the memory's own; {shipped.EMBEDDERS[0]} for a new memory"
READER_HELP = (
    f"The model that answers: {', '.join(shipped.READERS)}, which ships, a folder, or none: the best matching sentence."
)
DEFAULT_READER = shipped.READERS[0]

JSON = Option("--json", "Print only JSON; an error is {error: …}.")  # every command has it
Fresh = Annotated[bool, Option("--fresh", "Start again, even if a run exists there.")]
Seed = Annotated[int, Option("--seed", "Seed of the random generators.")]
Device = Annotated[str, Option("--device", "cpu, cuda, cuda:1 … or auto: a GPU if there is one.")]
Data = Annotated[str | None, Option("--data DIR", "Folder of the data files; for bAbI the one with en and en-10k.")]
Sets = Annotated[list[str] | None, Option("--set KEY=VALUE", "Change a key, such as train.rate=0.01; may be repeated.")]
Tasks = Annotated[list[str] | None, Option("--tasks TASKS", "Only these, such as 1,2,15-17.", "all")]
Task = Annotated[str | None, Option("--task NAME", "The task, of a network that learned several.")]
Model = Annotated[Path, Option("--model DIR", MODEL_HELP)]
ModelArgument = Annotated[Path, Argument("DIR", MODEL_HELP)]
Question = Annotated[str | None, Argument("QUESTION", "The question; - is standard input.")]
Questions = Annotated[str | None, Option("--questions FILE", QUESTIONS_HELP)]
All = Annotated[bool, Option("--all", "Show all evidence, not only what was read most.")]
Plot = Annotated[Path | None, Option("--plot FILE", "Plot the evidence into a .png, .svg or .pdf file.")]
Memory = Annotated[str | None, Option("--memory PATH|NAME|ADDRESS", MEMORY_HELP, MEMORY_DEFAULT, "MNEMIC_MEMORY")]
Embedder = Annotated[str | None, Option("--embedder NAME|DIR", EMBEDDER_HELP, EMBEDDER_DEFAULT)]
Reader = Annotated[str, Option("--reader NAME|DIR", READER_HELP)]
Inside = Annotated[str | None, Option("--in PATH", "Only documents in this folder, or this file.")]
Kind = Annotated[str | None, Option("--kind KIND", "Only documents of this kind, such as pdf, md or note.")]
Since = Annotated[str | None, Option("--since DATE", "Only documents of this day or later: 2024-03-31, 2024-03, 2024.")]
Until = Annotated[str | None, Option("--until DATE", "Only documents of this day or earlier.")]
Document = Annotated[str, Argument("ID|PATH", "A document's number or its file.")]
MemoryFile = Annotated[Path, Argument("MEMORY", "The memory file, such as notes.mem.")]


def parse_task_numbers(terms: list[str], known: list[int]) -> list[int]:
    """Parse ``["1,2", "15-17"]`` into sorted task numbers; ``all`` means every known task."""
    tasks: set[int] = set()
    for term in ",".join(terms).replace(" ", "").split(","):
        first, _, last = term.partition("-")
        if term == "all":
            tasks.update(known)
        elif first.isdecimal() and (last or first).isdecimal():
            start, end = int(first), int(last or first)
            if end < start:
                raise ConfigError(f"the tasks {term} run backwards; write {end}-{start}")
            tasks.update({start, end}, range(start, min(end, max(known)) + 1))
        else:
            raise ConfigError(f"tasks are numbers such as 1,2,15-17 or all, not {term!r}")
    if unknown := sorted(tasks - set(known)):
        raise ConfigError(f"there is no task {unknown[0]} here; tasks: {join_words(map(str, known))}")
    return sorted(tasks)


def resolve_device(name: str) -> str:
    """Resolve ``auto`` and check that the device exists."""
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdecimal()):
        raise ConfigError(f"--device is cpu, cuda, cuda:NUMBER or auto, not {name!r}")
    if kind == "cuda" and int(number or 0) >= (count := torch.cuda.device_count()):
        raise ConfigError(f"no device {name!r}: PyTorch finds {count} CUDA devices; try cpu")
    return name
