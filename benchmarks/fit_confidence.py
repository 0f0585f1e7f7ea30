"""Fit the weights of ``mnemic.store.answer.confidence`` for answers of a memory.

    python benchmarks/fit_confidence.py SQUAD --memory squad.db [--questions 800]
        [--kept gathered.jsonl]

SQUAD and the memory are those of memory_answers.py. Questions are sampled from the articles of
train that the reader's training held out, and asked of three memories: the whole one, a copy
without these articles, and a small one of every second of these articles, which can answer the
questions about those and none of the others. Thus half of all questions have no answer. The weights
maximize the likelihood of the right choice: a span with an F1 of at least one half, otherwise none.
The minimum confidence is the smallest at which few of the questions without an answer (--wrong) get
one, in a large and in a small memory. Metrics are of questions about articles that were not used to
fit the weights (two-fold cross-validation). --kept saves the gathered cases, the slow part, for the
next time.
"""

import argparse
import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import squad_memory
import torch
from memory_answers import MIN_RIGHT_F1, JudgedAnswer, compute_calibration
from squad_memory import Squad
from torch import Tensor

from mnemic import Memory
from mnemic.data.text_tasks.examples import QuestionExample
from mnemic.evaluate.metrics import answer_f1, exact_match
from mnemic.store.answer.ask import AskOptions, read_memory, retrieve_in_hops
from mnemic.store.answer.confidence import ConfidenceModel, SpanFeatures
from mnemic.store.answer.rank import normalize_answer
from mnemic.store.answer.read import find_candidates

CONFIDENCES = [number / 100 for number in range(1, 100)]
MAX_ITERATIONS = 200
NOTHING_FIXED: Mapping[str, float] = MappingProxyType({})
Case = dict[str, Any]  # a question: its memory, whether it has an answer, its article, its candidates


def gather_cases(
    memory: Memory, questions: list[tuple[int, QuestionExample]], memory_name: str, has_answer: bool
) -> list[Case]:
    """Gather the reader's candidate answers to each question, with their scores."""
    cases = []
    for article, question in questions:
        offers = gather_offers(memory, question)
        cases.append({"of": memory_name, "there": has_answer, "article": article, "offers": offers})
    print(f"gathered: {memory_name}, {'with' if has_answer else 'without'} an answer, {len(cases)}", flush=True)
    return cases


def gather_offers(memory: Memory, question: QuestionExample) -> list[dict[str, Any]]:
    """Gather the reader's candidate answers to a question, with their features and F1."""
    options = AskOptions()
    hops, sentences = retrieve_in_hops(memory.store, memory.embedder, question.question, options, rank_last_hop=False)
    retrieved = read_memory(memory.store, memory.reader, question.question, hops, sentences, options)
    offers = []
    for candidate, features in find_candidates(question.question, retrieved.read):
        text, metrics = candidate.text, {"exact": 0.0, "f1": 0.0}
        if question.answers:
            metrics = {"exact": exact_match(text, question.answers), "f1": answer_f1(text, question.answers)}
        offers.append(features._asdict() | metrics | {"text": normalize_answer(text)})
    return offers


def gather_all_cases(path: Path, squad: Squad, num_questions: int) -> Iterator[Case]:
    """Gather the cases of all memories."""
    questions = [
        (article_number, question)
        for article_number, article in enumerate(squad.splits["held"])
        for question in article
    ]
    sampled = random.Random(0).sample(questions, min(num_questions, len(questions)))
    with Memory(path) as memory:
        squad_memory.fill_memory(memory, squad)
        files = sorted(squad_memory.article_folder_of(memory).glob("held-*.jsonl"))
        model = memory.store.get_model()
        yield from gather_cases(memory, sampled, "large", True)
    with squad_memory.copy_without_split(path, "held") as memory:
        yield from gather_cases(memory, sampled, "large", False)
    small = path.with_name(f"{path.stem}-small.db")
    with Memory(small, embedder=model.name if model else None) as memory:
        memory.remember(*files[::2])
        for parity in (0, 1):
            half = [pair for pair in sampled if pair[0] % 2 == parity]
            yield from gather_cases(memory, half, "small", parity == 0)


def make_tensors(cases: list[Case]) -> tuple[Tensor, Tensor, Tensor]:
    """Make tensors of features (q o f), their mask and right candidates (q o)."""
    max_offers = max(len(case["offers"]) for case in cases)
    features = torch.zeros(len(cases), max_offers, len(SpanFeatures._fields), dtype=torch.float64)
    mask, is_right = (torch.zeros(len(cases), max_offers, dtype=torch.bool) for _ in range(2))
    for row, case in enumerate(cases):
        for column, offer in enumerate(case["offers"]):
            features[row, column] = torch.tensor([offer[name] for name in SpanFeatures._fields])
            mask[row, column] = True
            is_right[row, column] = case["there"] and offer["f1"] >= MIN_RIGHT_F1
    return features, mask, is_right


def fit_confidence(cases: list[Case], fixed: Mapping[str, float] = NOTHING_FIXED) -> ConfidenceModel:
    """Fit the weights of the confidence model by maximum likelihood, but for ``fixed`` ones."""
    features, mask, is_right = make_tensors(cases)
    free = torch.tensor([name not in fixed for name in ConfidenceModel._fields], dtype=torch.float64)
    values = torch.tensor([fixed.get(name, 0.0) for name in ConfidenceModel._fields], dtype=torch.float64)
    weights = torch.zeros(len(SpanFeatures._fields) + 1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=MAX_ITERATIONS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        """Compute the negative log-likelihood and its gradient."""
        optimizer.zero_grad()
        all_weights = weights * free + values
        logits = (features @ all_weights[:-1] + all_weights[-1]).masked_fill(~mask, -torch.inf)  # q o
        log_probabilities = torch.cat([logits, torch.zeros(len(cases), 1, dtype=torch.float64)], 1).log_softmax(1)
        no_answer = ~is_right.any(1, keepdim=True)
        is_target = torch.cat([is_right, no_answer], 1)
        total = -log_probabilities.masked_fill(~is_target, -torch.inf).logsumexp(1).mean()
        total.backward()
        return total

    optimizer.step(loss)
    return ConfidenceModel(*(weights * free + values).tolist())


def choose_answer(model: ConfidenceModel, case: Case) -> JudgedAnswer:
    """Choose the answer with the highest confidence, summed over equal texts."""
    offers = case["offers"]
    probabilities = model.predict_probabilities(
        [SpanFeatures(**{name: offer[name] for name in SpanFeatures._fields}) for offer in offers]
    )
    sums: dict[str, float] = {}
    for offer, probability in zip(offers, probabilities):
        sums[offer["text"]] = sums.get(offer["text"], 0.0) + probability
    if not sums:
        return JudgedAnswer(0.0, 0.0, 0.0, 0, False, 0.0)
    best_text = max(sums, key=lambda text: sums[text])
    best_offer = next(offer for offer in offers if offer["text"] == best_text)
    return JudgedAnswer(sums[best_text], best_offer["exact"], best_offer["f1"], 0, False, 0.0)


def judge_cases(
    cases: list[Case], key: str = "article", fixed: Mapping[str, float] = NOTHING_FIXED
) -> list[tuple[Case, JudgedAnswer]]:
    """Choose the answer to each case with weights fitted on other articles, or texts."""
    halves = [[case for case in cases if case[key] // 2 % 2 == parity] for parity in (0, 1)]
    return [
        (case, choose_answer(model, case))
        for model, held_out_cases in (
            (fit_confidence(halves[1], fixed), halves[0]),
            (fit_confidence(halves[0], fixed), halves[1]),
        )
        for case in held_out_cases
    ]


def compute_answer_share(
    judged_cases: list[tuple[Case, JudgedAnswer]], min_confidence: float, memory_name: str, has_answer: bool
) -> float:
    """Compute the share of one kind of questions that get an answer."""
    is_answered = [
        answer.confidence >= min_confidence
        for case, answer in judged_cases
        if (case["of"], case["there"]) == (memory_name, has_answer)
    ]
    return sum(is_answered) / max(len(is_answered), 1)


def main() -> None:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("squad", type=Path)
    parser.add_argument("--memory", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=800)
    parser.add_argument("--wrong", type=float, default=0.1)
    parser.add_argument("--kept", type=Path, default=None)
    args = parser.parse_args()
    if args.kept is not None and args.kept.exists():
        lines = args.kept.read_text(encoding="utf-8").splitlines()
        cases = [json.loads(line) for line in lines]
    else:
        squad = squad_memory.read_squad(args.squad)
        cases = list(gather_all_cases(args.memory, squad, args.questions))
        if args.kept is not None:
            case_lines = "".join(json.dumps(case) + "\n" for case in cases)
            args.kept.write_text(case_lines, encoding="utf-8")
    print(fit_confidence(cases))
    judged_cases = judge_cases(cases)
    answerable, forgotten = (
        [answer for case, answer in judged_cases if case["there"] == has_answer] for has_answer in (True, False)
    )
    for row in compute_calibration(answerable, forgotten):
        print(json.dumps(row))
    sufficient = [
        confidence
        for confidence in CONFIDENCES
        if max(compute_answer_share(judged_cases, confidence, memory_name, False) for memory_name in ("large", "small"))
        <= args.wrong
    ]
    min_confidence = min(sufficient)
    print(f"least confidence {min_confidence}")
    for memory_name in ("large", "small"):
        is_right = [
            answer.is_right
            for case, answer in judged_cases
            if case["there"] and case["of"] == memory_name and answer.confidence >= min_confidence
        ]
        print(
            f"{memory_name}: "
            f"{compute_answer_share(judged_cases, min_confidence, memory_name, True):.3f} "
            f"of those with an answer get one, "
            f"{sum(is_right) / max(len(is_right), 1):.3f} of it right; "
            f"{compute_answer_share(judged_cases, min_confidence, memory_name, False):.3f} of those without one"
        )


if __name__ == "__main__":
    main()
