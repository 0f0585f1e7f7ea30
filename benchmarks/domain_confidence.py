"""Measure the confidence of a memory's answers in many domains, and fit its weights to all.

    python benchmarks/domain_confidence.py DATA --out out/confidence [--questions 150]
        [--domains wikipedia biomedical …] [--reader DIR] [--embedder DIR] [--recipe reader-12]
        [--shard 0 3] [--device cuda] [--fix word_overlap=1 answer_log_odds=0.6]

DATA has ``squad`` and ``qa``. Of each domain some texts are drawn, the same in every run, of those
that the recipe's ``data.sources`` hold out, so that its reader has not learned from them; and some
of those that have hard questions (``hard``: SQuAD's articles with answerable and unanswerable
ones). Two memories are made, one of every other text of all domains, one of the rest; every
question is asked of both. So half of the questions have no answer there, and more where a domain
has questions without an answer.

Three confidences are compared, all on texts that were not used to fit them: the shipped weights,
weights fitted to the first half of the texts of all domains and tested on the second, and the
reverse. For each domain: the share of answerable questions that get an answer at the default
threshold, the share of those answers that are right (F1 of at least one half), the share of other
questions that get one, the share of right ones among answers of 0.8 or more, and the expected
calibration error over ten bins of equal width. --fix sets some weights instead of fitting them.

The answers are kept in --out: a second run only fits and prints. --shard K N only asks every N-th
question from the K-th on (--shard 0 0: none, the memories are made), so that several processes can
share the work; the run without it joins what they wrote.
"""

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from fit_confidence import choose_answer, fit_confidence, gather_offers, judge_cases
from memory_answers import JudgedAnswer
from memory_device import open_memory
from reader_domains import read_evaluation_sets

from mnemic import Memory
from mnemic.checkpoint.shipped import EMBEDDERS, READERS
from mnemic.data.text_tasks.examples import QuestionExample
from mnemic.evaluate.intervals import wilson_interval
from mnemic.store.answer.confidence import FITTED, MIN_CONFIDENCE, ConfidenceModel

NUM_BINS, SURE = 10, 0.8
Case = dict[str, Any]


class DomainQuestion(NamedTuple):
    """A question of a domain, with the number of its text."""

    domain: str
    text_number: int
    example: QuestionExample


def hash_text(text: str) -> int:
    """Return a number that depends on a text alone."""
    return int.from_bytes(sha256(text.encode()).digest()[:8])


def draw_questions(examples: Sequence[QuestionExample], num_questions: int, max_texts: int) -> list[QuestionExample]:
    """Draw questions about some texts of a domain."""
    by_text = defaultdict(list)
    for example in examples:
        by_text[example.text].append(example)
    texts = sorted(by_text, key=hash_text)[:max_texts]
    questions = [example for text in texts for example in by_text[text]]
    return random.Random(0).sample(questions, min(num_questions, len(questions)))


def read_domains(args: argparse.Namespace) -> dict[str, list[QuestionExample]]:
    """Read the held-out questions by domain, and the hard ones."""
    sets = read_evaluation_sets(args.recipe, [], str(args.data), 0)
    domains: dict[str, list[QuestionExample]] = defaultdict(list, hard=sets["hard"])
    for example in sets["validation"]:
        domains[example.domain].append(example)
    return {name: domains[name] for name in args.domains or domains}


def gather_domain_cases(args: argparse.Namespace) -> Iterator[Case]:
    """Ask questions of both memories; yield the reader's candidates with their features."""
    questions: list[DomainQuestion] = []
    numbers: dict[str, int] = {}
    for domain, examples in sorted(read_domains(args).items()):
        for example in draw_questions(examples, args.questions, args.texts):
            number = numbers.setdefault(example.text, len(numbers))
            questions.append(DomainQuestion(domain, number, example))
    first, step = args.shard
    questions = questions[first::step] if step else []
    for parity in (0, 1):
        path = args.out / f"memory-{parity}.db"
        is_new = not path.exists()
        with open_memory(path, args.device, reader=args.reader, embedder=args.embedder) as memory:
            if is_new:
                texts = {number: text for text, number in numbers.items() if number % 2 == parity}
                remember_texts(memory, texts, args.out / f"texts-{parity}")
            for count, (domain, number, example) in enumerate(questions):
                if count % 100 == 0:
                    print(f"memory {parity}: {count} of {len(questions)}", flush=True)
                has_answer = number % 2 == parity and bool(example.answers)
                yield {"domain": domain, "text": number, "there": has_answer, "offers": gather_offers(memory, example)}


def remember_texts(memory: Memory, texts: Mapping[int, str], folder: Path) -> None:
    """Remember texts from files of their numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, text in texts.items():
        (folder / f"{number:05}.txt").write_text(text, encoding="utf-8")
    print(Counter(step.outcome for step in memory.remember(folder)), flush=True)


def read_cases(args: argparse.Namespace) -> list[Case]:
    """Read the cases of a run before, or of its shards; gather them if there are none."""
    is_shard = args.shard != [0, 1]
    path = args.out / (f"cases-{args.shard[0]}-of-{args.shard[1]}.jsonl" if is_shard else "cases.jsonl")
    paths = [path] if is_shard or path.exists() else sorted(args.out.glob("cases-*.jsonl")) or [path]
    if not paths[0].exists():
        with path.with_suffix(".new").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(case) + "\n" for case in gather_domain_cases(args))
        path.with_suffix(".new").rename(path)
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


def calibration_error(answers: Sequence[tuple[float, bool]]) -> float:
    """Compute the expected calibration error of confidences (Guo et al. 2017, equation 3)."""
    gaps = [0.0] * NUM_BINS
    for confidence, is_right in answers:
        gaps[min(int(confidence * NUM_BINS), NUM_BINS - 1)] += confidence - is_right
    return sum(map(abs, gaps)) / max(len(answers), 1)


def summarize_domain(answers: Sequence[tuple[Case, JudgedAnswer]], threshold: float) -> dict[str, Any]:
    """Summarize the answers to the questions of a domain, in percent."""
    is_right = [case["there"] and answer.is_right for case, answer in answers]
    pairs = [(answer.confidence, right) for (_, answer), right in zip(answers, is_right)]
    share: Callable[[list[bool]], float] = lambda flags: round(100 * sum(flags) / len(flags), 1) if flags else -1.0  # noqa: E731
    sure = [right for confidence, right in pairs if confidence >= SURE]
    low, high = wilson_interval(sum(sure) / len(sure), len(sure)) if sure else (0.0, 1.0)
    return {
        "questions": len(answers),
        "answered": share([answer.confidence >= threshold for case, answer in answers if case["there"]]),
        "right of these": share([right for confidence, right in pairs if confidence >= threshold]),
        "false answers": share([answer.confidence >= threshold for case, answer in answers if not case["there"]]),
        "sure": len(sure),
        "right if sure": share(sure),
        "interval": [round(100 * low, 1), round(100 * high, 1)],
        "calibration error": round(100 * calibration_error(pairs), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=150, help="of each domain")
    parser.add_argument("--texts", type=int, default=60, help="of each domain")
    parser.add_argument("--reader", default=READERS[0], help="the folder of another reader")
    parser.add_argument("--embedder", default=EMBEDDERS[0], help="the folder of another embedder")
    parser.add_argument("--domains", nargs="+", help="only these; questions of others may need their text")
    parser.add_argument("--recipe", default="reader-12", help="whose data.sources say what is held out")
    parser.add_argument("--shard", type=int, nargs=2, default=[0, 1], metavar=("K", "N"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--fix", nargs="+", default=[], metavar="NAME=WEIGHT", help="weights that are not fitted")
    parser.add_argument("--threshold", type=float, default=MIN_CONFIDENCE)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    cases = read_cases(args)
    if args.shard != [0, 1]:
        return
    fixed = {name: float(value) for name, _, value in (text.partition("=") for text in args.fix)}
    fitted: ConfidenceModel = fit_confidence(cases, fixed)
    print(f"weights fitted to all: {fitted}")
    by_shipped = [(case, choose_answer(FITTED, case)) for case in cases]
    for name, answers in (("shipped", by_shipped), ("fitted to the other half", judge_cases(cases, "text", fixed))):
        print(f"\nconfidence: {name}")
        for domain in [*sorted({case["domain"] for case in cases}), ""]:
            rows = [(case, answer) for case, answer in answers if domain in ("", case["domain"])]
            print(json.dumps({"domain": domain or "all"} | summarize_domain(rows, args.threshold)), flush=True)


if __name__ == "__main__":
    main()
