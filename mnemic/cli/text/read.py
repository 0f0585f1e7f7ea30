"""``mnemic read --state``: read whole texts, one after another, into a memory file."""

import json
import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mnemic.cli.documents.common import shorten_path
from mnemic.cli.interrupt import CommandInterrupted
from mnemic.cli.options import resolve_device
from mnemic.cli.render.console import print_warning
from mnemic.cli.render.progress import ProgressBars
from mnemic.cli.text.ask import note_full_memory
from mnemic.cli.text_io import STDIN, STDIN_NAME, TABLE_SUFFIXES, read_text

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint
    from mnemic.predict.memory_state import State


MIN_UNKNOWN_SHARE = 0.1  # of a text's tokens, from which on a note is printed
UNQUOTABLE_NOTE = "standard input cannot be quoted later: save it in a file and read that to be answered"


class ReadRequest(NamedTuple):
    """The files to read, the network that reads them, and the memory file."""

    model: Path
    files: Sequence[str]
    state: Path
    fresh: bool
    device: str


def read_files_into_state(request: ReadRequest) -> None:
    """Read the files into the memory file; print one JSON line per saved text."""
    from mnemic.checkpoint.lock import lock_file

    num_saved = 0
    try:
        check_text_files(request)
        check_state_file(request)
        with lock_file(request.state, "wait for it, or give another --state"):
            for row in read_files(request):
                num_saved += 1
                print(json.dumps(row, ensure_ascii=False), flush=True)
    except KeyboardInterrupt:
        raise CommandInterrupted(format_resume_message(request, num_saved)) from None


def check_text_files(request: ReadRequest) -> None:
    """Raise before anything is read if a file is missing or is no plain text."""
    for name in request.files:
        if name == STDIN:
            continue
        if table_suffix := next((suffix for suffix in TABLE_SUFFIXES if suffix in Path(name).suffixes), None):
            raise ValueError(
                f"{name} is no plain text: --state reads a file from its first character to its "
                f"last, and a {table_suffix} file is a table; save its texts in a .txt file"
            )
        read_text(name)


def check_state_file(request: ReadRequest) -> None:
    """Raise before anything is read if the memory file must not be overwritten."""
    from mnemic.predict.memory_state import check_save_path, read_metadata

    check_save_path(request.state)
    if not request.state.exists():
        return
    for name in request.files:
        if name != STDIN and request.state.samefile(name):
            raise ValueError(f"{name} is a text to read, and the memory would overwrite it: give --state another file")
    read_metadata(request.state)  # raises if it is no memory, also with --fresh


def read_files(request: ReadRequest) -> Iterator[dict[str, Any]]:
    """Read the files one after another; yield a report after each is saved."""
    from mnemic.checkpoint.folder import load_checkpoint
    from mnemic.predict import long_text
    from mnemic.predict.long_text import create_empty_state, require_memory_model

    checkpoint = load_checkpoint(request.model)
    empty = create_empty_state(checkpoint, require_memory_model(checkpoint))
    checkpoint.network.to(resolve_device(request.device))
    training_notes = [] if checkpoint.progress.done else ["this network is not trained to the end"]
    for note in training_notes:
        print_warning(note)
    is_continued = request.state.exists() and not request.fresh
    state = long_text.load_state(checkpoint, request.state) if is_continued else empty
    for name in request.files:
        before, text = state, read_text(name)
        notes = note_repeated_text(before, text, name)
        state = read_text_with_progress(checkpoint, before, text, name)
        state.save(request.state)
        notes += note_unknown_tokens(checkpoint, text, name)
        notes += note_full_memory(state) + ([UNQUOTABLE_NOTE] if name == STDIN and text else [])
        notes += [] if state.seen > before.seen else [f"{display_name_of(name)} holds no words"]
        for note in notes:
            print_warning(note)
        yield {
            "file": name,
            "seen": state.seen - before.seen,
            "total": state.total - before.total,
            "state": str(request.state),
            "kept": count_new_slots(state, before),
            "filled": state.filled,
            "slots": state.slots,
            "remembered": state.seen,
            "notes": [*training_notes, *notes],
        }


def read_text_with_progress(checkpoint: "Checkpoint", before: "State", text: str, name: str) -> "State":
    """Read one text into the memory with a progress bar; return the new memory."""
    from mnemic.predict import long_text

    with ProgressBars("tokens") as bars:
        on_progress = partial(bars.show, shorten_path(name))
        return long_text.read_text(checkpoint, text, before, name=to_text_name(name), on_progress=on_progress)


def note_repeated_text(state: "State", text: str, name: str) -> list[str]:
    """Return a note if the memory has read the text, or an older version, before."""
    from mnemic.predict.memory_state import TextRecord

    if text and TextRecord.from_text(text, "").digest in {known_text.digest for known_text in state.texts}:
        return [f"{display_name_of(name)} was read before, and is now read again"]
    if name != STDIN and to_text_name(name) in {known_text.name for known_text in state.texts}:
        return [
            f"{display_name_of(name)} has changed since it was read: the memory keeps the old "
            "version beside the new one; --fresh starts again"
        ]
    return []


def note_unknown_tokens(checkpoint: "Checkpoint", text: str, name: str) -> list[str]:
    """Return a note if many tokens of a text are unknown to the network."""
    tokenizer: Any = checkpoint.tokenizer
    if tokenizer.name_of("unknown") is None:  # a tokenizer of bytes knows all texts
        return []
    ids = tokenizer.encode(text, special=False).ids
    unknown_share = ids.count(tokenizer.unknown) / max(len(ids), 1)
    if unknown_share < MIN_UNKNOWN_SHARE:
        return []
    problem = f"{unknown_share * 100:.0f} % of the tokens of {display_name_of(name)} are unknown"
    return [f"{problem} to this network; was it trained on another language?"]


def count_new_slots(state: "State", before: "State") -> int:
    """Count the slots that hold something read since ``before``."""
    sources, _ = state.memory.origins  # 1 s r
    return int((sources >= len(before.spans)).any(-1).sum())


def to_text_name(name: str) -> str:
    """Return the name under which a memory stores a text."""
    return name if name == STDIN else str(Path(name).absolute())


def display_name_of(name: str) -> str:
    return STDIN_NAME if name == STDIN else shorten_path(name)


def format_resume_message(request: ReadRequest, num_saved: int) -> str:
    """Format the message after Ctrl-C: the saved texts, and the command that resumes."""
    unread = request.files[num_saved:]
    files = [name for name in unread if name != STDIN]
    message = f"stopped; {num_saved} of {len(request.files)} texts are saved in {request.state}"
    if len(files) < len(unread):
        message += "; standard input is not, and must be given again"
    if not files:
        return message
    argv = ["mnemic", "read", "--model", str(request.model), "--state", str(request.state)]
    argv += ["--fresh"] if request.fresh and not num_saved else []
    argv += [] if request.device == "auto" else ["--device", request.device]
    return f"{message}; to go on: {shlex.join([*argv, *files])}"
