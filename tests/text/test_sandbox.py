"""What reads untrusted files has no network, no programs, nothing to write to, and an end."""

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mnemic.text.documents import DocumentError, DocumentParser, DocumentPiece, Limits, OpenFile, sandbox
from mnemic.text.documents.confine import MAX_MEMBER_BYTES
from mnemic.text.documents.limits import bound_parts
from mnemic.text.documents.piece import MAX_PIECE_LENGTH, Anchor, Note, Title, split_long_piece
from mnemic.text.documents.seccomp import AUDIT_NAMES

IS_FILTERED = sys.platform == "linux" and platform.machine() in AUDIT_NAMES
ATTACKS = {
    "socket": "import socket; socket.socket()",
    "connect": "import os, socket; socket.socket(fileno=0).connect('/run/x')",
    "fork": "import os; os._exit(0) if os.fork() == 0 else None",
    "exec": "import os; os.execv('/bin/true', ['true'])",
    "program": "import subprocess; subprocess.run(['/bin/true'])",
    "write": "import os; os.write(os.open({folder!r} + '/written', os.O_WRONLY | os.O_CREAT), b'x')",
    "append": "open({folder!r} + '/a.txt', 'a')",
    "truncate": "import os; os.truncate({folder!r} + '/a.txt', 0)",
    "remove": "import os; os.remove({folder!r} + '/a.txt')",
    "rename": "import os; os.rename({folder!r} + '/a.txt', {folder!r} + '/b.txt')",
    "kill": "import os, signal; os.kill(os.getppid(), signal.SIGTERM)",
}
# A reader of texts that runs code, as one with a hole in it would.
HOSTILE_START = sandbox.START_SCRIPT.replace(
    "main({memory}",
    """
from mnemic.text.documents import sandbox_worker
from mnemic.text.documents.piece import Anchor, DocumentPiece
def read_and_attack(source):
    result = "nothing"
    exec(source.path.read_text(), names := {{"source": source}})
    yield DocumentPiece(str(names.get("result", result)), (Anchor(0, 0, 1),))
sandbox_worker.READERS = {{"text": read_and_attack}}
main({memory}""",
)


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch) -> Iterator[DocumentParser]:
    monkeypatch.setattr(sandbox, "START_SCRIPT", HOSTILE_START)
    with DocumentParser(Limits(timeout_s=20)) as parser:
        yield parser


def run_inside(parser: DocumentParser, folder: Path, code: str) -> str:
    path = folder / "a.txt"
    path.write_text(code, encoding="utf-8")
    (piece,) = parser.read(path, "text")
    assert isinstance(piece, DocumentPiece)
    return piece.text


@pytest.mark.skipif(not IS_FILTERED, reason="there is no filter of system calls for this machine")
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_reader_with_a_hole_gets_nowhere(hostile: DocumentParser, tmp_path: Path, attack: str) -> None:
    code = ATTACKS[attack].format(folder=str(tmp_path))
    with pytest.raises(DocumentError, match="Operation not permitted"):
        run_inside(hostile, tmp_path, code)
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == code
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_reader_has_threads_and_files_in_memory(hostile: DocumentParser, tmp_path: Path) -> None:
    thread = "import threading; thread = threading.Thread(target=print); thread.start(); thread.join(); result = 'ran'"
    assert run_inside(hostile, tmp_path, thread) == "ran"
    member = (
        "from mnemic.text.documents.members import *\nwith open_in_memory(b'abc') as path: result = path.read_text()"
    )
    assert run_inside(hostile, tmp_path, member) == "abc"


def test_what_a_library_prints_is_no_answer(hostile: DocumentParser, tmp_path: Path) -> None:
    code = """import os; os.write(1, b'["piece", "forged"]\\n'); print('a line'); result = 'read'"""
    assert run_inside(hostile, tmp_path, code) == "read"
    assert run_inside(hostile, tmp_path, "result = 'and the next'") == "and the next"


def test_secrets_and_limits_of_the_process(
    hostile: DocumentParser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    monkeypatch.setenv("PGPASSWORD", "a password")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a key")
    names = run_inside(hostile, tmp_path, "import os; result = ' '.join(os.environ)").split()
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    assert set(names) <= sandbox.INHERITED_VARIABLES | {"PYTHONDONTWRITEBYTECODE", "LC_CTYPE"}
    folders = run_inside(hostile, tmp_path, "import os, sys; result = [os.getcwd(), '' in sys.path]")
    assert folders == str([os.sep, False])
    limits = "import resource as r; result = [r.getrlimit(getattr(r, 'RLIMIT_' + n))[0] for n in {}]"
    files, core, written = eval(run_inside(hostile, tmp_path, limits.format(["NOFILE", "CORE", "FSIZE"])))
    assert (files, core, written) == (256, 0, MAX_MEMBER_BYTES if IS_FILTERED else 0)
    memory, processor = eval(run_inside(hostile, tmp_path, limits.format(["AS", "CPU"])))
    assert memory == hostile.limits.max_memory_bytes
    assert 20 <= processor <= 25
    if sys.platform == "linux":
        status = run_inside(hostile, tmp_path, "result = open('/proc/self/status').read()")
        assert "NoNewPrivs:\t1" in status
        assert not IS_FILTERED or "Seccomp:\t2" in status


def test_answers_that_are_no_answers(hostile: DocumentParser, tmp_path: Path) -> None:
    """A reader that was taken over can send what it likes; the parent believes no sizes."""
    forge = "import sys\nframe = sys._getframe()\nwhile 'answers' not in frame.f_locals: frame = frame.f_back\n"
    for line in (
        '["piece", 1, 2, 3, 4, 5]',
        '["piece", "x", [[0, 0, 1]], null, null, [[0, 0, 2, 1]]]',
        '["piece", "x", [], null, null, []]',
        '["other", "x"]',
        "[]",
        "5",
        "[" * 10**5,
        "{{",
    ):
        code = f"{forge}frame.f_locals['answers'].write({line!r} + chr(10))"
        with pytest.raises(DocumentError, match=r"no document|no position"):
            run_inside(hostile, tmp_path, code)
    code = f"{forge}while True: frame.f_locals['answers'].write('x' * 10_000_000)"
    with pytest.raises(DocumentError, match="ended the process"):
        run_inside(hostile, tmp_path, code)
    long_piece = ["piece", "x" * (MAX_PIECE_LENGTH + 1), [[0, 0, 1]], None, None, []]
    with pytest.raises(DocumentError, match="too long"):
        run_inside(hostile, tmp_path, f"{forge}frame.f_locals['answers'].write({json.dumps(long_piece)!r} + chr(10))")
    short_piece = json.dumps(["piece", "x" * 10_000, [[0, 0, 1]], None, None, []])
    hostile.limits = hostile.limits._replace(max_characters=100_000, characters_per_byte=0)
    code = f"{forge}while True: frame.f_locals['answers'].write({short_piece!r} + chr(10))"
    (tmp_path / "a.txt").write_text(code, encoding="utf-8")
    with pytest.raises(DocumentError, match="far more text"):
        list(hostile.read(tmp_path / "a.txt", "text"))
    assert run_inside(hostile, tmp_path, "result = 'fine'") == "fine"


def test_a_program_ends_with_the_reader_that_started_it(
    hostile: DocumentParser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what either wrote to its temporary folder is removed."""
    monkeypatch.setattr(sandbox, "PROGRAM_KINDS", {"text"})
    code = (
        "import subprocess, tempfile\nfile = tempfile.NamedTemporaryFile(delete=False)\n"
        "program = subprocess.Popen(['/bin/sleep', '60'])\nresult = f'{program.pid} {file.name}'"
    )
    pid, name = run_inside(hostile, tmp_path, code).split()
    assert is_running(int(pid))
    assert Path(name).is_file()
    hostile.stop_worker()
    deadline = time.monotonic() + 10
    while is_running(int(pid)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(int(pid))
    assert not Path(name).parent.exists()


def test_the_time_of_a_file_has_an_end_and_the_next_ones_get_less(
    hostile: DocumentParser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "MIN_TIMEOUT_S", 0.1)
    hostile.limits = Limits(timeout_s=0.8)
    run_inside(hostile, tmp_path, "result = 1")
    started = time.monotonic()
    for _ in range(5):
        with pytest.raises(DocumentError, match="took longer than"):
            run_inside(hostile, tmp_path, "while True: pass")
    assert time.monotonic() - started < 5 * 0.8


def test_many_files_with_much_text_share_an_amount(hostile: DocumentParser, tmp_path: Path) -> None:
    hostile.limits = Limits(timeout_s=20, max_characters=1000, characters_per_byte=2)
    hostile.spare_characters = 2500
    bomb, honest = "result = 'x' * 900", f"result = 'y' * 80  {'#' * 80}"
    for code in (bomb, honest, bomb, honest):
        assert run_inside(hostile, tmp_path, code)
    with pytest.raises(DocumentError, match="more text came out of it"):
        run_inside(hostile, tmp_path, bomb)
    assert run_inside(hostile, tmp_path, honest) == "y" * 80


PARENT = """
import sys
from pathlib import Path
from mnemic.text.documents import DocumentParser, sandbox
sandbox.START_SCRIPT = sys.argv[1]
parser = DocumentParser()
for part in parser.read(Path(sys.argv[2]), "text"): pass
print(parser.worker.pid, flush=True)
for part in parser.read(Path(sys.argv[3]), "text"): pass
"""


def test_a_killed_parent_leaves_no_child(tmp_path: Path) -> None:
    fine, endless = tmp_path / "fine.txt", tmp_path / "endless.txt"
    fine.write_text("result = 1", encoding="utf-8")
    endless.write_text("while True: pass", encoding="utf-8")
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, HOSTILE_START, fine, endless], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    with parent.stdout:
        child = int(parent.stdout.readline())
    assert is_running(child)
    time.sleep(0.3)  # the child is in its endless loop
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 10
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(child)


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def test_a_file_is_opened_once(hostile: DocumentParser, tmp_path: Path) -> None:
    """The worker reads the descriptor of its parent, whatever the path leads to by then."""
    path = tmp_path / "a.txt"
    path.write_text("result = source.name", encoding="utf-8")
    with OpenFile(path) as file:
        path.unlink()
        path.write_text("result = 'another file'", encoding="utf-8")
        (piece,) = hostile.read(file, "text")
    assert piece[0] == "a.txt"


def test_a_link_that_comes_while_a_file_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After its path was resolved."""
    (tmp_path / "a.txt").symlink_to("/etc/hostname")
    monkeypatch.setattr(os.path, "realpath", lambda path: path)
    with pytest.raises(DocumentError, match="become a link"):
        OpenFile(tmp_path / "a.txt")


def test_long_pieces_are_split_and_every_place_is_right() -> None:
    text = "".join(f"Line {n} of many.\n" for n in range(30_000))
    anchors = tuple(Anchor(n, n + 100, 1 + text.count("\n", 0, n)) for n in range(0, len(text), 1000))
    cuts = tuple(n + 1 for n, character in enumerate(text) if character == "\n")
    for piece in (
        DocumentPiece(text, anchors, 7, cuts),
        DocumentPiece(text, anchors[:1]),
        DocumentPiece("x" * 10**6, anchors[:1]),
    ):
        pieces, start = list(split_long_piece(piece)), 0
        assert "".join(part.text for part in pieces) == piece.text
        assert max(len(part.text) for part in pieces) <= MAX_PIECE_LENGTH
        for part in pieces:
            for position in (0, 5, len(part.text) - 1):
                assert part.origin_of(position) == piece.origin_of(start + position)
                assert part.line_of(position) == piece.line_of(start + position)
            if piece.cuts is not None:
                assert part.cuts is not None
                assert {start + cut for cut in part.cuts} <= set(piece.cuts)
            start += len(part.text)
        if piece.cuts is not None:
            assert sum(len(part.cuts or ()) for part in pieces) == len(piece.cuts)


def test_titles_and_notes_are_bounded() -> None:
    parts = list(bound_parts([Title("t" * 10**6), *(Note("n" * 10**4) for _ in range(3000))], 10**9))
    assert [len(part[0]) for part in parts[:6]] == [300, 500, 500, 500, 500, 500]
    assert parts[6:] == [Note("2995 more remarks of this sort")]
    with pytest.raises(DocumentError, match="far more text"):
        list(bound_parts([Note("n" * 10**4) for _ in range(3000)], 10**6))
