"""Word and cluster hashing against reading everything: recall of the exact argmax, and speed.

    python benchmarks/hashing.py --slots 1000000 --questions 200

The memory is made: sentences of words drawn by Zipf's law; words come in groups that mean the
same and have nearly the same vector. A question is the rarest words of one sentence, some of them
replaced by another word of their group: word hashing cannot find it then, cluster hashing can.

Shapes: s slots, w words, q questions, v vocabulary, d width.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from mnemic.memory.parts.cluster_hash import ClusterHash
from mnemic.memory.parts.key_hash import KeyHash

GROUP = 5  # words that mean the same
LENGTH, ASKED = 7, 3  # words of a sentence and of a question


def make(slots: int, questions: int, vocab: int, width: int, swap: float) -> tuple[Tensor, ...]:
    """Word vectors (v d), sentences (s w) and questions (q w)."""
    dice = torch.Generator().manual_seed(0)
    meanings = torch.randn(vocab // GROUP + 1, width, generator=dice)
    order = torch.randperm(vocab, generator=dice)  # how common a word is says nothing of its group
    vectors = meanings[order // GROUP] + 0.1 * torch.randn(vocab, width, generator=dice)
    chances = 1 / torch.arange(1, vocab).float()
    drawn = torch.multinomial(chances, slots * LENGTH, replacement=True, generator=dice) + 1
    sentences = drawn.view(slots, LENGTH)
    source = torch.randint(slots, (questions,), generator=dice)
    asked = sentences[source].sort(1).values[:, -ASKED:]  # q w
    place_of = order.argsort()  # the word at each place of the shuffled vocabulary
    friend = order[asked] // GROUP * GROUP + torch.randint(GROUP, asked.shape, generator=dice)
    friend = place_of[friend.clamp(max=vocab - 1)]
    swapped = torch.rand(asked.shape, generator=dice) < swap
    return vectors, sentences, torch.where(swapped & (friend > 0), friend, asked)


def embedded(texts: Tensor, vectors: Tensor) -> Tensor:
    """Bags of words, a part at a time."""
    return torch.cat([vectors[part].sum(1) for part in texts.split(100_000)])


def read_all(queries: Tensor, memory: Tensor, number: int) -> int:
    """The best slot for a question, of all."""
    return int((memory @ queries[number]).argmax())


def hashed(
    select: KeyHash | ClusterHash, asked: Tensor, queries: Tensor, memory: Tensor, number: int
) -> int:
    """The best slot for a question, of those that were selected; -1 if none were."""
    real = select(asked[number : number + 1])[0]
    return int(real[(memory[real] @ queries[number]).argmax()]) if len(real) else -1


def timed(find: Callable[[int], int], count: int) -> tuple[list[int], float]:
    """What was found, and milliseconds a question."""
    began = time.perf_counter()
    found = [find(number) for number in range(count)]
    return found, 1000 * (time.perf_counter() - began) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--slots", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--vocab", type=int, default=20_000)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--swap", type=float, default=0.3, help="share of words replaced")
    parser.add_argument("--clusters", type=int, nargs="+", default=[1000, 4000])
    given = parser.parse_args()
    vectors, texts, asked = make(given.slots, given.questions, given.vocab, given.width, given.swap)
    memory, queries = embedded(texts, vectors), embedded(asked, vectors)
    exact, spent = timed(partial(read_all, queries, memory), given.questions)
    print(f"{given.slots:,} slots, {given.questions} questions")
    print(f"{'everything':16} recall 100.0 %  {spent:8.2f} ms a question")
    rare = {"most": given.slots, "common": given.slots // 50}
    rows: dict[str, Callable[[], KeyHash | ClusterHash]] = {
        "words": partial(KeyHash, texts, **rare)
    }
    for number in given.clusters:
        clustered = partial(ClusterHash, texts, vectors, clusters=number, **rare)
        rows[f"{number} clusters"] = clustered
    for name, build in rows.items():
        began = time.perf_counter()
        select = build()
        built = time.perf_counter() - began
        share = sum(int((select(own[None]) >= 0).sum()) for own in asked) / texts.shape[0]
        found, spent = timed(partial(hashed, select, asked, queries, memory), given.questions)
        recall = 100 * sum(a == b for a, b in zip(found, exact)) / given.questions
        print(
            f"{name:16} recall {recall:5.1f} %  {spent:8.2f} ms a question, "
            f"{100 * share / given.questions:.2f} % of the slots, built in {built:.1f} s"
        )


if __name__ == "__main__":
    main()
