"""Bars are drawn where a person sees them, and never where lines are redirected to."""

import os
import subprocess
import sys

import pytest

LINE = "a long line " * 20
CODE = f"""
from mnemic.app.progress import Bars
with Bars("lines") as bars:
    for number in range(3):
        print({LINE!r}, flush=True)
        bars.show("saying", number + 1, 3)
"""


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no terminals to open here")
def test_what_is_printed_beside_a_bar_arrives_as_it_was() -> None:
    """Standard error is a terminal, with a bar; standard output is not."""
    seen, terminal = os.openpty()
    told = {"env": os.environ | {"TERM": "xterm", "COLUMNS": "80"}, "stderr": terminal}
    done = subprocess.run([sys.executable, "-c", CODE], stdout=subprocess.PIPE, text=True, **told)  # type: ignore[call-overload]
    os.close(terminal)
    drawn = os.read(seen, 65_536).decode()
    os.close(seen)
    assert "saying" in drawn
    assert done.stdout == f"{LINE}\n" * 3
