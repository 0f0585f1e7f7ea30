"""Progress bars are drawn on a terminal, and never in redirected output."""

import os
import re
import subprocess
import sys

import pytest

from mnemic.cli.render import progress

LINE = "a long line " * 20
CODE = f"""
from mnemic.cli.render.progress import ProgressBars
with ProgressBars("lines") as bars:
    for number in range(3):
        print({LINE!r}, flush=True)
        bars.show("saying", number + 1, 3)
"""


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no terminals to open here")
def test_what_is_printed_beside_a_bar_arrives_as_it_was() -> None:
    """Standard error is a terminal, with a bar; standard output is not."""
    seen, terminal = os.openpty()
    kwargs = {"env": os.environ | {"TERM": "xterm", "COLUMNS": "80"}, "stderr": terminal}
    done = subprocess.run([sys.executable, "-c", CODE], stdout=subprocess.PIPE, text=True, **kwargs)  # type: ignore[call-overload]
    os.close(terminal)
    terminal_text = os.read(seen, 65_536).decode()
    os.close(seen)
    assert "saying" in terminal_text
    assert done.stdout == f"{LINE}\n" * 3


LARGE_FILE = """
from mnemic.cli.render.progress import ProgressBars
with ProgressBars("bytes") as bars:
    for number in range(1, 12):
        bars.show("remembering", number * 4_000_000, 45_000_000, "~/Documents/a/folder/of/somebody/server.log")
        bars.bars.refresh()
"""


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no terminals to open here")
def test_a_bar_fits_a_terminal_of_80_columns() -> None:
    seen, terminal = os.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "80"}
    subprocess.run([sys.executable, "-c", LARGE_FILE], stderr=terminal, env=environment, check=True)
    os.close(terminal)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", os.read(seen, 65_536).decode())
    os.close(seen)
    last = [line for line in re.split(r"[\r\n]+", text) if line.strip()][-1]
    assert len(last) <= 80
    assert re.search(r"44.0 MB/45.0 MB .*\d+:\d\d .*server.log", last)


def test_a_look_that_takes_long_is_told_where_no_bar_is_seen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with progress.ProgressBars("steps") as bars:
        bars.show_validation(50)
        bars.show("phase 1 of 1", 1, 2)  # in time
        assert bars.delayed_line is not None
        assert bars.delayed_line.finished.is_set()
        monkeypatch.setattr(progress, "QUIET_S", 0.0)
        bars.show_validation(1000)
        bars.delayed_line.join()
    assert capsys.readouterr().err == "validation: 1000 examples\n"
