"""``mnemic text forget``: erase texts or spans of characters from a memory file."""

from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from mnemic.checkpoint.lock import lock_file
from mnemic.cli import options as opt
from mnemic.cli.render.console import print_json, print_text
from mnemic.cli.text.read import to_text_name
from mnemic.recipe import join_words

if TYPE_CHECKING:
    from mnemic.predict.memory_state import State

FROM_HELP = "First character of a span, counted through all texts; with --to, may be repeated."


def forget(
    path: opt.MemoryFile,
    files: Annotated[list[str] | None, opt.Option("--text FILE", "A text that was read; may be repeated.")] = None,
    starts: Annotated[list[int] | None, opt.Option("--from N", FROM_HELP)] = None,
    ends: Annotated[list[int] | None, opt.Option("--to N", "The character after the span's last one.")] = None,
) -> None:
    """Erase texts or spans of characters from a memory file; all or none.

    Example: mnemic text forget notes.mem --text novel.txt

    A span, as `mnemic text show --json` has it: mnemic text forget notes.mem --from 120 --to 180
    """
    from mnemic.predict.memory_state import load_state_file

    if not (files or starts or ends):
        raise ValueError("nothing to forget: give --text FILE that was read, or characters, --from N --to N")
    load_state_file(path)  # raises before a lock file is created beside a file that is no memory
    with lock_file(path, "wait for it"):
        before = after = load_state_file(path)
        spans = [*find_texts(before, files or []), *check_spans(before, starts or [], ends or [])]
        for start, end in spans:
            after = after.forget(start, end)
        after.save(path)
    num_cleared = before.filled - after.filled
    report = {"state": str(path), "forgotten": spans, "cleared": num_cleared}
    print_json(report | {"filled": after.filled, "size": after.slots})
    for start, end in spans:
        print_text(f"forgotten: characters {start} to {end}")
    print_text(f"{num_cleared} slots were cleared; {after.filled} of {after.slots} are filled")


def find_texts(state: "State", files: list[str]) -> Iterator[tuple[int, int]]:
    """Find the character spans of texts by the paths of their files."""
    edges = [0, *accumulate(text.characters for text in state.texts)]
    for file in files:
        path = resolve_path(to_text_name(file))  # the same file may have several paths
        spans = [span for span, text in zip(pairwise(edges), state.texts) if resolve_path(text.name) == path]
        if not spans:
            names = join_words([text.name for text in state.texts if text.name]) or "no text with a name"
            raise ValueError(f"{file} was not read into this memory, which has {names}; or give --from N --to N")
        yield from spans


def check_spans(state: "State", starts: list[int], ends: list[int]) -> Iterator[tuple[int, int]]:
    """Pair starts and ends of spans, and check that they lie in texts."""
    if len(starts) != len(ends):
        raise ValueError("a span has a start and an end: give as many --to as --from")
    for start, end in zip(starts, ends):
        if not 0 <= start < end <= state.characters:
            raise ValueError(
                f"{start}-{end} is no span of the {state.characters} characters that were read: count "
                "them through all texts, --from below --to"
            )
        yield start, end


def resolve_path(name: str) -> str:
    """Resolve links in an absolute path; keep other names."""
    return str(Path(name).resolve()) if Path(name).is_absolute() else name
