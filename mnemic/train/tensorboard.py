"""Write TensorBoard event files without TensorBoard.

A file is a sequence of records: length, its checksum, an ``Event`` message, its checksum. The
message is encoded by hand, as it has only four fields that matter: wall time (1), step (2), file
version (3) and a summary (5) of tag (1) and value (2) pairs.
"""

import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from mnemic.files import open_for_writing

VERSION = b"brain.Event:2"
POLYNOMIAL = 0x82F63B78  # CRC-32C, reflected


def _crc_of_byte(byte: int) -> int:
    """The CRC-32C of one byte, for the table."""
    for _ in range(8):
        byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
    return byte


CRC_TABLE = [_crc_of_byte(byte) for byte in range(256)]


class EventWriter:
    """An open event file; every write is flushed, so a killed run loses nothing."""

    def __init__(self, folder: Path) -> None:
        path = folder / f"events.out.tfevents.{time.time_ns()}.mnemic"
        self.file: BinaryIO = open_for_writing(path)
        self.write_record(encode_event(time.time(), 0, encode_bytes(3, VERSION)))

    def add_scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Write named numbers at a step."""
        pairs = [encode_bytes(1, name.encode()) + encode_float(2, value) for name, value in values.items()]
        summary = b"".join(encode_bytes(1, pair) for pair in pairs)
        self.write_record(encode_event(time.time(), step, encode_bytes(5, summary)))

    def write_record(self, message: bytes) -> None:
        """Write one record: a message with its length and checksums."""
        length = struct.pack("<Q", len(message))
        self.file.write(length + encode_checksum(length) + message + encode_checksum(message))
        self.file.flush()

    def close(self) -> None:
        self.file.close()


def encode_event(wall_time: float, step: int, fields: bytes) -> bytes:
    """Encode an ``Event`` message with its time, step and other encoded fields."""
    return struct.pack("<Bd", 0x09, wall_time) + b"\x10" + encode_varint(step) + fields


def encode_bytes(field: int, content: bytes) -> bytes:
    """Encode a length-delimited field: bytes, text or a message."""
    return bytes([field << 3 | 2]) + encode_varint(len(content)) + content


def encode_float(field: int, value: float) -> bytes:
    """Encode a 32-bit float field."""
    return struct.pack("<Bf", field << 3 | 5, value)


def encode_varint(value: int) -> bytes:
    """Encode an integer as a varint: seven bits per byte, the lowest first."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode_checksum(data: bytes) -> bytes:
    """Encode the masked CRC-32C of a record."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return struct.pack("<I", masked)
