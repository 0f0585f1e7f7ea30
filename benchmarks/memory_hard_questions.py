"""Ask a memory of all SQuAD paragraphs what looks answerable, and is or is not.

    python benchmarks/memory_hard_questions.py DATA --memory squad.db [--questions 400]

DATA has ``squad`` and ``qa``; the memory is that of memory_answers.py, and is made if it is not
there. The questions are those of ``reader_domains.py``'s set ``hard``: of articles that training
did not see, as many with an answer as without. Printed are the shares that get an answer at the
default confidence, with Wilson intervals, and how many of these are right (F1 of at least 1/2).
"""

import argparse
import json
import random
from pathlib import Path

import squad_memory
from memory_answers import MIN_RIGHT_F1
from reader_domains import read_evaluation_sets

from mnemic import Memory
from mnemic.evaluate.intervals import wilson_interval
from mnemic.evaluate.metrics import answer_f1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--memory", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=400)
    args = parser.parse_args()
    hard = read_evaluation_sets("reader-12", [], str(args.data), 0)["hard"]
    questions = random.Random(0).sample(hard, min(args.questions, len(hard)))
    with Memory(args.memory) as memory:
        squad_memory.fill_memory(memory, squad_memory.read_squad(args.data / "squad"))
        answers = [(question, memory.ask(question.question)) for question in questions]
    for has_answer in (True, False):
        rows = [(question, answer) for question, answer in answers if bool(question.answers) == has_answer]
        texts = [(question, answer.text) for question, answer in rows if answer.has_answer]
        is_right = [answer_f1(text, question.answers) >= MIN_RIGHT_F1 for question, text in texts if question.answers]
        share = len(texts) / len(rows)
        percentages = [round(100 * value, 1) for value in (share, *wilson_interval(share, len(rows)))]
        report = {"has an answer": has_answer, "questions": len(rows), "answered, low, high": percentages}
        print(json.dumps(report | {"right": sum(is_right)}))


if __name__ == "__main__":
    main()
