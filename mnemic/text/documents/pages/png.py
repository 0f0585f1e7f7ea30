"""Write pictures as PNG."""

import struct
import zlib

import numpy
from numpy.typing import NDArray

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COMPRESSION = 3  # a page is written in some 30 ms, and hardly smaller with more
COLOR_8_BIT = (8, 2, 0, 0, 0)  # bits, red-green-blue, and the only methods there are
FILTER_UP = 2  # a row is stored as its difference to the one above


def encode_png(colors: NDArray[numpy.uint8]) -> bytes:
    """Encode an array of height × width × 3 colors.

    >>> encode_png(numpy.zeros((2, 3, 3), numpy.uint8))[:4]
    b'\\x89PNG'
    """
    height, width, _ = colors.shape
    rows = numpy.ascontiguousarray(colors).reshape(height, 3 * width)
    above = numpy.vstack([numpy.zeros_like(rows[:1]), rows[:-1]])
    filtered = numpy.full((height, 3 * width + 1), FILTER_UP, numpy.uint8)
    filtered[:, 1:] = rows - above
    header = struct.pack(">II5B", width, height, *COLOR_8_BIT)
    pixels = zlib.compress(filtered.tobytes(), COMPRESSION)
    return SIGNATURE + encode_chunk(b"IHDR", header) + encode_chunk(b"IDAT", pixels) + encode_chunk(b"IEND", b"")


def encode_chunk(kind: bytes, content: bytes) -> bytes:
    """Encode a chunk with its length and check sum."""
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
