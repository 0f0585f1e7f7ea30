"""Open a regular file once, to hash it and to hand it to the sandbox."""

import errno
import os
import stat
from hashlib import sha256
from pathlib import Path

from mnemic.text.documents.piece import DocumentError

BLOCK_BYTES = 1 << 20
# A pipe or a device does not block the opening process, and no program that is started inherits it.
# Links are resolved before, so that one at the end can only have come since.
OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
MOVED_OUT = "it has become a link to something else since it was listed; it was not read"
NO_REGULAR_FILE = "it is no regular file but a folder, a pipe, a socket or a device"


class OpenFile:
    """A regular file, open for reading; use it as a context manager.

    Whoever replaces the file or its path by something else afterwards changes nothing here.
    """

    def __init__(self, path: Path, root: Path | None = None) -> None:
        """Open ``path``; with ``root`` only if the file is really in that folder."""
        self.path = path
        try:
            self.descriptor = os.open(os.path.realpath(path), OPEN_FLAGS)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise DocumentError(MOVED_OUT) from None
            if error.errno == errno.ENXIO:
                raise DocumentError(NO_REGULAR_FILE) from None
            raise
        self.stat = os.fstat(self.descriptor)
        is_regular = stat.S_ISREG(self.stat.st_mode)
        if not is_regular or (root is not None and not self.find_location().is_relative_to(root)):
            self.close()
            raise DocumentError(MOVED_OUT if is_regular else NO_REGULAR_FILE)

    def __enter__(self) -> "OpenFile":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def find_location(self) -> Path:
        """Return where the open file is, whatever its path leads to by now."""
        try:
            return Path(os.readlink(f"/proc/self/fd/{self.descriptor}"))
        except OSError:  # a system without /proc
            return Path(os.path.realpath(self.path))

    def close(self) -> None:
        """Close the descriptor."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def hash_content(self) -> str:
        """Return the SHA-256 of the content as hexadecimal digits.

        A file of 0 bytes is not read: files of the kernel, which may block, have this size.
        """
        digest, position = sha256(), 0
        while position < self.stat.st_size:
            block = os.pread(self.descriptor, BLOCK_BYTES, position)
            if not block:
                break
            digest.update(block)
            position += len(block)
        if position != self.stat.st_size:
            raise DocumentError("it was changed while it was read; remember it again")
        return digest.hexdigest()

    def check_unchanged(self) -> None:
        """Raise ``DocumentError`` if the file was written since it was opened."""
        now = os.fstat(self.descriptor)
        if (now.st_size, now.st_mtime_ns) != (self.stat.st_size, self.stat.st_mtime_ns):
            raise DocumentError("it was changed while it was read; remember it again")
