"""``mnemic forget --state``: erase texts or spans of characters from a memory file."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from mnemic.cli.render.console import get_stdout, print_json
from mnemic.cli.text.read import to_text_name
from mnemic.recipe import join_words

if TYPE_CHECKING:
    from mnemic.predict.memory_state import State

SPAN_PATTERN = re.compile(r"(\d+)-(\d+)")


def forget_state(path: Path, targets: Sequence[str], *, as_json: bool) -> None:
    """Erase texts by path, or spans of characters, from a memory file; all or none."""
    from mnemic.checkpoint.lock import lock_file
    from mnemic.predict.memory_state import load_state_file

    if not targets:
        raise ValueError("nothing to forget: give a text that was read, or characters, START-END")
    load_state_file(path)  # raises before a lock file is created beside a file that is no memory
    with lock_file(path, "wait for it"):
        before = after = load_state_file(path)
        spans = [span for target in targets for span in find_spans(before, target)]
        for start, end in spans:
            after = after.forget(start, end)
        after.save(path)
    num_cleared = before.filled - after.filled
    if as_json:
        report = {"state": str(path), "forgotten": spans, "cleared": num_cleared}
        print_json(report | {"filled": after.filled, "size": after.slots})
        return
    for start, end in spans:
        get_stdout().print(f"forgotten: characters {start} to {end}", markup=False)
    line = f"{num_cleared} slots were cleared; {after.filled} of {after.slots} are filled"
    get_stdout().print(line, markup=False)


def find_spans(state: "State", target: str) -> Iterator[tuple[int, int]]:
    """Find the character spans of a text by its path, or parse START-END."""
    edges = [0, *accumulate(text.characters for text in state.texts)]
    target_path = resolve_path(to_text_name(target))  # the same file may have several paths
    spans = [span for span, text in zip(pairwise(edges), state.texts) if resolve_path(text.name) == target_path]
    if spans:
        yield from spans
        return
    match = SPAN_PATTERN.fullmatch(target)
    if match is None:
        text_names = join_words([text.name for text in state.texts if text.name]) or "no text with a name"
        raise ValueError(
            f"{target} was not read into this memory, which has {text_names}; or give characters, "
            "START-END, as mnemic inspect --json has them"
        )
    start, end = int(match[1]), int(match[2])
    if not start < end <= state.characters:
        raise ValueError(
            f"{target} is no span of the {state.characters} characters that were read: give "
            "START-END, counted through all texts, START below END"
        )
    yield start, end


def resolve_path(name: str) -> str:
    """Resolve links in an absolute path; keep other names."""
    return str(Path(name).resolve()) if Path(name).is_absolute() else name
