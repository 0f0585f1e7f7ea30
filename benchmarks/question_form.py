"""Measure whether the form of a question gives away that it has no answer.

    python benchmarks/question_form.py --squad DIR --qa DIR

The questions of ``squad2_unanswerable_part`` are lower-cased and re-spaced, those of SQuAD are not.
From the articles that both have, as many questions of SQuAD are drawn as there are without an
answer. Logistic regressions on hashed n-grams learn which is which from nine tenths of the
articles, and are tested on the rest: on characters as they are, after lower-casing, after
``normalize_question``; on the form alone (every letter "a", every digit "0"); on words alone, which
say what content betrays ("not" is in many of these questions). Chance is 50 %.
"""

import argparse
import json
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from random import Random
from zlib import crc32

import torch

from mnemic.data.text_tasks.files import read_lines
from mnemic.data.text_tasks.squad import read_articles
from mnemic.text.questions import normalize_question

NUM_FEATURES, NUM_EPOCHS = 2**17, 4
Rows = list[tuple[str, int, str]]  # question, has no answer, article


def read_rows(squad: Path, qa: Path, seed: int) -> Rows:
    """Read both kinds of questions of the articles that both files have."""
    path = next(qa.glob("squad2_unanswerable_part.jsonl*"))
    records = [json.loads(line) for _, line in read_lines(path) if line]
    unanswerable: dict[str, list[str]] = {}
    for record in records:
        unanswerable.setdefault(record["context"].strip(), []).append(record["question"])
    rows: Rows = []
    for number, article in enumerate(read_articles(next(squad.glob("train-v1.1.json*")))):
        negatives = [q for text in dict.fromkeys(e.text.strip() for e in article) for q in unanswerable.get(text, [])]
        positives = [example.question for example in article]
        count = min(len(negatives), len(positives))
        generator = Random(f"{seed}/{number}")
        rows += [(question, 1, str(number)) for question in generator.sample(negatives, count)]
        rows += [(question, 0, str(number)) for question in generator.sample(positives, count)]
    return rows


def character_grams(text: str) -> set[str]:
    """List the n-grams of 1 to 4 characters, with the ends of the text."""
    framed = f"\t{text}\n"
    return {framed[start : start + size] for size in range(1, 5) for start in range(len(framed) - size + 1)}


def words(text: str) -> set[str]:
    """List the words, without punctuation."""
    return set(re.findall(r"\w+", text))


def hide_content(text: str) -> str:
    """Replace each letter with "a" and each digit with "0"; runs of letters have one length."""
    return re.sub("a+", "a", "".join("a" if c.isalpha() else "0" if c.isdigit() else c for c in text))


def is_test(article: str) -> bool:
    """Whether an article is for testing: a tenth, by its hash."""
    return sha256(article.encode()).digest()[0] < 26


def measure(rows: Rows, features: Callable[[str], set[str]]) -> float:
    """Train a logistic regression on hashed features; return its test accuracy in percent."""
    torch.manual_seed(0)
    ids = [torch.tensor(sorted({crc32(f.encode()) % NUM_FEATURES for f in features(text)})) for text, _, _ in rows]
    targets = torch.tensor([float(label) for _, label, _ in rows])
    test = torch.tensor([is_test(article) for _, _, article in rows])
    bag = torch.nn.EmbeddingBag(NUM_FEATURES, 1, mode="mean", sparse=True)
    torch.nn.init.zeros_(bag.weight)
    optimizer = torch.optim.SparseAdam(bag.parameters(), lr=1.0)

    def logits(indices: list[int]) -> torch.Tensor:
        selected = [ids[index] for index in indices]
        offsets = torch.tensor([0, *(len(row) for row in selected[:-1])]).cumsum(0)
        return bag(torch.cat(selected), offsets).squeeze(1)

    train_rows, test_rows = (~test).nonzero().flatten(), test.nonzero().flatten()
    for epoch in range(NUM_EPOCHS):
        for group in optimizer.param_groups:
            group["lr"] = 1 - epoch / NUM_EPOCHS
        for batch in train_rows[torch.randperm(len(train_rows))].split(256):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits(batch.tolist()), targets[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return 100 * float(((logits(test_rows.tolist()) > 0) == (targets[test_rows] > 0)).double().mean())


def main() -> None:
    """Print how well each kind of features separates the two sources, for each form."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--squad", type=Path, required=True)
    parser.add_argument("--qa", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rows = read_rows(args.squad, args.qa, args.seed)
    forms: dict[str, Callable[[str], str]] = {
        "as it is": str,
        "lower case": str.lower,
        "normalized": normalize_question,
    }
    report: dict[str, object] = {"questions": len(rows), "test": sum(is_test(article) for _, _, article in rows)}
    kinds = {
        "characters": character_grams,
        "form alone": lambda text: character_grams(hide_content(text)),
        "words": words,
    }
    for name, change in forms.items():
        changed = [(change(question), label, article) for question, label, article in rows]
        report[name] = {kind: round(measure(changed, features), 1) for kind, features in kinds.items()}
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
