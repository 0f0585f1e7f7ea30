"""Nothing that a terminal obeys is printed: no control, C1 or bidi character of any source."""

import json
import re
import unicodedata
from pathlib import Path

import pytest

from mnemic.cli.main import main
from mnemic.cli.render.console import AS_JSON, Styled, build_table, get_stdout, print_table
from mnemic.cli.render.format import format_json, sanitize
from mnemic.cli.render.progress import ProgressBars

HOSTILE = "\x1b]0;x\x07\x9b31m\x7f\u202erm\u2066\u2069\u200f\u061c\u2028\U000e0041"
COMMANDS = [
    ["ask", "Where is the key?", "--reader", "none", "--all"],
    ["ask", f"key {HOSTILE}", "--reader", "none"],
    ["search", f"key {HOSTILE}"],
    ["list"],
    ["history", "1", "--text"],
    ["stats"],
    ["forget", f"nothing{HOSTILE}"],
    ["ask", "key", "--in", f"x{HOSTILE}"],
    ["ask", "key", "--kind", f"pdf{HOSTILE}"],
    ["ask", "key", "--reader", f"no{HOSTILE}"],
    [f"command{HOSTILE}"],
    ["ask", f"--option{HOSTILE}"],
    ["check"],
    ["forget", "--about", "key", "--yes"],
]


def find_unsafe(text: str) -> set[str]:
    """Characters of a printed text that could control a terminal."""
    kinds = {character: unicodedata.category(character) for character in set(text) - {"\n"}}
    return {character for character, kind in kinds.items() if kind in ("Cc", "Cf", "Cs", "Zl", "Zp")}


@pytest.fixture
def hostile_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "memory.db"
    monkeypatch.setenv("MNEMIC_MEMORY", str(path))
    file = tmp_path / f"note{HOSTILE.replace(chr(0x2028), '')}.md"
    file.write_text(f"# Title {HOSTILE}\n\nThe key {HOSTILE} is in the drawer.\n", encoding="utf-8")
    assert main(["remember", str(file), "--embedder", "hashed-ngrams"]) == 0
    return path


@pytest.mark.parametrize("as_json", [False, True])
def test_no_command_prints_what_a_terminal_obeys(
    hostile_memory: Path, as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    for words in COMMANDS:
        main([*words, "--json"] if as_json else words)
        output, errors = capsys.readouterr()
        assert not find_unsafe(output), words
        assert not find_unsafe(errors), words
        assert output or errors
        if as_json:
            assert json.loads(output)


def test_json_is_escaped_and_equal() -> None:
    value = {"text": [HOSTILE, "漢字 é\n\t"], "n": 1.5}
    text = format_json(value, indent=1)
    assert json.loads(text) == value
    assert "漢字 é" in text
    assert not find_unsafe(text)


def test_blanks_for_line_ends_and_escapes_for_the_rest() -> None:
    assert sanitize("a\tb\nc\x85d") == "a b c d"
    assert sanitize("\x1b[31m \u202e \udc80") == "\\x1b[31m \\u202e \\udc80"
    assert sanitize("नमस्ते 👩\u200d💻 漢字") == "नमस्ते 👩\u200d💻 漢字"


def test_tables_and_bars_are_safe(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    AS_JSON.set(False)  # whatever the command before was
    cells = [HOSTILE, Styled(HOSTILE, "bold")]
    print_table([HOSTILE, "b"], [cells], title=HOSTILE, caption=HOSTILE, footer=[HOSTILE, ""])
    get_stdout().print(build_table(["a", "b"], [cells]))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with ProgressBars("bytes") as bars:
        bars.show(HOSTILE, 1, 2, HOSTILE)
    output, errors = capsys.readouterr()
    assert not find_unsafe(output)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", errors).replace("\r", "")  # what rich itself sends
    assert not find_unsafe(shown)
