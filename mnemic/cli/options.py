"""Options that several commands share, and the checks of their values."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from mnemic.checkpoint import shipped

JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print only JSON; an error is {error: …}.")]
MODEL_HELP = (
    f"A run's folder, a checkpoint, or a network that ships with the package: {', '.join(shipped.list_networks())}."
)
ModelOption: TypeAlias = Annotated[Path, typer.Option("--model", metavar="DIR", help=MODEL_HELP)]
DataOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--data", metavar="DIR", help="Folder of the data files; for bAbI the one that contains en and en-10k."
    ),
]
SetOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a key of the recipe, such as train.rate=0.01; may be repeated."
    ),
]
SeedOption: TypeAlias = Annotated[int, typer.Option("--seed", help="Seed of the random generators.")]
DeviceOption: TypeAlias = Annotated[
    str, typer.Option("--device", help="cpu, cuda, cuda:1 … or auto: a GPU if there is one.")
]
FreshOption: TypeAlias = Annotated[bool, typer.Option("--fresh", help="Start again, even if a run exists there.")]
TasksOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--tasks", metavar="TASKS", help="Only these, such as 1,2,15-17.", show_default="all"),
]


def refuse_options(context: typer.Context, names: Iterable[str], reason: str) -> None:
    """Raise if one of these options is on the command line.

    ``names`` are parameter names. Options set by environment variables are ignored.
    """
    option_strings = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    sources = {name: context.get_parameter_source(name) for name in names}
    options = [option_strings[name] for name, source in sources.items() if source and source.name == "COMMANDLINE"]
    if options:
        raise ValueError(f"{reason}: leave out {', '.join(options)}")


def parse_task_numbers(terms: list[str], known: list[int]) -> list[int]:
    """Parse ``["1,2", "15-17"]`` into sorted task numbers; ``all`` means every known task."""
    from mnemic.recipe import ConfigError, join_words

    tasks: set[int] = set()
    for term in ",".join(terms).replace(" ", "").split(","):
        first, _, last = term.partition("-")
        if term == "all":
            tasks.update(known)
        elif first.isdecimal() and (last or first).isdecimal():
            ends = int(first), int(last or first)
            if unknown := [end for end in ends if end not in known] or sorted({*ends} - {*known}):
                known_tasks = join_words(map(str, known))
                raise ConfigError(f"there is no task {unknown[0]} here; tasks: {known_tasks}")
            if ends[1] < ends[0]:
                raise ConfigError(f"the tasks {term} run backwards; write {ends[1]}-{ends[0]}")
            tasks.update(range(ends[0], ends[1] + 1))
        else:
            raise ConfigError(f"tasks are numbers such as 1,2,15-17 or all, not {term!r}")
    if unknown := sorted(tasks - set(known)):
        raise ConfigError(f"there is no task {unknown[0]} here; tasks: {join_words(map(str, known))}")
    return sorted(tasks)


def resolve_device(name: str) -> str:
    """Resolve ``auto`` and check that the device exists."""
    import torch

    from mnemic.recipe import ConfigError

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdecimal()):
        raise ConfigError(f"--device is cpu, cuda, cuda:NUMBER or auto, not {name!r}")
    if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise ConfigError(f"no device {name!r}: PyTorch finds {count} CUDA devices; try cpu")
    return name
