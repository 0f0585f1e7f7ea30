"""The plain row beside KV-MemNN: classify the question's relation, then look the fact up.

    python benchmarks/relation_lookup.py --data DIR [--split validation|test] [--json]

A logistic regression over the question's words, without its entity, chooses one of the base's
relations in either direction. It learns from the relation whose facts about the entity agree best
with the right answers. The answer is the first fact of the entity with that relation, or with the
next likely one where there is none. Files, split and measure (hits@1) are those of ``kv-memnn``.
"""

import argparse
import json
import time
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mnemic.data.knowledge.dataset import KnowledgeFolder
from mnemic.data.knowledge.format import Fact, Question
from mnemic.text import Words
from mnemic.text.tokenizers.words import fold

STEPS, RATE = 300, 0.05

Index = dict[str, dict[str, list[str]]]  # entity → relation → what it leads to, in order


def index_of(facts: Sequence[Fact]) -> Index:
    """Every fact from both ends; entities are spelled in lower case, as the vocabulary does."""
    index: Index = {}
    for fact in facts:
        subject, end = fold(fact.subject), fold(fact.object)
        index.setdefault(subject, {}).setdefault(fact.relation, []).append(end)
        index.setdefault(end, {}).setdefault(f"!{fact.relation}", []).append(subject)
    return index


def parted(question: Question) -> tuple[str, str]:
    """The entity, and the question without it."""
    start, end = question.text.index("["), question.text.rindex("]")
    return fold(question.text[start + 1 : end]), question.text[:start] + question.text[end + 1 :]


def agreement(found: Sequence[str], right: Sequence[str]) -> float:
    """How much two sets of answers share (Jaccard)."""
    one, other = set(found), {fold(answer) for answer in right}
    return len(one & other) / len(one | other)


def best_relation(index: Index, question: Question) -> str | None:
    """The relation that gives the right answers best; None where none gives any."""
    known = index.get(parted(question)[0], {})
    agreed = {relation: agreement(ends, question.answers) for relation, ends in known.items()}
    return max(agreed, key=lambda r: agreed[r]) if agreed and max(agreed.values()) else None


def counts_of(questions: Sequence[Question], words: Words) -> Tensor:
    """q v: how often each word stands in each question."""
    counts = torch.zeros(len(questions), len(words))
    for row, question in enumerate(questions):
        for number in words.encode(parted(question)[1]).ids:
            counts[row, number] += 1
    return counts


def learn(counts: Tensor, targets: Tensor, relations: int) -> nn.Linear:
    torch.manual_seed(0)
    model = nn.Linear(counts.shape[1], relations)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE)
    for _ in range(STEPS):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(counts), targets).backward()
        optimiser.step()
    return model


def look_up(index: Index, question: Question, ranked: Sequence[str]) -> str | None:
    known = index.get(parted(question)[0], {})
    return next((known[relation][0] for relation in ranked if relation in known), None)


def measure(folder: str, split: str) -> dict[str, float]:
    """hits@1 in percent, beside the best that any choice of relation could reach."""
    source, began = KnowledgeFolder(folder=folder), time.monotonic()
    train, asked = source.told("train"), source.told("test" if split == "test" else "validation")
    index = index_of(source.facts())
    relations = sorted({relation for known in index.values() for relation in known})
    labelled = [(own, best) for own in train if (best := best_relation(index, own)) is not None]
    words = Words.of(parted(question)[1] for question in train)
    targets = torch.tensor([relations.index(best) for _, best in labelled])
    model = learn(counts_of([own for own, _ in labelled], words), targets, len(relations))
    order = model(counts_of(asked, words)).argsort(1, descending=True).tolist()
    hits = possible = 0
    for question, ranks in zip(asked, order):
        right = {fold(answer) for answer in question.answers}
        hits += look_up(index, question, [relations[number] for number in ranks]) in right
        best = best_relation(index, question)
        possible += best is not None and look_up(index, question, [best]) in right
    return {
        "questions": len(asked),
        "hits@1": round(100 * hits / len(asked), 2),
        "hits@1 if every relation were right": round(100 * possible / len(asked), 2),
        "seconds": round(time.monotonic() - began, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder with kb.txt, dev.txt and test.txt")
    parser.add_argument("--split", choices=["validation", "test"], default="validation")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = measure(given.data, given.split)
    print(json.dumps(found) if given.json else "\n".join(f"{k}: {v}" for k, v in found.items()))


if __name__ == "__main__":
    main()
