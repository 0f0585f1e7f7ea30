"""The kind of a file by its suffix; ``registry.READERS`` has a reader for each kind."""

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
    """Return the kind of a file by its suffix; "text" if the suffix is unknown."""
    return SUFFIXES.get(path.suffix.lower(), "text")
