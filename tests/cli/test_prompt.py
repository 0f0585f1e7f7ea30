"""The prompt of ``mnemic ask``: many questions, a history, Ctrl-C and Ctrl-D."""

import os
import pty
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from select import select

import pytest
from app_runs import run

from mnemic import Memory
from mnemic.cli.documents.prompt import MAX_HISTORY, QuestionHistory, run_prompt
from mnemic.cli.render.console import AS_JSON


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("MNEMIC_MEMORY", str(tmp_path / "memory.db"))
    monkeypatch.chdir(tmp_path)
    with Memory(embedder="none", reader=None) as memory:
        memory.note("The key is in the drawer. The dog is in the garden. The cat sleeps.", "rooms")
        yield memory


class Screen:
    """What a program prints to a terminal; each wait goes on where the last one ended."""

    def __init__(self, terminal: int) -> None:
        self.terminal, self.output, self.position = terminal, b"", 0

    def wait_for(self, text: str, timeout_s: float = 30) -> None:
        end = time.monotonic() + timeout_s
        while (found := self.output.find(text.encode(), self.position)) < 0:
            assert time.monotonic() < end, self.output
            if select([self.terminal], [], [], 0.1)[0]:
                self.output += os.read(self.terminal, 4096)
        self.position = found + len(text.encode())


def test_a_person_asks_at_a_terminal(tmp_path: Path) -> None:
    terminal, side = pty.openpty()
    command = [sys.executable, "-m", "mnemic", "ask", "--reader", "none"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "TERM": "dumb"}
    streams = {"stdin": side, "stdout": side, "stderr": side}
    with subprocess.Popen(command, **streams, env=environment, start_new_session=True) as process:
        os.close(side)
        try:
            screen = Screen(terminal)
            screen.wait_for("\n? ")
            os.write(terminal, b"Where is the key?\n")
            screen.wait_for("The key is in the drawer.")
            screen.wait_for("\n? ")
            os.write(terminal, b":help\n")
            screen.wait_for(":quit       end")
            screen.wait_for("\n? ")
            os.write(terminal, b"\x04")
            assert process.wait(30) == 0
        finally:
            process.kill()
            os.close(terminal)
    history = tmp_path / "config" / "mnemic" / "history"
    assert history.read_text(encoding="utf-8") == "Where is the key?\n"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600


def test_commands_errors_and_ctrl_c(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        ":evidence",
        "",
        KeyboardInterrupt,
        "slow",
        "wrong",
        "Where is the dog?",
        ":evidence",
        ":nothing",
        EOFError,
    ]

    def type_line(_: str) -> str:
        line = lines.pop(0)
        if isinstance(line, str):
            return line
        raise line

    def ask(question: str):  # type: ignore[no-untyped-def]
        if question == "slow":
            raise KeyboardInterrupt
        if question == "wrong":
            raise ValueError("the question is \x1bwrong")
        return memory.ask(question)

    AS_JSON.set(False)  # whatever the command before was
    monkeypatch.setattr("builtins.input", type_line)
    run_prompt(memory, ask, None)
    output, errors = capsys.readouterr()
    assert lines == []
    assert errors.splitlines() == [
        "error: there is no answer yet; ask a question first",
        "stopped",
        "error: the question is \\x1bwrong",
        "there is no command :nothing",
    ]
    assert output.count("The dog is in the garden.") == 4  # the answer and its evidence, twice
    assert output.count("The cat sleeps.") == 1  # :evidence shows all, an answer the best two


def test_without_a_terminal_a_question_is_needed() -> None:
    done = run("ask")
    assert (done.code, done.out) == (2, "")
    assert "no question: give it in quotes" in done.err
    assert "The key is in the drawer." in run("ask", "-", "--reader", "none", stdin="Where is the key?\n").out


def test_an_exit_code_for_no_answer(memory: Memory) -> None:
    assert run("ask", "Where is the key?", "--reader", "none", "--fail").code == 0
    memory.forget(1)
    assert run("ask", "Where is the key?", "--reader", "none").code == 0
    assert run("ask", "Where is the key?", "--reader", "none", "--fail").code == 1


def test_a_long_history_is_cut_and_a_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    path = tmp_path / "history"
    path.write_text("".join(f"question {number}\n" for number in range(2 * MAX_HISTORY + 1)), encoding="utf-8")
    history = QuestionHistory(path)
    assert len(path.read_text(encoding="utf-8").splitlines()) == MAX_HISTORY
    path.unlink()
    path.symlink_to(tmp_path / "victim")
    history.readline = True
    history.add("Who?")
    assert not (tmp_path / "victim").exists()
