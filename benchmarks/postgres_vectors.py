"""How long a PostgreSQL server looks for the nearest vectors: at every one, and by its index.

    python benchmarks/postgres_vectors.py postgresql://host/database#trial [--count 100000]

The memory must be a new one; it is left there, to be dropped with its schema, mnemic_trial. Vectors
lie around 500 centres, queries too. Recall is how many of the 200 nearest the index finds.
"""

import argparse
import statistics
import time
from collections.abc import Iterator

import numpy

from mnemic.store import PostgresStore
from mnemic.store.contract import Draft, Model, Nearest, Vectors
from mnemic.store.postgres import vectors as postgres_dense
from mnemic.store.retrieve.sentence_keys import without_keys
from mnemic.text.documents import Passage, Sentence

MOST, CENTRES, QUERIES = 200, 500, 30


def around(centres: Vectors, count: int, dice: numpy.random.Generator) -> Iterator[Vectors]:
    for number in range(count):
        one = centres[number % CENTRES] + dice.normal(size=centres.shape[1])
        yield (one / numpy.linalg.norm(one)).astype(numpy.float32)


def ask(store: PostgresStore, queries: list[Vectors]) -> tuple[float, list[Nearest]]:
    """The median time of a search, in milliseconds, and what was found."""
    store.nearest(queries[0], MOST)
    times, found = [], []
    for query in queries:
        began = time.perf_counter()
        found.append(store.nearest(query, MOST))
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times), found


def main() -> None:
    how = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=how)
    parser.add_argument("memory")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--width", type=int, default=384)
    given = parser.parse_args()
    dice = numpy.random.default_rng(0)
    centres = dice.normal(size=(CENTRES, given.width)).astype(numpy.float32)
    texts = (f"Number {number}." for number in range(given.count))
    passages = (Passage(text, None, (Sentence(0, len(text), 1, 0, len(text)),)) for text in texts)
    store = PostgresStore(given.memory)
    postgres_dense.INDEXED = given.count + 1
    with store.writing(), store.change():
        store.set_model(Model("trial", "", given.width))
        store.add(
            Draft("", "text", ""), zip(passages, without_keys(around(centres, given.count, dice)))
        )
    queries = list(around(centres, QUERIES, dice))
    exact, truth = ask(store, queries)
    postgres_dense.INDEXED = 1
    began = time.perf_counter()
    with store.writing():
        pass
    making = time.perf_counter() - began
    indexed, found = ask(store, queries)
    pairs = [({s.slot for s in a.best}, {s.slot for s in b.best}) for a, b in zip(truth, found)]
    shared = statistics.mean(len(a & b) / len(a) for a, b in pairs)
    print(f"{given.count} vectors of width {given.width}: every one {exact:.0f} ms, by the index")
    print(f"{indexed:.1f} ms with recall {shared:.3f}; making it took {making:.0f} s")
    store.close()


if __name__ == "__main__":
    main()
