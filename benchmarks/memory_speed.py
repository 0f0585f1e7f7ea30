"""How fast a lasting memory remembers and is read at 10,000, 100,000 and 1,000,000 slots.

    python benchmarks/memory_speed.py FOLDER [--slots 10000 100000] [--texts enwiki.jsonl.xz]
        [--length 1] [--width 384] [--queries 200] [--embedder hashed-ngrams]

FOLDER keeps a memory of each size, made once. Slots are --length sentences of --texts (JSON lines
with ``text``), else sentences of made-up words, as frequent as words are (Zipf). Their vectors are
drawn: a thousand clusters, so that there is something to find; each sentence of several has a key.
A query is a few words of one slot,
and a vector near that of another. ``recall`` is the share of what sorting all vectors finds that
``nearest`` finds, too. ``answer`` is the whole way from a question to a span: the question is
embedded by the shipped reader's network (and then given its drawn vector), five passages are read.
``remember`` is the whole way of a text file into a new memory, ``cold`` a whole ``mnemic ask`` of
it, in a process of its own, the best of three and the worst. One line of JSON each.
"""

import argparse
import json
import lzma
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from mnemic import Memory
from mnemic.store import Asking, Embedder, SQLiteStore
from mnemic.store.answer.ask import ask
from mnemic.store.answer.reader import reader_of
from mnemic.store.contract import Draft, Marks, Model, Vectors
from mnemic.store.retrieve.embedders import embedder
from mnemic.store.retrieve.hybrid import CANDIDATES, read
from mnemic.store.retrieve.sentence_keys import without_keys
from mnemic.store.sqlite.quantized import vector_blocks
from mnemic.text.documents import Passage, Sentence
from mnemic.text.sentences import sentences as split

DOCUMENT = 1000  # slots
CLUSTERS = 1000
WORDS, LENGTH = 50_000, 20  # how many made-up words there are, and in a sentence
ASKED = 6  # words of a query
REMEMBERED = 2_000_000  # characters


class Query(NamedTuple):
    text: str
    vector: Vectors


class Drawn:
    """An embedder for queries whose vectors are known: only the memory itself is timed."""

    lexical = 0.3

    def __init__(self, model: Model, vector: Vectors) -> None:
        self.model = model
        self.vector = vector

    def measure(self, texts: Any) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: Any) -> Vectors:
        return numpy.stack([self.vector for _ in texts])

    def marks(self, texts: Any) -> list[Marks]:
        return without_keys(self.embed(texts))


class Paid(Drawn):
    """The same, but a question takes the time that it takes the shipped reader's network."""

    def __init__(self, real: Embedder, model: Model, vector: Vectors) -> None:
        super().__init__(model, vector)
        self.real = real

    def embed(self, texts: Any) -> Vectors:
        self.real.embed(texts)
        return super().embed(texts)


def sentences(texts: Path | None) -> Iterator[str]:
    """Sentences without end: those of the file, or made-up ones."""
    if texts is None:
        dice = numpy.random.default_rng(0)
        chances = 1 / numpy.arange(1, WORDS + 1)
        steps = numpy.cumsum(chances / chances.sum())
        while True:
            for row in numpy.searchsorted(steps, dice.random((1000, LENGTH))):
                yield " ".join(f"w{number:x}" for number in row)
    while texts is not None:
        opened = lzma.open if texts.suffix == ".xz" else open
        with opened(texts, "rt", encoding="utf-8") as file:
            for line in file:
                text = json.loads(line)["text"]
                yield from (text[one.start : one.end] for one in split(text))


def drawn_vectors(count: int, width: int, seed: int) -> Vectors:
    """Vectors around a thousand centres, of length 1."""
    centres = numpy.random.default_rng(0).normal(size=(CLUSTERS, width))
    dice = numpy.random.default_rng(seed)
    found = centres[dice.integers(CLUSTERS, size=count)] + dice.normal(size=(count, width))
    return (found / numpy.linalg.norm(found, axis=1, keepdims=True)).astype(numpy.float32)


def drawn_marks(count: int, width: int, seed: int, keys: int) -> list[Marks]:
    """Such vectors, and keys around each of them."""
    vectors = drawn_vectors(count, width, seed)
    dice = numpy.random.default_rng(seed)
    rows = vectors[:, None] + dice.normal(size=(count, keys, width)) / width**0.5
    rows /= numpy.linalg.norm(rows, axis=2, keepdims=True)
    return [Marks(*own) for own in zip(vectors, rows.astype(numpy.float32))]


def fill(store: SQLiteStore, model: Model, count: int, texts: Path | None, length: int = 1) -> None:
    source = sentences(texts)
    with store.writing():
        with store.change():
            store.set_model(model)
        for number in range(0, count, DOCUMENT):
            size = min(DOCUMENT, count - number)
            marks = drawn_marks(size, model.width, 1 + number, length)
            own = [" ".join(islice(source, length)) for _ in range(size)]
            passages = [
                Passage(text, None, (Sentence(0, len(text), 1, 0, len(text)),)) for text in own
            ]
            with store.change():
                store.add(Draft(f"{number}", "text", f"{number}"), zip(passages, marks))


def queries_of(store: SQLiteStore, model: Model, count: int, size: int) -> list[Query]:
    dice = random.Random(1)
    rolls = numpy.random.default_rng(1)
    found = []
    for _ in range(count):
        text, near = dice.randint(1, size), dice.randint(1, size)
        words = store.slots([text])[0].passage.text.split()
        asked = " ".join(
            words[place] for place in sorted(dice.sample(range(len(words)), min(ASKED, len(words))))
        )
        vector = store.vectors([near])[0] + rolls.normal(size=model.width) * 0.7 / model.width**0.5
        found.append(Query(asked, (vector / numpy.linalg.norm(vector)).astype(numpy.float32)))
    return found


def exact(store: SQLiteStore, width: int, queries: list[Query], most: int) -> list[list[int]]:
    """The nearest slots of each query, best first, by sorting all; all vectors pass once."""
    wanted = numpy.stack([query.vector for query in queries], axis=1)  # d q
    every = numpy.zeros((len(queries), 0), numpy.int64)
    best = numpy.zeros((len(queries), 0), numpy.float32)
    for block in vector_blocks(store.connection, width):
        scores = (block.vectors @ wanted).T  # q n
        slots = numpy.broadcast_to(block.slots, scores.shape)
        best, every = numpy.hstack([best, scores]), numpy.hstack([every, slots])
        order = numpy.argsort(-best, axis=1)[:, :most]
        best = numpy.take_along_axis(best, order, 1)
        every = numpy.take_along_axis(every, order, 1)
    return every.tolist()


def timed(act: Callable[[Query], Any], queries: list[Query]) -> tuple[dict[str, float], list[Any]]:
    """How long each took by the clock, and on average on the processor; and what was found."""
    times, found = [], []
    spent = time.process_time()
    for query in queries:
        began = time.perf_counter()
        found.append(act(query))
        times.append(1000 * (time.perf_counter() - began))
    spent = 1000 * (time.process_time() - spent) / len(queries)
    times.sort()
    middle, high = times[len(times) // 2], times[int(len(times) * 0.95)]
    told = {"p50_ms": middle, "p95_ms": high, "processor_ms": spent}
    return {name: round(value, 2) for name, value in told.items()}, found


def measure(path: Path, model: Model, size: int, given: argparse.Namespace) -> dict[str, Any]:
    told: dict[str, Any] = {"slots": size, "length": given.length, "width": model.width}
    if not path.exists():
        began = time.perf_counter()
        store = SQLiteStore(path)
        fill(store, model, size, given.texts, given.length)
        told["stored_per_s"] = round(size / (time.perf_counter() - began))
        store.close()
    store = SQLiteStore(path, create=False)
    queries = queries_of(store, model, given.queries, size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name in ("first_s", "first_again_s"):  # the second time a cache may be there
        store.close()
        store = SQLiteStore(path, create=False)
        began = time.perf_counter()
        store.nearest(queries[0].vector, CANDIDATES)
        told[name] = round(time.perf_counter() - began, 3)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told["memory_mb"] = round((after - before) / 1024)
    told["dense"], near = timed(lambda one: store.nearest(one.vector, CANDIDATES), queries)
    truth = exact(store, model.width, queries, CANDIDATES)
    for most in (10, CANDIDATES):
        found = [{one.slot for one in got.best[:most]} for got in near]
        same = [len(got.intersection(own[:most])) for own, got in zip(truth, found)]
        told["dense"][f"recall@{most}"] = round(sum(same) / (len(queries) * most), 4)
    told["bm25"], _ = timed(lambda one: store.match(one.text, CANDIDATES), queries)
    told["hybrid"], _ = timed(lambda one: read(store, Drawn(model, one.vector), one.text), queries)
    network, reader = embedder("reader"), reader_of("reader")
    assert network is not None

    def answer(one: Query) -> Any:
        return ask(store, Paid(network, model, one.vector), reader, one.text, Asking())

    answer(queries[0])  # which loads it
    told["answer"], _ = timed(answer, queries)
    store.close()
    return told


def remember(texts: Path | None, name: str) -> dict[str, Any]:
    """Sentences remembered a second: parsed, split, embedded, stored, indexed."""
    with tempfile.TemporaryDirectory() as folder:
        own, size = [], 0
        for text in sentences(texts):
            own.append(text if texts else f"{text.capitalize()}.")
            if (size := size + len(text)) > REMEMBERED:
                break
        file = Path(folder, "texts.txt")
        file.write_text("\n".join(own), encoding="utf-8")
        with Memory(Path(folder, "memory.db"), embedder=name) as memory:
            began = time.perf_counter()
            memory.remember(file)
            spent = time.perf_counter() - began
            counts = memory.stats()
        times = sorted(cold(memory.path, " ".join(own[-1].split()[:ASKED])) for _ in range(3))
    rate = round(counts.sentences / spent)
    told = {"remember": name, "sentences": counts.sentences, "sentences_per_s": rate}
    return told | {"passages": counts.passages, "cold": {"best_s": times[0], "worst_s": times[-1]}}


def cold(memory: object, question: str) -> float:
    """How long ``mnemic ask`` takes, with all that is to be loaded."""
    began = time.perf_counter()
    words = [sys.executable, "-m", "mnemic", "ask", "--json", "--memory", str(memory), question]
    subprocess.run(words, check=True, capture_output=True)
    return round(time.perf_counter() - began, 2)


def main() -> None:
    how = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=how)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--slots", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--texts", type=Path, default=None)
    parser.add_argument("--length", type=int, default=1)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--embedder", default="hashed-ngrams")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    print(json.dumps(remember(given.texts, given.embedder)), flush=True)
    for size in given.slots:
        model = Model("drawn", "0", given.width)
        path = given.folder / f"{size}-{given.length}-{given.width}.db"
        print(json.dumps(measure(path, model, size, given)), flush=True)


if __name__ == "__main__":
    main()
