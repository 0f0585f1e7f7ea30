"""Baseline of KV-MemNN: classify the relation of a question, then look up the fact.

    python benchmarks/relation_lookup.py --data DIR [--split validation|test] [--json]

A logistic regression on the question's words, without its entity, chooses one of the base's
relations in either direction. Its training label is the relation whose facts about the entity agree
best with the right answers. The answer is the first fact of the entity with the most probable
relation that it has. Files, splits and metric (hits@1) are those of ``kv-memnn``.
"""

import argparse
import json
import time
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mnemic.data.knowledge.dataset import KnowledgeFolder
from mnemic.data.knowledge.format import Fact, KnowledgeQuestion
from mnemic.text import WordTokenizer
from mnemic.text.tokenizers.words import normalize_word

NUM_STEPS, LEARNING_RATE = 300, 0.05

Index = dict[str, dict[str, list[str]]]  # entity → relation → entities, in order


def index_facts(facts: Sequence[Fact]) -> Index:
    """Index every fact by its subject and its object, in lower case."""
    index: Index = {}
    for fact in facts:
        subject, end = normalize_word(fact.subject), normalize_word(fact.object)
        index.setdefault(subject, {}).setdefault(fact.relation, []).append(end)
        index.setdefault(end, {}).setdefault(f"!{fact.relation}", []).append(subject)
    return index


def split_question(question: KnowledgeQuestion) -> tuple[str, str]:
    """Split a question into its entity and the remaining text."""
    start, end = question.text.index("["), question.text.rindex("]")
    return normalize_word(question.text[start + 1 : end]), question.text[:start] + question.text[end + 1 :]


def compute_jaccard(entities: Sequence[str], answers: Sequence[str]) -> float:
    """Compute the Jaccard similarity of entities and right answers."""
    entity_set, answer_set = set(entities), {normalize_word(answer) for answer in answers}
    return len(entity_set & answer_set) / len(entity_set | answer_set)


def find_best_relation(index: Index, question: KnowledgeQuestion) -> str | None:
    """Find the relation that matches the right answers best; None if none does."""
    facts_of_entity = index.get(split_question(question)[0], {})
    jaccard = {relation: compute_jaccard(ends, question.answers) for relation, ends in facts_of_entity.items()}
    return max(jaccard, key=lambda r: jaccard[r]) if jaccard and max(jaccard.values()) else None


def count_words(questions: Sequence[KnowledgeQuestion], tokenizer: WordTokenizer) -> Tensor:
    """Count each word of each question, q v."""
    counts = torch.zeros(len(questions), len(tokenizer))
    for row, question in enumerate(questions):
        for word_id in tokenizer.encode(split_question(question)[1]).ids:
            counts[row, word_id] += 1
    return counts


def train_classifier(counts: Tensor, targets: Tensor, num_relations: int) -> nn.Linear:
    """Train a logistic regression from word counts to relations."""
    torch.manual_seed(0)
    model = nn.Linear(counts.shape[1], num_relations)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    for _ in range(NUM_STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(counts), targets).backward()
        optimizer.step()
    return model


def look_up_answer(index: Index, question: KnowledgeQuestion, ranked_relations: Sequence[str]) -> str | None:
    """Look up the first answer by the best relation that the entity has."""
    facts_of_entity = index.get(split_question(question)[0], {})
    return next((facts_of_entity[relation][0] for relation in ranked_relations if relation in facts_of_entity), None)


def measure_hits(folder: str, split: str) -> dict[str, float]:
    """Measure hits@1 in percent, and the upper bound over all choices of relation."""
    source, started = KnowledgeFolder(folder=folder), time.monotonic()
    train, test_questions = source.read_split("train"), source.read_split("test" if split == "test" else "validation")
    index = index_facts(source.load_facts())
    relations = sorted({relation for known in index.values() for relation in known})
    labelled = [
        (train_question, best)
        for train_question in train
        if (best := find_best_relation(index, train_question)) is not None
    ]
    tokenizer = WordTokenizer.from_texts(split_question(question)[1] for question in train)
    targets = torch.tensor([relations.index(best) for _, best in labelled])
    model = train_classifier(
        count_words([train_question for train_question, _ in labelled], tokenizer), targets, len(relations)
    )
    order = model(count_words(test_questions, tokenizer)).argsort(1, descending=True).tolist()
    num_hits = num_possible = 0
    for question, ranks in zip(test_questions, order):
        right_answers = {normalize_word(answer) for answer in question.answers}
        num_hits += look_up_answer(index, question, [relations[number] for number in ranks]) in right_answers
        best = find_best_relation(index, question)
        num_possible += best is not None and look_up_answer(index, question, [best]) in right_answers
    return {
        "questions": len(test_questions),
        "hits@1": round(100 * num_hits / len(test_questions), 2),
        "hits@1 if every relation were right": round(100 * num_possible / len(test_questions), 2),
        "seconds": round(time.monotonic() - started, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder with kb.txt, dev.txt and test.txt")
    parser.add_argument("--split", choices=["validation", "test"], default="validation")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    metrics = measure_hits(args.data, args.split)
    print(json.dumps(metrics) if args.json else "\n".join(f"{k}: {v}" for k, v in metrics.items()))


if __name__ == "__main__":
    main()
