"""Time PostgreSQL's search for the nearest vectors, with and without its index.

    python benchmarks/postgres_vector_search.py postgresql://host/database#trial [--count 100000]

The memory must be new; it is not deleted: drop its schema, mnemic_trial. Vectors and queries are
drawn around 500 centers. Recall is the share of the 200 nearest vectors that the index finds.
"""

import argparse
import statistics
import time
from collections.abc import Iterator

import numpy

from mnemic.store import PostgresStore
from mnemic.store.contract import Draft, EmbeddingModel, NearestSlots, Vectors
from mnemic.store.postgres import vectors as postgres_vectors
from mnemic.store.retrieve.sentence_keys import without_sentence_vectors
from mnemic.text.documents import Passage, Sentence

TOP_K, NUM_CENTERS, NUM_QUERIES = 200, 500, 30


def draw_vectors(centers: Vectors, count: int, generator: numpy.random.Generator) -> Iterator[Vectors]:
    """Yield random unit vectors around the centers."""
    for number in range(count):
        vector = centers[number % NUM_CENTERS] + generator.normal(size=centers.shape[1])
        yield (vector / numpy.linalg.norm(vector)).astype(numpy.float32)


def time_searches(store: PostgresStore, queries: list[Vectors]) -> tuple[float, list[NearestSlots]]:
    """Run all queries; return the median milliseconds of a search and the results."""
    store.search_vectors(queries[0], TOP_K)
    times, results = [], []
    for query in queries:
        started = time.perf_counter()
        results.append(store.search_vectors(query, TOP_K))
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times), results


def main() -> None:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("memory")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--width", type=int, default=384)
    args = parser.parse_args()
    generator = numpy.random.default_rng(0)
    centers = generator.normal(size=(NUM_CENTERS, args.width)).astype(numpy.float32)
    texts = (f"Number {number}." for number in range(args.count))
    passages = (Passage(text, None, (Sentence(0, len(text), 1, 0, len(text)),)) for text in texts)
    store = PostgresStore(args.memory)
    postgres_vectors.MIN_INDEXED_VECTORS = args.count + 1
    with store.write_session(), store.transaction():
        store.set_model(EmbeddingModel("trial", "", args.width))
        store.add_document(
            Draft("", "text", ""), zip(passages, without_sentence_vectors(draw_vectors(centers, args.count, generator)))
        )
    queries = list(draw_vectors(centers, NUM_QUERIES, generator))
    exact_ms, exact_results = time_searches(store, queries)
    postgres_vectors.MIN_INDEXED_VECTORS = 1
    started = time.perf_counter()
    with store.write_session():
        pass
    indexing_s = time.perf_counter() - started
    indexed_ms, indexed_results = time_searches(store, queries)
    pairs = [({s.slot_id for s in a.best}, {s.slot_id for s in b.best}) for a, b in zip(exact_results, indexed_results)]
    recall = statistics.mean(len(a & b) / len(a) for a, b in pairs)
    print(f"{args.count} vectors of width {args.width}: every one {exact_ms:.0f} ms, by the index")
    print(f"{indexed_ms:.1f} ms with recall {recall:.3f}; making it took {indexing_s:.0f} s")
    store.close()


if __name__ == "__main__":
    main()
