"""Compare word and cluster hashing with exhaustive search: recall of the argmax, and speed.

    python benchmarks/hashing_recall.py --slots 1000000 --questions 200

The memory is synthetic: sentences of words drawn by Zipf's law; words come in groups of synonyms
with nearly the same vector. A question is the rarest words of one sentence, some of them replaced
by a synonym: word hashing cannot find the sentence then, cluster hashing can.

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

SYNONYMS = 5  # words per group with the same meaning
SENTENCE_WORDS, QUESTION_WORDS = 7, 3  # words of a sentence and of a question


def make_memory(slots: int, questions: int, vocab: int, width: int, swap_probability: float) -> tuple[Tensor, ...]:
    """Make random word vectors (v d), sentences (s w) and questions (q w)."""
    generator = torch.Generator().manual_seed(0)
    meanings = torch.randn(vocab // SYNONYMS + 1, width, generator=generator)
    order = torch.randperm(vocab, generator=generator)  # a word's frequency is independent of its group
    vectors = meanings[order // SYNONYMS] + 0.1 * torch.randn(vocab, width, generator=generator)
    frequencies = 1 / torch.arange(1, vocab).float()
    sampled_words = torch.multinomial(frequencies, slots * SENTENCE_WORDS, replacement=True, generator=generator) + 1
    sentences = sampled_words.view(slots, SENTENCE_WORDS)
    source = torch.randint(slots, (questions,), generator=generator)
    question_words = sentences[source].sort(1).values[:, -QUESTION_WORDS:]  # q w
    word_at_position = order.argsort()  # of the shuffled vocabulary
    synonyms = order[question_words] // SYNONYMS * SYNONYMS + torch.randint(
        SYNONYMS, question_words.shape, generator=generator
    )
    synonyms = word_at_position[synonyms.clamp(max=vocab - 1)]
    is_swapped = torch.rand(question_words.shape, generator=generator) < swap_probability
    return vectors, sentences, torch.where(is_swapped & (synonyms > 0), synonyms, question_words)


def embed_texts(texts: Tensor, vectors: Tensor) -> Tensor:
    """Embed texts as bags of words, in chunks."""
    return torch.cat([vectors[chunk].sum(1) for chunk in texts.split(100_000)])


def search_all(queries: Tensor, memory: Tensor, number: int) -> int:
    """Return the best of all slots for a question."""
    return int((memory @ queries[number]).argmax())


def search_selected(
    select: KeyHash | ClusterHash, questions: Tensor, queries: Tensor, memory: Tensor, number: int
) -> int:
    """Return the best of the selected slots for a question; -1 if there are none."""
    selected = select(questions[number : number + 1])[0]
    return int(selected[(memory[selected] @ queries[number]).argmax()]) if len(selected) else -1


def time_search(search: Callable[[int], int], count: int) -> tuple[list[int], float]:
    """Search for all questions; return the slots and milliseconds per question."""
    started = time.perf_counter()
    slots = [search(number) for number in range(count)]
    return slots, 1000 * (time.perf_counter() - started) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--slots", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--vocab", type=int, default=20_000)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--swap", type=float, default=0.3, help="share of words replaced")
    parser.add_argument("--clusters", type=int, nargs="+", default=[1000, 4000])
    args = parser.parse_args()
    vectors, texts, questions = make_memory(args.slots, args.questions, args.vocab, args.width, args.swap)
    memory, queries = embed_texts(texts, vectors), embed_texts(questions, vectors)
    exact_slots, ms_per_question = time_search(partial(search_all, queries, memory), args.questions)
    print(f"{args.slots:,} slots, {args.questions} questions")
    print(f"{'everything':16} recall 100.0 %  {ms_per_question:8.2f} ms a question")
    limits = {"max_slots": args.slots, "max_frequency": args.slots // 50}
    builders: dict[str, Callable[[], KeyHash | ClusterHash]] = {"words": partial(KeyHash, texts, **limits)}
    for number in args.clusters:
        make_cluster_hash = partial(ClusterHash, texts, vectors, num_clusters=number, **limits)
        builders[f"{number} clusters"] = make_cluster_hash
    for name, build in builders.items():
        started = time.perf_counter()
        select = build()
        build_s = time.perf_counter() - started
        share = sum(int((select(question[None]) >= 0).sum()) for question in questions) / texts.shape[0]
        slots, ms_per_question = time_search(
            partial(search_selected, select, questions, queries, memory), args.questions
        )
        recall = 100 * sum(a == b for a, b in zip(slots, exact_slots)) / args.questions
        print(
            f"{name:16} recall {recall:5.1f} %  {ms_per_question:8.2f} ms a question, "
            f"{100 * share / args.questions:.2f} % of the slots, built in {build_s:.1f} s"
        )


if __name__ == "__main__":
    main()
