"""The kind of a file by its suffix; ``registry.READERS`` has a reader for each kind."""

from pathlib import Path, PurePath

from mnemic.text.documents.code.languages import STYLE_OF_SUFFIX

SUFFIXES = {
    ".1": "man",
    ".2": "man",
    ".3": "man",
    ".4": "man",
    ".5": "man",
    ".6": "man",
    ".7": "man",
    ".8": "man",
    ".bmp": "picture",
    ".bz2": "archive",
    ".cfg": "settings",
    ".conf": "settings",
    ".csv": "table",
    ".doc": "legacy",
    ".docm": "docx",
    ".docx": "docx",
    ".dotx": "docx",
    ".eml": "mail",
    ".epub": "epub",
    ".geojson": "json",
    ".gif": "picture",
    ".gz": "archive",
    ".htm": "html",
    ".html": "html",
    ".ics": "calendar",
    ".ini": "settings",
    ".ipynb": "notebook",
    ".jpeg": "picture",
    ".jpg": "picture",
    ".json": "json",
    ".jsonl": "records",
    ".log": "log",
    ".ltx": "tex",
    ".markdown": "markdown",
    ".mbox": "mbox",
    ".md": "markdown",
    ".mdown": "markdown",
    ".mkd": "markdown",
    ".ndjson": "records",
    ".odp": "odf",
    ".ods": "sheets",
    ".odt": "odf",
    ".org": "org",
    ".otp": "odf",
    ".ott": "odf",
    ".pdf": "pdf",
    ".png": "picture",
    ".ppsx": "pptx",
    ".ppt": "legacy",
    ".pptx": "pptx",
    ".properties": "settings",
    ".rst": "rst",
    ".rtf": "rtf",
    ".srt": "subtitles",
    ".svg": "svg",
    ".tar": "archive",
    ".tbz2": "archive",
    ".tex": "tex",
    ".text": "text",
    ".tgz": "archive",
    ".tif": "picture",
    ".tiff": "picture",
    ".toml": "settings",
    ".tsv": "table",
    ".txt": "text",
    ".txz": "archive",
    ".vcard": "calendar",
    ".vcf": "calendar",
    ".vtt": "subtitles",
    ".webp": "picture",
    ".xhtml": "html",
    ".xls": "sheets",
    ".xlsb": "sheets",
    ".xlsm": "sheets",
    ".xlsx": "sheets",
    ".xml": "xml",
    ".xz": "archive",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".zip": "archive",
} | dict.fromkeys(STYLE_OF_SUFFIX, "code")
NAMES = {"dockerfile": "code", "makefile": "code", "readme": "text", "license": "text", "changelog": "text"}

# What a message calls a kind of file.
KIND_NAMES = {
    "archive": "an archive",
    "calendar": "a calendar or contacts",
    "code": "source code",
    "docx": "a Word document",
    "epub": "an EPUB book",
    "html": "a web page",
    "json": "a JSON file",
    "legacy": "an old office document",
    "log": "a log",
    "mail": "an e-mail",
    "man": "a manual page",
    "markdown": "a Markdown text",
    "mbox": "a mailbox",
    "notebook": "a notebook",
    "odf": "an OpenDocument text or presentation",
    "org": "an Org file",
    "pdf": "a PDF",
    "picture": "a picture",
    "pptx": "PowerPoint slides",
    "records": "a file of JSON lines",
    "rst": "a reStructuredText",
    "rtf": "a rich text",
    "settings": "a file of settings",
    "sheets": "a spreadsheet",
    "subtitles": "subtitles",
    "svg": "a drawing",
    "table": "a table",
    "tex": "a LaTeX text",
    "text": "a text",
    "xml": "an XML file",
    "yaml": "a YAML file",
}
PROGRAM_KINDS = frozenset({"legacy"})  # kinds whose readers start another program
PICTURE_KINDS = frozenset({"pdf", "picture"})  # kinds whose pages may be read by OCR


def find_kind(name: str) -> str | None:
    """Return the kind of a file by its name; None if it is unknown.

    A packed manual page has the suffix of its page before that of the packer.
    """
    path = PurePath(name.lower())
    if path.suffix == ".gz" and SUFFIXES.get(PurePath(path.stem).suffix) == "man":
        return "man"
    return SUFFIXES.get(path.suffix) or NAMES.get(path.name)


def find_path_kind(path: Path) -> str | None:
    """Return the kind of a file by its path; a maildir has only mails."""
    return "mail" if is_in_maildir(path) else find_kind(path.name)


def is_in_maildir(path: Path) -> bool:
    """Check whether a file is in cur or new of a maildir."""
    siblings = [path.parent.parent / name for name in ("cur", "new", "tmp")]
    return path.parent.name in ("cur", "new") and all(folder.is_dir() for folder in siblings)


def kind_of(path: Path) -> str:
    """Return the kind of a file by its path; "text" if it is unknown."""
    return find_path_kind(path) or "text"
