"""Time writing and reading a memory of 10,000, 100,000 and 1,000,000 slots.

    python benchmarks/memory_speed.py FOLDER [--slots 10000 100000] [--texts enwiki.jsonl.xz]
        [--length 1] [--width 384] [--queries 200] [--embedder hashed-ngrams]

FOLDER holds a memory of each size, made once. A slot has --length sentences of --texts (JSON lines
with ``text``), or else of random words with Zipf frequencies. Its vector is random, from a thousand
clusters, so that there is something to find; if a slot has several sentences, each has a vector. A
query is a few words of one slot, and a vector near that of another. ``recall`` is the share of the
exact nearest neighbors that ``search_vectors`` finds. ``answer`` is the whole path from a question
to a span: the shipped reader's network embeds the question (the result is replaced by the query's
vector), and the reader reads five passages. ``remember`` is the whole path of a text file into a
new memory, ``cold`` a whole ``mnemic ask`` in its own process, best and worst of three. One line of
JSON each.
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
from mnemic.checkpoint.shipped import EMBEDDERS, READERS
from mnemic.store import AskOptions, Embedder, SQLiteStore
from mnemic.store.answer.ask import answer_question
from mnemic.store.answer.reader import resolve_reader
from mnemic.store.contract import Draft, EmbeddingModel, PassageEmbedding, Vectors
from mnemic.store.retrieve.embedders import resolve_embedder
from mnemic.store.retrieve.hybrid import NUM_CANDIDATES, read_hop
from mnemic.store.retrieve.sentence_keys import without_sentence_vectors
from mnemic.store.sqlite.vectors import read_vector_blocks
from mnemic.text.documents import Passage, Sentence
from mnemic.text.sentences import split_sentences as split

SLOTS_PER_DOCUMENT = 1000
NUM_CLUSTERS = 1000
NUM_WORDS, SENTENCE_WORDS = 50_000, 20  # random words: in total, and per sentence
QUERY_WORDS = 6
NUM_CHARACTERS = 2_000_000  # of the text to remember


class Query(NamedTuple):
    """The text and the vector of a query."""

    text: str
    vector: Vectors


class FixedEmbedder:
    """An embedder that returns a fixed vector, so that only the memory is timed."""

    bm25_weight = 0.3

    def __init__(self, model: EmbeddingModel, vector: Vectors) -> None:
        self.model = model
        self.vector = vector

    def count_tokens(self, texts: Any) -> list[int]:
        """Count the words of each text."""
        return [len(text.split()) for text in texts]

    def embed(self, texts: Any) -> Vectors:
        """Return the fixed vector for each text."""
        return numpy.stack([self.vector for _ in texts])

    def embed_passages(self, texts: Any) -> list[PassageEmbedding]:
        """Return the fixed vector for each passage."""
        return without_sentence_vectors(self.embed(texts))


class TimedEmbedder(FixedEmbedder):
    """A fixed embedder that takes as long as the shipped reader's network."""

    def __init__(self, embedder: Embedder, model: EmbeddingModel, vector: Vectors) -> None:
        super().__init__(model, vector)
        self.embedder = embedder

    def embed(self, texts: Any) -> Vectors:
        """Run the real embedder, then return the fixed vector for each text."""
        self.embedder.embed(texts)
        return super().embed(texts)


def generate_sentences(texts: Path | None) -> Iterator[str]:
    """Yield sentences endlessly: those of the file, or random ones."""
    if texts is None:
        generator = numpy.random.default_rng(0)
        frequencies = 1 / numpy.arange(1, NUM_WORDS + 1)
        cumulative = numpy.cumsum(frequencies / frequencies.sum())
        while True:
            for row in numpy.searchsorted(cumulative, generator.random((1000, SENTENCE_WORDS))):
                yield " ".join(f"w{number:x}" for number in row)
    while texts is not None:
        open_file = lzma.open if texts.suffix == ".xz" else open
        with open_file(texts, "rt", encoding="utf-8") as file:
            for line in file:
                text = json.loads(line)["text"]
                yield from (text[span.start : span.end] for span in split(text))


def draw_vectors(count: int, width: int, seed: int) -> Vectors:
    """Draw unit vectors around a thousand centers."""
    centers = numpy.random.default_rng(0).normal(size=(NUM_CLUSTERS, width))
    generator = numpy.random.default_rng(seed)
    vectors = centers[generator.integers(NUM_CLUSTERS, size=count)] + generator.normal(size=(count, width))
    return (vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)).astype(numpy.float32)


def draw_passage_embeddings(count: int, width: int, seed: int, num_keys: int) -> list[PassageEmbedding]:
    """Draw passage vectors, and sentence vectors around each of them."""
    vectors = draw_vectors(count, width, seed)
    generator = numpy.random.default_rng(seed)
    keys = vectors[:, None] + generator.normal(size=(count, num_keys, width)) / width**0.5
    keys /= numpy.linalg.norm(keys, axis=2, keepdims=True)
    return [PassageEmbedding(*vector_and_keys) for vector_and_keys in zip(vectors, keys.astype(numpy.float32))]


def fill_store(store: SQLiteStore, model: EmbeddingModel, count: int, texts: Path | None, length: int = 1) -> None:
    """Fill a store with ``count`` slots of ``length`` sentences each."""
    source = generate_sentences(texts)
    with store.write_session():
        with store.transaction():
            store.set_model(model)
        for number in range(0, count, SLOTS_PER_DOCUMENT):
            size = min(SLOTS_PER_DOCUMENT, count - number)
            embeddings = draw_passage_embeddings(size, model.width, 1 + number, length)
            texts_of_slots = [" ".join(islice(source, length)) for _ in range(size)]
            passages = [Passage(text, None, (Sentence(0, len(text), 1, 0, len(text)),)) for text in texts_of_slots]
            with store.transaction():
                store.add_document(Draft(f"{number}", "text", f"{number}"), zip(passages, embeddings))


def draw_queries(store: SQLiteStore, model: EmbeddingModel, count: int, size: int) -> list[Query]:
    """Draw queries: some words of one slot, and a vector near that of another."""
    word_generator = random.Random(1)
    vector_generator = numpy.random.default_rng(1)
    queries = []
    for _ in range(count):
        text_slot, vector_slot = word_generator.randint(1, size), word_generator.randint(1, size)
        words = store.get_slots([text_slot])[0].passage.text.split()
        query_text = " ".join(
            words[position]
            for position in sorted(word_generator.sample(range(len(words)), min(QUERY_WORDS, len(words))))
        )
        vector = (
            store.get_vectors([vector_slot])[0] + vector_generator.normal(size=model.width) * 0.7 / model.width**0.5
        )
        queries.append(Query(query_text, (vector / numpy.linalg.norm(vector)).astype(numpy.float32)))
    return queries


def search_exactly(store: SQLiteStore, width: int, queries: list[Query], top_k: int) -> list[list[int]]:
    """Find the nearest slots of each query by exhaustive search, best first."""
    query_vectors = numpy.stack([query.vector for query in queries], axis=1)  # d q
    slot_ids = numpy.zeros((len(queries), 0), numpy.int64)
    best_scores = numpy.zeros((len(queries), 0), numpy.float32)
    for block in read_vector_blocks(store.connection, width):
        scores = (block.vectors @ query_vectors).T  # q n
        slots = numpy.broadcast_to(block.slot_ids, scores.shape)
        best_scores, slot_ids = numpy.hstack([best_scores, scores]), numpy.hstack([slot_ids, slots])
        order = numpy.argsort(-best_scores, axis=1)[:, :top_k]
        best_scores = numpy.take_along_axis(best_scores, order, 1)
        slot_ids = numpy.take_along_axis(slot_ids, order, 1)
    return slot_ids.tolist()


def time_queries(act: Callable[[Query], Any], queries: list[Query]) -> tuple[dict[str, float], list[Any]]:
    """Run an action per query; return latency percentiles, processor time and results."""
    times, results = [], []
    processor_ms = time.process_time()
    for query in queries:
        started = time.perf_counter()
        results.append(act(query))
        times.append(1000 * (time.perf_counter() - started))
    processor_ms = 1000 * (time.process_time() - processor_ms) / len(queries)
    times.sort()
    median_ms, p95_ms = times[len(times) // 2], times[int(len(times) * 0.95)]
    latencies = {"p50_ms": median_ms, "p95_ms": p95_ms, "processor_ms": processor_ms}
    return {name: round(value, 2) for name, value in latencies.items()}, results


def measure_store(path: Path, model: EmbeddingModel, size: int, args: argparse.Namespace) -> dict[str, Any]:
    """Measure speed and recall of a store of one size."""
    report: dict[str, Any] = {"slots": size, "length": args.length, "width": model.width}
    if not path.exists():
        started = time.perf_counter()
        store = SQLiteStore(path)
        fill_store(store, model, size, args.texts, args.length)
        report["stored_per_s"] = round(size / (time.perf_counter() - started))
        store.close()
    store = SQLiteStore(path, create=False)
    queries = draw_queries(store, model, args.queries, size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name in ("first_s", "first_again_s"):  # the second time there may be a cache
        store.close()
        store = SQLiteStore(path, create=False)
        started = time.perf_counter()
        store.search_vectors(queries[0].vector, NUM_CANDIDATES)
        report[name] = round(time.perf_counter() - started, 3)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report["memory_mb"] = round((after - before) / 1024)
    report["dense"], search_results = time_queries(
        lambda query: store.search_vectors(query.vector, NUM_CANDIDATES), queries
    )
    exact_slots = search_exactly(store, model.width, queries, NUM_CANDIDATES)
    for top_k in (10, NUM_CANDIDATES):
        slot_sets = [{slot.slot_id for slot in result.best[:top_k]} for result in search_results]
        num_shared = [len(slots.intersection(exact[:top_k])) for exact, slots in zip(exact_slots, slot_sets)]
        report["dense"][f"recall@{top_k}"] = round(sum(num_shared) / (len(queries) * top_k), 4)
    report["bm25"], _ = time_queries(lambda query: store.search_bm25(query.text, NUM_CANDIDATES), queries)
    report["hybrid"], _ = time_queries(
        lambda query: read_hop(store, FixedEmbedder(model, query.vector), query.text), queries
    )
    network, reader = resolve_embedder(EMBEDDERS[0]), resolve_reader(READERS[0])
    assert network is not None

    def answer(query: Query) -> Any:
        return answer_question(store, TimedEmbedder(network, model, query.vector), reader, query.text, AskOptions())

    answer(queries[0])  # loads the network
    report["answer"], _ = time_queries(answer, queries)
    store.close()
    return report


def time_remember(texts: Path | None, embedder_name: str) -> dict[str, Any]:
    """Measure sentences per second of ``remember``: parse, split, embed, store, index."""
    with tempfile.TemporaryDirectory() as folder:
        lines, size = [], 0
        for text in generate_sentences(texts):
            lines.append(text if texts else f"{text.capitalize()}.")
            if (size := size + len(text)) > NUM_CHARACTERS:
                break
        file = Path(folder, "texts.txt")
        file.write_text("\n".join(lines), encoding="utf-8")
        with Memory(Path(folder, "memory.db"), embedder=embedder_name) as memory:
            started = time.perf_counter()
            memory.remember(file)
            seconds = time.perf_counter() - started
            counts = memory.stats()
        times = sorted(time_cold_ask(memory.path, " ".join(lines[-1].split()[:QUERY_WORDS])) for _ in range(3))
    rate = round(counts.sentences / seconds)
    report = {"remember": embedder_name, "sentences": counts.sentences, "sentences_per_s": rate}
    return report | {"passages": counts.passages, "cold": {"best_s": times[0], "worst_s": times[-1]}}


def time_cold_ask(memory: object, question: str) -> float:
    """Measure the seconds of one ``mnemic ask``, including start-up."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "mnemic", "ask", "--json", "--memory", str(memory), question]
    subprocess.run(command, check=True, capture_output=True)
    return round(time.perf_counter() - started, 2)


def main() -> None:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--slots", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--texts", type=Path, default=None)
    parser.add_argument("--length", type=int, default=1)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--embedder", default="hashed-ngrams")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    print(json.dumps(time_remember(args.texts, args.embedder)), flush=True)
    for size in args.slots:
        model = EmbeddingModel("drawn", "0", args.width)
        path = args.folder / f"{size}-{args.length}-{args.width}.db"
        print(json.dumps(measure_store(path, model, size, args)), flush=True)


if __name__ == "__main__":
    main()
