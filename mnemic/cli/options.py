"""The options that several commands share."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from mnemic.checkpoint import shipped

AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print JSON and nothing else; a mistake is {error: …}.")
]
MODEL = (
    "A run's folder, a checkpoint, or a network that came with the package: "
    f"{', '.join(shipped.names())}."
)
Model: TypeAlias = Annotated[Path, typer.Option("--model", metavar="DIR", help=MODEL)]
Data: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Folder of the data's files; of bAbI the one with en and en-10k.",
    ),
]
Sets: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change any key of the recipe, such as train.rate=0.01; may be repeated.",
    ),
]
Seed: TypeAlias = Annotated[int, typer.Option("--seed", help="Of every random choice.")]
Device: TypeAlias = Annotated[
    str, typer.Option("--device", help="cpu, cuda, cuda:1 … or auto: a GPU where there is one.")
]
Fresh: TypeAlias = Annotated[
    bool, typer.Option("--fresh", help="Start anew, even if a run stands there.")
]
Tasks: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--tasks", metavar="TASKS", help="Only these, such as 1,2,15-17.", show_default="all"
    ),
]


def refuse(context: typer.Context, names: Iterable[str], why: str) -> None:
    """An error if one of these options was typed; one that the environment gives is left alone."""
    spelled = {own.name: own.opts[0] for own in context.command.params}
    sources = {name: context.get_parameter_source(name) for name in names}
    typed = [spelled[name] for name, own in sources.items() if own and own.name == "COMMANDLINE"]
    if typed:
        raise ValueError(f"{why}: leave out {', '.join(typed)}")


def task_numbers(texts: list[str], known: list[int]) -> list[int]:
    """``["1,2", "15-17"]`` → task numbers in order; ``all`` is every known one."""
    from mnemic.recipe import ConfigError, listed

    chosen: set[int] = set()
    for part in ",".join(texts).replace(" ", "").split(","):
        first, _, last = part.partition("-")
        if part == "all":
            chosen.update(known)
        elif first.isdecimal() and (last or first).isdecimal():
            ends = int(first), int(last or first)
            if strange := [end for end in ends if end not in known] or sorted({*ends} - {*known}):
                known_ones = listed(map(str, known))
                raise ConfigError(f"there is no task {strange[0]} here; tasks: {known_ones}")
            if ends[1] < ends[0]:
                raise ConfigError(f"the tasks {part} run backwards; write {ends[1]}-{ends[0]}")
            chosen.update(range(ends[0], ends[1] + 1))
        else:
            raise ConfigError(f"tasks are numbers such as 1,2,15-17 or all, not {part!r}")
    if strange := sorted(chosen - set(known)):
        raise ConfigError(f"there is no task {strange[0]} here; tasks: {listed(map(str, known))}")
    return sorted(chosen)


def device_of(text: str) -> str:
    """A device that is really there."""
    import torch

    from mnemic.recipe import ConfigError

    if text == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, number = text.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdecimal()):
        raise ConfigError(f"--device is cpu, cuda, cuda:NUMBER or auto, not {text!r}")
    if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise ConfigError(f"no device {text!r}: PyTorch finds {count} CUDA devices; try cpu")
    return text
