"""Verify that erased documents are gone: search the raw files for their traces."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mnemic.store.contract import Document, MemorySlot, Vectors
from mnemic.store.sqlite.quantized_codes import quantize_vectors
from mnemic.store.sqlite.vectors import pack_vector

TRACE_BYTES = 24  # long enough not to occur by chance
MAX_TEXT_TRACES, MAX_WORD_TRACES = 400, 60  # per document
MIN_TRACE_BYTES = 10  # shorter words and samples leave no trace of their own
BLOCK_BYTES = 1 << 24
# Runs in a child process: closing a file that SQLite has open here would drop its locks.
SCAN_SCRIPT = """
import json, sys
paths, traces, block = json.load(sys.stdin)
traces = {bytes.fromhex(trace) for trace in traces}
overlap = max(map(len, traces), default=0)
matches = set()
for path in paths:
    with open(path, "rb") as file:
        tail = b""
        while new := file.read(block):
            window = tail + new
            matches |= {trace for trace in traces if trace in window}
            tail = window[-overlap:]
print(json.dumps([trace.hex() for trace in matches]))
"""


def collect_traces(
    document: Document, slots: Sequence[MemorySlot], vectors: Vectors, sentence_vectors: Vectors
) -> list[bytes]:
    """Collect byte strings of a document: names, text, words and vectors."""
    names = [document.digest, document.title, *document.places]
    traces = [name.encode() for name in names if len(name.encode()) >= MIN_TRACE_BYTES]
    text_traces = [piece for slot in slots for piece in split_bytes(slot.passage.text)]
    long_words = {
        word.lower()
        for slot in slots
        for word in slot.passage.text.split()
        if len(word) >= MIN_TRACE_BYTES and word.isalpha() and word.isascii()
    }
    traces += sample_evenly(text_traces, MAX_TEXT_TRACES)
    # The index stores a stemmed term without the prefix it shares with the term before.
    traces += [word[2:8].encode() for word in sample_evenly(sorted(long_words), MAX_WORD_TRACES)]
    sampled_vectors = sample_evenly(vectors, MAX_TEXT_TRACES)
    stored = [pack_vector(vector) for vector in sampled_vectors]
    codes = [
        quantize_vectors(vector[None])[1].tobytes()
        for vector in [*sampled_vectors, *sample_evenly(sentence_vectors, MAX_TEXT_TRACES)]
    ]
    return traces + [trace for row in stored + codes if (trace := sample_bytes(row))]


def sample_bytes(stored: bytes) -> bytes:
    """Return some bytes of a stored vector, from the first that is not 0.

    The result is empty if too few of them are not 0.
    """
    sample = stored.lstrip(b"\0")
    size = 4 * TRACE_BYTES
    while size < len(sample) and size - sample[:size].count(0) < MIN_TRACE_BYTES:
        size *= 2  # vectors of short texts are mostly 0
    sample = sample[:size]
    return sample if len(sample) - sample.count(0) >= MIN_TRACE_BYTES else b""


def split_bytes(text: str) -> Iterator[bytes]:
    """Split a text into pieces of about ``TRACE_BYTES`` bytes, at character boundaries."""
    content = text.encode("utf-8", "surrogatepass")
    for start in range(0, max(len(content) - TRACE_BYTES, 1), TRACE_BYTES):
        piece = content[start : start + TRACE_BYTES].decode("utf-8", "ignore").encode()
        if len(piece) >= MIN_TRACE_BYTES:
            yield piece


def sample_evenly(items: Sequence[Any] | Vectors, limit: int) -> list[Any]:
    """Return at most ``limit`` of the items, evenly spaced."""
    step = max(len(items) // limit, 1)
    return list(items[::step])[:limit]


def scan_files(files: Sequence[Path], traces: Sequence[bytes]) -> list[bytes]:
    """Return the traces that occur in the files."""
    request = json.dumps([[str(path) for path in files], [trace.hex() for trace in traces], BLOCK_BYTES])
    command = [sys.executable, "-I", "-c", SCAN_SCRIPT]
    process = subprocess.run(command, input=request, capture_output=True, text=True, check=True)
    return sorted(map(bytes.fromhex, json.loads(process.stdout)))
