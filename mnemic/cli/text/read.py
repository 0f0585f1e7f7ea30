"""``mnemic read --state``: whole texts, one after another, read into a memory in a file."""

import json
import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mnemic.cli.documents.common import short
from mnemic.cli.interrupt import Stopped
from mnemic.cli.options import device_of
from mnemic.cli.render.console import warn
from mnemic.cli.render.progress import Bars
from mnemic.cli.text.ask import full
from mnemic.cli.text_io import ROWS, SPOKEN, TYPED, text_of

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint
    from mnemic.predict.memory_state import State


STRANGE = 0.1  # of a text's tokens: more are worth a note
UNQUOTED = "standard input cannot be quoted later: save it in a file and read that to be answered"


class Wish(NamedTuple):
    """What is to be read, by which network, into which memory."""

    model: Path
    files: Sequence[str]
    state: Path
    fresh: bool
    device: str


def read_into(wish: Wish) -> None:
    """A line of JSON a text, once it is read to its end and the memory is saved."""
    from mnemic.checkpoint.lock import lock_file

    saved = 0
    try:
        check_texts(wish)
        check_memory(wish)
        with lock_file(wish.state, "wait for it, or give another --state"):
            for row in rows(wish):
                saved += 1
                print(json.dumps(row, ensure_ascii=False), flush=True)
    except KeyboardInterrupt:
        raise Stopped(going_on(wish, saved)) from None


def check_texts(wish: Wish) -> None:
    """Before anything is read: that every file is there, and is a plain text."""
    for name in wish.files:
        if name == TYPED:
            continue
        if ending := next((own for own in ROWS if own in Path(name).suffixes), None):
            raise ValueError(
                f"{name} is no plain text: --state reads a file from its first character to its "
                f"last, and a {ending} file is a table of texts; save their words in a .txt file"
            )
        text_of(name)


def check_memory(wish: Wish) -> None:
    """Before anything is read: that the memory may be written, and nothing else is lost by it."""
    from mnemic.predict.memory_state import check_place, metadata

    check_place(wish.state)
    if not wish.state.exists():
        return
    for name in wish.files:
        if name != TYPED and wish.state.samefile(name):
            raise ValueError(
                f"{name} is a text to read, and the memory would take its place: give --state "
                "another file"
            )
    metadata(wish.state)  # with --fresh, too: only a memory is written over


def rows(wish: Wish) -> Iterator[dict[str, Any]]:
    """What is told of each text, when it is saved."""
    from mnemic.checkpoint.folder import load
    from mnemic.predict import long_text
    from mnemic.predict.long_text import carrier_of, empty_state

    checkpoint = load(wish.model)
    empty = empty_state(checkpoint, carrier_of(checkpoint))
    checkpoint.network.to(device_of(wish.device))
    untrained = [] if checkpoint.progress.done else ["this network is not trained to the end"]
    for note in untrained:
        warn(note)
    goes_on = wish.state.exists() and not wish.fresh
    state = long_text.load_state(checkpoint, wish.state) if goes_on else empty
    for name in wish.files:
        before, text = state, text_of(name)
        notes = told_before(before, text, name)
        state = read_one(checkpoint, before, text, name)
        state.save(wish.state)
        notes += unknown(checkpoint, text, name)
        notes += full(state) + ([UNQUOTED] if name == TYPED and text else [])
        notes += [] if state.seen > before.seen else [f"{called(name)} holds no words"]
        for note in notes:
            warn(note)
        yield {
            "file": name,
            "seen": state.seen - before.seen,
            "total": state.total - before.total,
            "state": str(wish.state),
            "kept": newer(state, before),
            "filled": state.filled,
            "slots": state.slots,
            "remembered": state.seen,
            "notes": [*untrained, *notes],
        }


def read_one(checkpoint: "Checkpoint", before: "State", text: str, name: str) -> "State":
    """The memory after one more text, with a bar meanwhile."""
    from mnemic.predict import long_text

    with Bars("tokens") as bars:
        told = partial(bars.show, short(name))
        return long_text.remember(checkpoint, text, before, name=place_of(name), told=told)


def told_before(state: "State", text: str, name: str) -> list[str]:
    """Said of a text that the memory has read already."""
    from mnemic.predict.memory_state import Text

    if text and Text.of(text, "").digest in {own.digest for own in state.texts}:
        return [f"{called(name)} was read before, and is now told again"]
    if name != TYPED and place_of(name) in {own.name for own in state.texts}:
        return [
            f"{called(name)} has changed since it was read: what is remembered of it as it was "
            "stays, beside what it says now; --fresh begins anew"
        ]
    return []


def unknown(checkpoint: "Checkpoint", text: str, name: str) -> list[str]:
    """Said of a text many of whose words are none to the network, as of another script."""
    words: Any = checkpoint.tokenizer
    if words.name_of("unknown") is None:  # to one of bytes nothing is
        return []
    ids = words.encode(text, special=False).ids
    share = ids.count(words.unknown) / max(len(ids), 1)
    if share < STRANGE:
        return []
    told = f"{share * 100:.0f} % of the tokens of {called(name)} are unknown to this network"
    return [f"{told}, which can tell little of them; was it trained on another language?"]


def newer(state: "State", before: "State") -> int:
    """How many slots hold something that was read since ``before``."""
    sources, _ = state.memory.origins  # 1 s r
    return int((sources >= len(before.spans)).any(-1).sum())


def place_of(name: str) -> str:
    """How a memory knows a text."""
    return name if name == TYPED else str(Path(name).absolute())


def called(name: str) -> str:
    return SPOKEN if name == TYPED else short(name)


def going_on(wish: Wish, saved: int) -> str:
    """After Ctrl-C: what is saved, and how to read the rest and nothing twice."""
    left = wish.files[saved:]
    files = [name for name in left if name != TYPED]
    said = f"stopped; {saved} of {len(wish.files)} texts are saved in {wish.state}"
    if len(files) < len(left):
        said += "; standard input is not, and must be given again"
    if not files:
        return said
    words = ["mnemic", "read", "--model", str(wish.model), "--state", str(wish.state)]
    words += ["--fresh"] if wish.fresh and not saved else []
    words += [] if wish.device == "auto" else ["--device", wish.device]
    return f"{said}; to go on: {shlex.join([*words, *files])}"
