"""``mnemic text read``: read whole texts, one after another, into a memory file."""

import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from mnemic.checkpoint.lock import lock_file
from mnemic.cli import options as opt
from mnemic.cli.documents.common import shorten_path
from mnemic.cli.interrupt import CommandInterrupted
from mnemic.cli.networks.load import load_network
from mnemic.cli.render.console import AS_JSON, print_json_line, print_text, print_warnings
from mnemic.cli.render.progress import ProgressBars
from mnemic.cli.text.ask import locate_network, note_full_memory
from mnemic.cli.text.quote import digest_of, display_name_of
from mnemic.cli.text_io import STDIN, TABLE_SUFFIXES, check_stdin, read_text

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint
    from mnemic.predict.memory_state import State

DEFAULT_MODEL = "bert-mass"
MODEL_DEFAULT = f"the memory's own; {DEFAULT_MODEL} for a new one"
FILES_HELP = "Plain texts, each read as a whole; - or nothing: standard input."
MIN_UNKNOWN_SHARE = 0.1  # of a text's tokens, from which on a note is printed
UNQUOTABLE_NOTE = "standard input cannot be quoted later: save it in a file and read that to be answered"


class ReadRequest(NamedTuple):
    """The files to read, the network that reads them, and the memory file."""

    state: Path
    files: Sequence[str]
    model: Path | None
    fresh: bool
    device: str


def read(
    path: opt.MemoryFile,
    files: Annotated[list[str] | None, opt.Argument("FILES", FILES_HELP)] = None,
    model: Annotated[Path | None, opt.Option("--model DIR", opt.MODEL_HELP, MODEL_DEFAULT)] = None,
    fresh: Annotated[bool, opt.Option("--fresh", "Start the memory again.")] = False,
    device: opt.Device = "auto",
) -> None:
    """Read texts of any length into a memory file, or continue it.

    Example: mnemic text read notes.mem novel.txt

    Then: mnemic text ask notes.mem "Who …?"
    """
    request = ReadRequest(path, check_stdin(files), model, fresh, device)
    num_saved = 0
    try:
        check_text_files(request.files)
        check_state_file(request)
        with lock_file(path, "wait for it, or give another memory"):
            for report in read_files(request):
                num_saved += 1
                if AS_JSON.get():
                    print_json_line(report)
                reading = f"{report['seen']:,} tokens read, {report['kept']} slots hold what was kept of it"
                usage = f"{report['filled']} of {report['slots']} slots are filled"
                print_text(f"{display_name_of(report['file'])}: {reading}; {usage}")
    except KeyboardInterrupt:
        raise CommandInterrupted(format_resume_message(request, num_saved)) from None


def check_text_files(files: Sequence[str]) -> None:
    """Raise before anything is read if a file is missing or is no plain text."""
    for name in files:
        if name == STDIN:
            continue
        if table_suffix := next((suffix for suffix in TABLE_SUFFIXES if suffix in Path(name).suffixes), None):
            raise ValueError(
                f"{name} is no plain text: a file is read from its first character to its last, "
                f"and a {table_suffix} file is a table; save its texts in a .txt file"
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
            raise ValueError(f"{name} is a text to read, and the memory would overwrite it: give another memory file")
    read_metadata(request.state)  # raises if it is no memory, also with --fresh


def read_files(request: ReadRequest) -> Iterator[dict[str, Any]]:
    """Read the files one after another; yield a report after each is saved."""
    from mnemic.predict import long_text

    is_present = request.state.exists()
    model = request.model or (locate_network(request.state) if is_present else Path(DEFAULT_MODEL))
    checkpoint, training_notes = load_network(model, request.device)
    state = long_text.create_empty_state(checkpoint, long_text.require_memory_model(checkpoint))
    print_warnings(*training_notes)
    if is_present and not request.fresh:
        state = long_text.load_state(checkpoint, request.state)
    for name in request.files:
        before, text = state, read_text(name)
        notes = note_repeated_text(before, text, name)
        with ProgressBars("tokens") as bars:
            on_progress = partial(bars.show, shorten_path(name))
            state = long_text.read_text(checkpoint, text, before, name=to_text_name(name), on_progress=on_progress)
        state.save(request.state)
        notes += note_unknown_tokens(checkpoint, text, name)
        notes += note_full_memory(state) + ([UNQUOTABLE_NOTE] if name == STDIN and text else [])
        notes += [] if state.seen > before.seen else [f"{display_name_of(name)} holds no words"]
        print_warnings(*notes)
        sources, _ = state.memory.origins  # 1 s r
        num_kept = int((sources >= len(before.spans)).any(-1).sum())  # slots that hold something of it
        counts = {"seen": state.seen - before.seen, "total": state.total - before.total}
        slots = {"kept": num_kept, "filled": state.filled, "slots": state.slots, "remembered": state.seen}
        yield {"file": name, **counts, "state": str(request.state), **slots, "notes": [*training_notes, *notes]}


def note_repeated_text(state: "State", text: str, name: str) -> list[str]:
    """Return a note if the memory has read the text, or an older version, before."""
    if text and digest_of(text) in {known_text.digest for known_text in state.texts}:
        return [f"{display_name_of(name)} was read before, and is now read again"]
    if name != STDIN and to_text_name(name) in {known_text.name for known_text in state.texts}:
        problem = "has changed since it was read: the memory keeps the old version beside the new one"
        return [f"{display_name_of(name)} {problem}; --fresh starts again"]
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


def to_text_name(name: str) -> str:
    """Return the name under which a memory stores a text."""
    return name if name == STDIN else str(Path(name).absolute())


def format_resume_message(request: ReadRequest, num_saved: int) -> str:
    """Format the message after Ctrl-C: the saved texts, and the command that resumes."""
    unread = request.files[num_saved:]
    files = [name for name in unread if name != STDIN]
    message = f"stopped; {num_saved} of {len(request.files)} texts are saved in {request.state}"
    if len(files) < len(unread):
        message += "; standard input is not, and must be given again"
    if not files:
        return message
    argv = ["mnemic", "text", "read", str(request.state)]
    argv += [] if request.model is None else ["--model", str(request.model)]
    argv += ["--fresh"] if request.fresh and not num_saved else []
    argv += [] if request.device == "auto" else ["--device", request.device]
    return f"{message}; to go on: {shlex.join([*argv, *files])}"
