"""Read word vectors from a text file: a word and its numbers per line.

The file may be plain, .gz or .xz. This is how GloVe comes, and how word2vec, fastText and gensim
write vectors as text; then the first line says how many there are, and how wide. A word may have
blanks in it: the last d fields of a line are numbers.

Shapes: n words, d width.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.data.corpora.read_documents import CorpusError, decode_line, read_raw_lines

WORDS_PER_CHUNK = 10_000
EXPECTED_LINE = "a line is a word and its numbers, with one blank between them"
BINARY_HINT = "a binary file becomes text by gensim's save_word2vec_format(FILE, binary=False)"


def read_vector_lines(path: Path) -> Iterator[tuple[tuple[str, ...], Tensor]]:
    """Yield the words and vectors (n d) of a text file in chunks."""
    lines = read_stripped_lines(path)
    first = next(lines, None)
    if first is None:
        raise CheckpointError(f"{path} is empty; {EXPECTED_LINE}")
    num_words, width = read_header(first[1])
    width = width or first[1].count(" ")
    if not width:
        raise CheckpointError(f"{path}:1: {first[1][:40]!r} came; {EXPECTED_LINE}; {BINARY_HINT}")
    chunk, num_read = [first] if num_words is None else [], 0
    while chunk := [*chunk, *islice(lines, WORDS_PER_CHUNK - len(chunk))]:
        yield parse_lines(chunk, width, path)
        num_read, chunk = num_read + len(chunk), []
    if num_words not in (None, num_read) or not num_read:
        raise CheckpointError(f"{path} announces {num_words} words, and has {num_read}; fetch it again")


def read_stripped_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Read the lines of a file, without blanks at their ends, with their numbers."""
    for number, line in read_raw_lines(path):
        try:
            yield number, decode_line(line, number, path).rstrip(" \r\n")
        except CorpusError as error:
            raise CheckpointError(f"{error}; {BINARY_HINT}") from None


def read_header(line: str) -> tuple[int | None, int]:
    """Read the number and width of the vectors from a header; else None and 0."""
    fields = line.split(" ")
    if len(fields) == 2 and all(field.isascii() and field.isdecimal() for field in fields):
        return int(fields[0]), int(fields[1])
    return None, 0


def parse_lines(lines: list[tuple[int, str]], width: int, path: Path) -> tuple[tuple[str, ...], Tensor]:
    """Parse lines to words and vectors (n d); an error names the line."""
    words, vectors = [], np.empty((len(lines), width), dtype=np.float32)
    for row, (number, line) in enumerate(lines):
        word, *fields = line.rsplit(" ", width)
        if len(fields) != width or not word:
            raise CheckpointError(f"{path}:{number}: {len(fields)} numbers came, not {width}; {EXPECTED_LINE}")
        try:
            vectors[row] = fields
        except ValueError:
            raise CheckpointError(f"{path}:{number}: not all of the last {width} fields are numbers") from None
        words.append(word)
    if not np.isfinite(vectors).all():
        number = lines[int((~np.isfinite(vectors)).any(1).argmax())][0]
        raise CheckpointError(f"{path}:{number}: a number is not finite")
    return tuple(words), torch.from_numpy(vectors)
