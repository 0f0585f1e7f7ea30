"""Prove that what was forgotten is gone: look for its traces in the raw bytes of the files."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mnemic.store.contract import Document, Slot, Vectors
from mnemic.store.sqlite.quantized_codes import rounded
from mnemic.store.sqlite.vectors import pack

LENGTH = 24  # bytes of a trace: long enough not to be there by chance
TEXTS, WORDS = 400, 60  # traces of a document's text at most, and of its words
LONG = 10  # letters of a word that leaves a trace of its own in the full-text index
BLOCK = 1 << 24
# In a process of its own: closing a file that SQLite has open in this one would drop its locks.
SCAN = """
import json, sys
paths, traces, block = json.load(sys.stdin)
traces = {bytes.fromhex(one) for one in traces}
most = max(map(len, traces), default=0)
found = set()
for path in paths:
    with open(path, "rb") as file:
        tail = b""
        while new := file.read(block):
            held = tail + new
            found |= {one for one in traces if one in held}
            tail = held[-most:]
print(json.dumps([one.hex() for one in found]))
"""


def traces_of(
    document: Document, slots: Sequence[Slot], vectors: Vectors, keys: Vectors
) -> list[bytes]:
    """Byte strings that a document leaves wherever it was: text, words, vectors, keys, names."""
    names = [document.digest, document.title, *document.places]
    found = [name.encode() for name in names if len(name.encode()) >= LONG]
    text = [piece for slot in slots for piece in pieces(slot.passage.text)]
    words = {
        word.lower()
        for slot in slots
        for word in slot.passage.text.split()
        if len(word) >= LONG and word.isalpha() and word.isascii()
    }
    found += spread(text, TEXTS)
    # A term of the index is stored without what it shares with the term before, and stemmed.
    found += [word[2:8].encode() for word in spread(sorted(words), WORDS)]
    some = spread(vectors, TEXTS)
    stored = [pack(vector) for vector in some]
    codes = [rounded(vector[None])[1].tobytes() for vector in [*some, *spread(keys, TEXTS)]]
    return found + [trace for row in stored + codes if (trace := stretch(row))]


def stretch(stored: bytes) -> bytes:
    """Some bytes of a vector or its code, from where it is not 0; none if they say too little."""
    found = stored.lstrip(b"\0")
    size = 4 * LENGTH
    while size < len(found) and size - found[:size].count(0) < LONG:  # of a short text, mostly 0
        size *= 2
    found = found[:size]
    return found if len(found) - found.count(0) >= LONG else b""


def pieces(text: str) -> Iterator[bytes]:
    """Neighbouring stretches of the text, whole characters each."""
    content = text.encode("utf-8", "surrogatepass")
    for start in range(0, max(len(content) - LENGTH, 1), LENGTH):
        piece = content[start : start + LENGTH].decode("utf-8", "ignore").encode()
        if len(piece) >= LONG:
            yield piece


def spread(items: Sequence[Any] | Vectors, most: int) -> list[Any]:
    """At most ``most`` of the items, evenly spread."""
    step = max(len(items) // most, 1)
    return list(items[::step])[:most]


def scan(files: Sequence[Path], traces: Sequence[bytes]) -> list[bytes]:
    """Which of the traces are in the files."""
    asked = json.dumps([[str(path) for path in files], [one.hex() for one in traces], BLOCK])
    words = [sys.executable, "-I", "-c", SCAN]
    done = subprocess.run(words, input=asked, capture_output=True, text=True, check=True)
    return sorted(map(bytes.fromhex, json.loads(done.stdout)))
