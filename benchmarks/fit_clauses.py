"""Fit the weights of ``mnemic.store.answer.clauses`` on CMRC's train split.

    python benchmarks/fit_clauses.py ZH [--questions 1200]

ZH is a folder with qa/cmrc2018_train.jsonl.xz. A memory has half of the paragraphs; half of the
questions are about the others, and have no answer. A clause is right if it is in the question's
paragraph and is, contains, or is a large part of an answer (F1 of at least one half by characters).
The weights maximize the likelihood of the right clauses, otherwise of none.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from chinese_data import (
    ChineseQuestion,
    compute_f1,
    fill_memory,
    has_answer,
    normalize_text,
    read_train,
    split_questions,
)
from torch import Tensor

from mnemic import Memory
from mnemic.store.answer.ask import AskOptions, retrieve_in_hops
from mnemic.store.answer.clauses import ClauseFeatures, ClauseModel, list_clauses

MIN_F1 = 0.5
MAX_ITERATIONS = 200
RIDGE = 1e-4
Cases = list[tuple[list[ClauseFeatures], list[bool]]]  # features of clauses, and which are right


def gather_cases(memory: Memory, questions: Sequence[ChineseQuestion]) -> Cases:
    """Gather the clauses of each question; which are right."""
    cases = []
    for question in questions:
        hops, sentences = retrieve_in_hops(memory.store, None, question.question, AskOptions(), rank_last_hop=True)
        all_sentences = [sentence for slot_sentences in sentences.values() for sentence in slot_sentences]
        clauses = list(list_clauses(question.question, all_sentences, hops[0].scores))
        is_right = []
        for clause in clauses:
            passage = clause.sentence.slot.passage.text
            text = passage[clause.span.start : clause.span.end]
            is_inside = normalize_text(passage) in normalize_text(question.paragraph)
            is_answer = has_answer(text, question.answers) or compute_f1(text, question.answers) >= MIN_F1
            is_right.append(is_inside and is_answer)
        if clauses:
            cases.append(([clause.features for clause in clauses], is_right))
    return cases


def fit_weights(cases: Cases) -> ClauseModel:
    """Fit the weights of the model by maximum likelihood."""
    max_clauses = max(len(features) for features, _ in cases)
    values = torch.zeros(len(cases), max_clauses, len(ClauseFeatures._fields), dtype=torch.float64)  # q c f
    mask, is_right = (torch.zeros(len(cases), max_clauses, dtype=torch.bool) for _ in range(2))
    for row, (features, right) in enumerate(cases):
        values[row, : len(features)] = torch.tensor(features, dtype=torch.float64)
        mask[row, : len(features)] = True
        is_right[row, : len(features)] = torch.tensor(right)
    is_target = torch.cat([is_right, ~is_right.any(1, keepdim=True)], 1)
    weights = torch.zeros(len(ClauseModel._fields), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=MAX_ITERATIONS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        """Compute the negative log-likelihood and its gradient."""
        optimizer.zero_grad()
        logits = (values @ weights[:-1] + weights[-1]).masked_fill(~mask, -torch.inf)
        log_probabilities = torch.cat([logits, torch.zeros(len(cases), 1, dtype=torch.float64)], 1).log_softmax(1)
        total = -log_probabilities.masked_fill(~is_target, -torch.inf).logsumexp(1).mean()
        total = total + RIDGE * weights.square().sum()
        total.backward()
        return total

    optimizer.step(loss)
    return ClauseModel(*(round(weight, 2) for weight in weights.tolist()))


def main() -> None:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--questions", type=int, default=1200)
    args = parser.parse_args()
    paragraphs, inside, outside = split_questions(read_train(args.folder), args.questions)
    with TemporaryDirectory() as folder, Memory(Path(folder, "memory.db")) as memory:
        fill_memory(memory, Path(folder), paragraphs)
        cases = gather_cases(memory, [*inside, *outside])
    print(fit_weights(cases))


if __name__ == "__main__":
    main()
