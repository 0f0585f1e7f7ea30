"""Pack passage and sentence vectors, and match the sentences of slots with a query.

The similarity of a slot to a query is that of its most similar sentence. The vector of a sentence
comes from its token states in the context of its passage; a passage of a single sentence has its
passage vector only.

A passage vector is stored in half precision. The sentence vectors of a passage are stored one
after another, 8 bits per number. A row has norm 1, so its scale follows from its codes and is not
stored.

Shapes: n slots, k sentences of all slots, s sentences of one slot, d embedding width.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from mnemic.store.contract import DamageError, PassageEmbedding, SentenceVectors, Vectors

STORED_DTYPE = numpy.dtype("<f2")  # of passage vectors: half the size, the same neighbors
CODE_DTYPE = numpy.dtype(numpy.int8)
MAX_CODE = 127  # largest absolute value of a code


def pack_vector(vector: Vectors) -> bytes:
    """Convert a passage vector to the bytes that are stored."""
    return numpy.asarray(vector, dtype=STORED_DTYPE).tobytes()


def quantize_vectors(vectors: Vectors) -> tuple[NDArray[numpy.float32], NDArray[numpy.int8]]:
    """Quantize vectors (n d) to scales (n) and 8-bit codes (n d).

    A vector is about ``scale * codes``.
    """
    scales = numpy.abs(vectors).max(axis=1, initial=1e-12) / MAX_CODE
    return scales.astype(numpy.float32), numpy.rint(vectors / scales[:, None]).astype(numpy.int8)


def without_sentence_vectors(vectors: Iterable[Vectors]) -> list[PassageEmbedding]:
    """Make embeddings of passage vectors (d each) without sentence vectors."""
    return [PassageEmbedding(vector, vector[None][:0]) for vector in vectors]


def pack_sentence_vectors(vectors: Vectors) -> bytes:
    """Pack the sentence vectors (s d) of a slot; empty for a single one."""
    return quantize_vectors(vectors)[1].tobytes() if len(vectors) > 1 else b""


def unpack_vectors(stored: Sequence[bytes], width: int, dtype: numpy.dtype[Any] = STORED_DTYPE) -> Vectors:
    """Convert the stored bytes of passage vectors to vectors (n d)."""
    check_packed(stored, width * dtype.itemsize, is_single=True)
    return numpy.frombuffer(b"".join(stored), dtype).reshape(len(stored), width).astype(numpy.float32)


def unpack_sentence_vectors(stored: Sequence[bytes], width: int) -> SentenceVectors:
    """Unpack the sentence vectors of several slots; ``b""`` means none."""
    check_packed(stored, max(width, 1) * CODE_DTYPE.itemsize)
    rows = numpy.frombuffer(b"".join(stored), CODE_DTYPE).reshape(-1, max(width, 1))
    vectors = rows.astype(numpy.float32)
    lengths = numpy.sqrt(numpy.einsum("kd,kd->k", vectors, vectors))
    vectors /= numpy.maximum(lengths, 1)[:, None]
    counts = [len(packed) // max(width, 1) for packed in stored]
    return SentenceVectors(vectors, numpy.array(counts, numpy.int64))


def check_packed(stored: Sequence[Any], num_bytes: int, *, is_single: bool = False) -> None:
    """Raise ``DamageError`` unless all values are vectors of ``num_bytes`` each."""
    for packed in stored:
        is_whole = isinstance(packed, bytes) and (
            len(packed) == num_bytes if is_single else not len(packed) % num_bytes
        )
        if not is_whole:
            raise DamageError("a vector of the memory")


def max_sentence_products(sentence_vectors: SentenceVectors, vector: Vectors, default: Vectors) -> Vectors:
    """Return each slot's largest product of a sentence vector with ``vector`` (d): n.

    A slot without sentence vectors gets its value of ``default`` (n).
    """
    products = default.copy()
    has_vectors = sentence_vectors.counts > 0
    if has_vectors.any():
        starts = numpy.cumsum(sentence_vectors.counts) - sentence_vectors.counts
        products[has_vectors] = numpy.maximum.reduceat(sentence_vectors.vectors @ vector, starts[has_vectors])
    return products
