"""``mnemic forget --state``: clear what a memory in a file holds of a text, or of a stretch."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from mnemic.cli.render.console import out, print_json
from mnemic.cli.text.read import place_of
from mnemic.recipe import listed

if TYPE_CHECKING:
    from mnemic.predict.memory_state import State

STRETCH = re.compile(r"(\d+)-(\d+)")


def forget_state(path: Path, targets: Sequence[str], *, as_json: bool) -> None:
    """Forget texts by their paths, and stretches of characters; all of them or none."""
    from mnemic.checkpoint.lock import lock_file
    from mnemic.predict.memory_state import read_state

    if not targets:
        raise ValueError("nothing to forget: give a text that was read, or characters, START-END")
    read_state(path)  # before a lock is made beside what is no memory
    with lock_file(path, "wait for it"):
        before = after = read_state(path)
        spans = [span for target in targets for span in meant(before, target)]
        for start, end in spans:
            after = after.forget(start, end)
        after.save(path)
    cleared = before.filled - after.filled
    if as_json:
        told = {"state": str(path), "forgotten": spans, "cleared": cleared}
        print_json(told | {"filled": after.filled, "size": after.slots})
        return
    for start, end in spans:
        out().print(f"forgotten: characters {start} to {end}", markup=False)
    line = f"{cleared} slots were cleared; {after.filled} of {after.slots} are filled"
    out().print(line, markup=False)


def meant(state: "State", target: str) -> Iterator[tuple[int, int]]:
    """The stretches that are meant by a path, or by START-END."""
    edges = [0, *accumulate(own.characters for own in state.texts)]
    wanted = resolved(place_of(target))  # by whatever path the same file was read
    places = [
        span for span, own in zip(pairwise(edges), state.texts) if resolved(own.name) == wanted
    ]
    if places:
        yield from places
        return
    found = STRETCH.fullmatch(target)
    if found is None:
        known = listed([own.name for own in state.texts if own.name]) or "no text with a name"
        raise ValueError(
            f"{target} was not read into this memory, which has {known}; or give characters, "
            "START-END, as mnemic inspect --json has them"
        )
    start, end = int(found[1]), int(found[2])
    if not start < end <= state.characters:
        raise ValueError(
            f"{target} is no stretch of the {state.characters} characters that were read: give "
            "START-END, counted through all texts, START below END"
        )
    yield start, end


def resolved(name: str) -> str:
    """A path without its links and detours; standard input and nameless texts stay as they are."""
    return str(Path(name).resolve()) if Path(name).is_absolute() else name
