"""Write the event files that TensorBoard reads, without TensorBoard.

A file is a row of records: length, its checksum, an ``Event`` message, its checksum. The message
is written by hand, as it has four fields that matter: wall time (1), step (2), file version (3)
and a summary (5) of tag (1) and value (2) pairs.
"""

import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

VERSION = b"brain.Event:2"
POLYNOMIAL = 0x82F63B78  # CRC-32C, reflected


def _row(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
    return byte


TABLE = [_row(byte) for byte in range(256)]


class Events:
    """An open event file; every ``add`` is flushed, so a killed run loses nothing."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"events.out.tfevents.{time.time_ns()}.mnemic"
        self.file: BinaryIO = path.open("wb")
        self.write(event(time.time(), 0, text(3, VERSION)))

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Write numbers by name at a step."""
        summary = b"".join(
            text(1, text(1, name.encode()) + number(2, value)) for name, value in values.items()
        )
        self.write(event(time.time(), step, text(5, summary)))

    def write(self, message: bytes) -> None:
        length = struct.pack("<Q", len(message))
        self.file.write(length + checksum(length) + message + checksum(message))
        self.file.flush()

    def close(self) -> None:
        self.file.close()


def event(when: float, step: int, rest: bytes) -> bytes:
    return struct.pack("<Bd", 0x09, when) + b"\x10" + varint(step) + rest


def text(field: int, content: bytes) -> bytes:
    """A length-delimited field: bytes, text or a message."""
    return bytes([field << 3 | 2]) + varint(len(content)) + content


def number(field: int, value: float) -> bytes:
    """A 32-bit float field."""
    return struct.pack("<Bf", field << 3 | 5, value)


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def checksum(data: bytes) -> bytes:
    """The masked CRC-32C that guards a record."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return struct.pack("<I", masked)
