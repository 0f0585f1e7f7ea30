"""How a file's name tells its kind; ``readers.READERS`` has what reads each."""

from pathlib import Path

SUFFIXES = {
    ".csv": "table",
    ".docx": "docx",
    ".eml": "mail",
    ".epub": "epub",
    ".htm": "html",
    ".html": "html",
    ".jsonl": "records",
    ".markdown": "markdown",
    ".md": "markdown",
    ".ndjson": "records",
    ".pdf": "pdf",
    ".rst": "text",
    ".text": "text",
    ".tsv": "table",
    ".txt": "text",
    ".xhtml": "html",
}


def kind_of(path: Path) -> str:
    """The kind of a file by the end of its name; what is not known is taken for text."""
    return SUFFIXES.get(path.suffix.lower(), "text")
