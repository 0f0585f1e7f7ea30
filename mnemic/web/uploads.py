"""Receive uploads: parts of a multipart body, streamed into files of the owner alone.

Files come into a folder of their own first, and move to their names only when the whole request is
there. A connection that breaks, or a server that is killed, leaves nothing behind that counts.
"""

import os
import re
import shutil
import unicodedata
from pathlib import Path
from typing import BinaryIO

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from mnemic.files import OWNER_ONLY, make_private_folder, open_private
from mnemic.web.limits import WebLimits
from mnemic.web.problems import Problem

MAX_FIELD_BYTES = 1_000  # of a field that is no file, such as the password
MAX_NAME_BYTES, MAX_PATH_BYTES, MAX_DEPTH = 200, 800, 20
MAX_HEADER_BYTES = 8_000
MAX_HEADERS = 10  # of one part
HIDDEN = "hidden: a name that begins with a dot"
_CONTROLS = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffd]")
_DRIVE = re.compile(r"^[A-Za-z]:")


def make_relative(name: str) -> str:
    """Make a path that stays below its folder from a client's file name."""
    name = unicodedata.normalize("NFC", _DRIVE.sub("", name.replace("\\", "/")))
    parts = [_CONTROLS.sub("_", text).strip() for text in name.split("/")]
    parts = [text for text in parts if text not in ("", ".")]
    if not parts:
        raise Problem(422, f"A file has no name that can be used: {name[:80]!r}. Give it another one.")
    if ".." in parts:
        raise Problem(422, f"The file name {name[:80]!r} leads out of its folder. Send names without '..'.")
    relative = "/".join(map(shorten_name, parts))
    if len(parts) > MAX_DEPTH or len(relative.encode()) > MAX_PATH_BYTES:
        raise Problem(422, f"The path {name[:80]!r}… is too long; at most {MAX_DEPTH} folders are taken.")
    return relative


def shorten_name(name: str) -> str:
    """Shorten a name to what every file system takes; the suffix stays."""
    if len(name.encode()) <= MAX_NAME_BYTES:
        return name
    stem, suffix = os.path.splitext(name)
    suffix = suffix if len(suffix.encode()) <= 20 else ""
    return stem.encode()[: MAX_NAME_BYTES - len(suffix.encode())].decode("utf-8", "ignore") + suffix


class UploadReceiver:
    """A parser of a multipart body that writes its files into a folder."""

    def __init__(self, content_type: str, folder: Path, limits: WebLimits) -> None:
        media_type, options = parse_options_header(content_type)
        boundary = options.get(b"boundary", b"")
        if media_type != b"multipart/form-data" or not 1 <= len(boundary) <= 70:
            raise Problem(415, "Documents are sent as multipart/form-data, with their files as `files`.")
        self.folder, self.limits = folder, limits
        self.names: list[str] = []  # of the files that came, relative
        self.hidden: list[str] = []
        self.fields: dict[str, bytes] = {}
        self.file: BinaryIO | None = None
        self.field = ""
        self.num_bytes = 0  # of the part that comes now
        self.is_complete = False
        self.headers: dict[bytes, bytes] = {}
        self.header, self.value = b"", b""
        callbacks = {
            "on_part_begin": self.begin_part,
            "on_part_data": self.write_data,
            "on_part_end": self.end_part,
            "on_header_field": self.add_header,
            "on_header_value": self.add_value,
            "on_header_end": self.end_header,
            "on_headers_finished": self.open_part,
            "on_end": self.complete,
        }
        self.parser = MultipartParser(boundary, callbacks)  # type: ignore[arg-type]

    def write(self, chunk: bytes) -> None:
        """Parse some bytes of the body and write what they hold."""
        try:
            self.parser.write(chunk)
        except MultipartParseError as error:
            raise Problem(400, f"The upload is no multipart/form-data: {error}.") from None

    def finish(self) -> None:
        """Raise a problem unless the whole body has come, with a file in it."""
        if not self.is_complete:
            raise Problem(400, "The upload ends before it is complete. Send it again.")
        if not self.names and not self.hidden:
            raise Problem(422, "There is no file in the upload. Send files as the field `files`.")

    def begin_part(self) -> None:
        """Begin a part: a file or a field."""
        self.headers, self.num_bytes = {}, 0

    def add_header(self, data: bytes, start: int, end: int) -> None:
        """Collect the name of a header."""
        self.header += data[start:end]
        self.check_header(self.header)

    def add_value(self, data: bytes, start: int, end: int) -> None:
        """Collect the value of a header."""
        self.value += data[start:end]
        self.check_header(self.value)

    def check_header(self, text: bytes) -> None:
        """Raise a problem if a part has too many headers, or one is too long."""
        if len(text) > MAX_HEADER_BYTES or len(self.headers) >= MAX_HEADERS:
            raise Problem(400, "A part of the upload has headers that are too long.")

    def end_header(self) -> None:
        """Note a header of the part."""
        self.headers[self.header.lower()] = self.value
        self.header, self.value = b"", b""

    def open_part(self) -> None:
        """Open the file of a part, once its headers are known."""
        _, options = parse_options_header(self.headers.get(b"content-disposition", b""))
        self.field = options.get(b"name", b"").decode("utf-8", "replace")
        if b"filename" not in options:
            return
        if self.field != "files":
            raise Problem(422, f"Files come as the field `files`, not {self.field[:40]!r}.")
        relative = make_relative(options[b"filename"].decode("utf-8", "replace"))
        if len(self.names) + len(self.hidden) >= self.limits.max_files:
            raise Problem(413, f"An upload has at most {self.limits.max_files:,} files. Send the others after it.")
        if any(text.startswith(".") for text in relative.split("/")):
            self.hidden.append(relative)
            self.field = ""  # its content is passed over
            return
        path = self.folder / relative
        try:
            make_private_folder(path.parent)
            descriptor = open_private(path, os.O_WRONLY | os.O_CREAT, mode=OWNER_ONLY)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise Problem(422, f"{relative!r} is both a file and a folder in this upload.") from None
        os.ftruncate(descriptor, 0)
        self.file = os.fdopen(descriptor, "wb")
        if relative not in self.names:
            self.names.append(relative)

    def write_data(self, data: bytes, start: int, end: int) -> None:
        """Write a piece of a file, or of a field."""
        self.num_bytes += end - start
        if self.file is not None:
            if self.num_bytes > self.limits.max_file_bytes:
                max_bytes = self.limits.max_file_bytes
                raise Problem(
                    413, f"The file {self.names[-1]!r} is larger than the {max_bytes:,} bytes that are taken."
                )
            self.file.write(data[start:end])
        elif self.field:
            if self.num_bytes > MAX_FIELD_BYTES or len(self.fields) > MAX_HEADERS:
                raise Problem(422, f"The field {self.field[:40]!r} is longer than {MAX_FIELD_BYTES} bytes.")
            self.fields[self.field] = self.fields.get(self.field, b"") + data[start:end]

    def end_part(self) -> None:
        """Close the file of a part, whole and on the disk."""
        if self.file is not None:
            self.file.flush()
            os.fsync(self.file.fileno())
            self.close()

    def complete(self) -> None:
        """Note that the last boundary has come."""
        self.is_complete = True

    def close(self) -> None:
        """Close a file that is open."""
        if self.file is not None:
            self.file.close()
            self.file = None


def publish_files(staging: Path, folder: Path, names: list[str]) -> list[Path]:
    """Move the files of an upload to their names; return their paths."""
    paths = []
    for name in names:
        source, target = staging / name, folder / name
        if source.is_file():
            check_free(folder, name)
            make_private_folder(target.parent)
            os.replace(source, target)
        paths.append(target)
    shutil.rmtree(staging, ignore_errors=True)
    return paths


def check_free(folder: Path, name: str) -> None:
    """Raise a problem if a name is a folder's or leads through a file."""
    parts = name.split("/")
    is_in_file = any((folder / "/".join(parts[:number])).is_file() for number in range(1, len(parts)))
    if is_in_file or (folder / name).is_dir():
        raise Problem(409, f"{name!r} cannot be stored: a file or folder of another upload is in its place.")
