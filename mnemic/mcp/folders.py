"""The folders whose files an assistant may have remembered."""

from collections.abc import Sequence
from pathlib import Path


def resolve_path(path: str, folders: Sequence[Path]) -> Path:
    """Resolve a path; raise if it is outside the folders, or hidden in them."""
    try:
        resolved_path = Path(path).expanduser().resolve()
    except (RuntimeError, ValueError, OSError) as error:  # no such user, a zero byte, a loop of links
        raise ValueError(f"{path!r} is no path: {error}") from None
    folder = next((folder for folder in folders if resolved_path.is_relative_to(folder)), None)
    if folder is None:
        raise ValueError(f"{path} is not in a folder that may be read here: {', '.join(map(str, folders))}")
    if any(name.startswith(".") for name in resolved_path.relative_to(folder).parts):
        raise ValueError(f"{path} is hidden: its name, or that of a folder above it, begins with a dot")
    return resolved_path
