"""Ctrl-C at any time: exit code 130, one line at most, no traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# The moment a module is looked for, Ctrl-C comes.
PRESSED = """
import os, signal, sys
class Pressed:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Pressed())
"""


@pytest.mark.parametrize("name", ["mnemic.cli.main", "mnemic.cli.options", "typer", "mnemic.store"])
def test_ctrl_c_while_modules_are_imported(name: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(PRESSED.format(name=name), encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    done = subprocess.run(
        [sys.executable, "-m", "mnemic", "search", "rent", "--memory", str(tmp_path / "x.db")],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130
    assert done.stdout == ""
    assert done.stderr in ("", f"stopped; to go on: mnemic search rent --memory {tmp_path / 'x.db'}\n")


def test_the_installed_command_is_guarded_as_well() -> None:
    """The script imports only the package before it calls the guarded function."""
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert 'mnemic = "mnemic.__main__:main"' in project
    program = "import sys, mnemic.__main__; print('mnemic.cli' in sys.modules, 'typer' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


def test_ctrl_c_ends_a_served_memory(tmp_path: Path) -> None:
    """Interrupt it while it waits for requests, with its input still open."""
    command = [sys.executable, "-m", "mnemic", "mcp", "--memory", str(tmp_path / "x.db"), "--embedder", "none"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            process.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
            process.stdin.flush()
            assert '"result"' in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 130
        finally:
            process.kill()
        assert process.stderr.read().startswith("stopped; to go on: mnemic mcp")
