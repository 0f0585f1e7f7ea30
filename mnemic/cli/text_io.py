"""Read UTF-8 texts and questions without changing a character, so that offsets stay valid."""

import sys
from pathlib import Path

STDIN = "-"  # standard input
STDIN_NAME = "standard input"  # its name for a person
TABLE_SUFFIXES = (".jsonl", ".tsv", ".csv")  # files with one text per line, beside other fields


def read_text(name: str) -> str:
    """Read a UTF-8 file, or standard input for ``-``; errors name the file."""
    if name == STDIN:
        return decode_utf8(sys.stdin.buffer.read(), STDIN_NAME)
    path = Path(name)
    if path.is_dir():
        raise ValueError(f"{name} is a folder; give the path of a text file")
    if not path.is_file():
        raise ValueError(f"there is no file {name}; give the path of a text file")
    return decode_utf8(path.read_bytes(), name)


def check_stdin(files: list[str] | None) -> list[str]:
    """Return the files to read; raise if standard input is named twice."""
    if (files or []).count(STDIN) > 1:
        raise ValueError("standard input (-) can be read once: name it once, and files beside it")
    return files or [STDIN]


def decode_utf8(raw: bytes, name: str) -> str:
    """Decode UTF-8 bytes without dropping or changing a character."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        file = "FILE" if name == STDIN_NAME else name
        raise ValueError(
            f"{name} is no UTF-8 text: {error.reason} at byte {error.start}; convert a latin1 text "
            f"with iconv -f latin1 -t utf-8 {file} > NEW_FILE; for PDF and other documents use "
            "mnemic remember"
        ) from None


def read_questions(question: str | None, question_file: str | None) -> list[str]:
    """Read one question, or a file with a question per line; ``-`` is standard input."""
    if question_file is None:
        if question is None:
            raise ValueError(
                "no question: give it in quotes, - for standard input, or a file of them: --questions FILE"
            )
        return [read_text(STDIN).strip() if question == STDIN else question]
    if question is not None:
        raise ValueError("give --questions or a question, not both: write it into the file, or ask it alone")
    text = read_text(question_file).removeprefix("\ufeff")
    if questions := [line for line in text.splitlines() if line.strip()]:
        return questions
    raise ValueError(f"{question_file} holds no question; write one per line")
