"""F1, exact match and "no answer" of each domain, by hand and through the command line."""

from pathlib import Path

import pytest
import text_files
from app_runs import run
from recipe_runs import train

from mnemic.data.text_tasks.encode_windows import encode_questions
from mnemic.data.text_tasks.examples import QuestionExample
from mnemic.evaluate.answer_thresholds import compare_spans, summarize_domains
from mnemic.evaluate.share_counts import count_domains
from mnemic.respond.merge_windows import TokenSpan
from mnemic.text import TOKENIZERS, WindowOptions

TEXT = "Ann has a cat and Bob has a dog"


def example(answers: tuple[str, ...], domain: str, needs_all: bool = False) -> QuestionExample:
    starts = tuple(TEXT.index(answer) for answer in answers)
    first = starts[0] if starts else -1
    return QuestionExample("who ?", TEXT, answers, first, "1", "", domain, needs_all, starts)


def test_each_domain_by_hand() -> None:
    rows = [
        (example(("cat",), "pets"), 3, 3, 0.2),  # right
        (example(("dog",), "pets"), 7, 8, 0.6),  # "a dog": articles do not count
        (example((), "pets"), 0, 0, 0.4),  # of two answerable questions one is below
        (example(("Ann", "Bob"), "people", True), 0, 5, 0.1),  # 2 of 6 words, articles aside
        (example((), ""), 0, 0, 0.9),  # a text of no domain
    ]
    tokenizer = TOKENIZERS["words"]([TEXT, "who ?"])
    dataset = encode_questions([row[0] for row in rows], tokenizer, WindowOptions(40, 4, "windows"))
    spans = [TokenSpan(0, first, last, 0.0, 0.0, empty, 0.0) for _, first, last, empty in rows]
    metrics = summarize_domains(compare_spans(dataset, spans))
    counts = count_domains(compare_spans(dataset, spans))
    assert counts == {"f1, people": 1, "exact, people": 1, "f1, pets": 2, "exact, pets": 2}
    assert counts.keys() <= metrics.keys()
    assert metrics == {
        "f1, people": pytest.approx(2 * (2 / 5) * 1 / (2 / 5 + 1)),  # "Ann has cat and Bob"
        "exact, people": 0,
        "f1, pets": 1,
        "exact, pets": 1,
        "no answer AUROC, pets": 0.5,
    }
    one_domain = encode_questions([row[0] for row in rows[:3]], tokenizer, WindowOptions(40, 4, "windows"))
    assert summarize_domains(compare_spans(one_domain, spans[:3])) == {}


@pytest.mark.parametrize("kind", ["questions", "question-articles", "generated-documents"])
def test_domains_are_in_the_log_and_in_evaluate(tmp_path: Path, kind: str) -> None:
    text_files.question_articles(tmp_path / "data", 40)
    recipe = {
        "data": {"kind": kind, "tokenizer": {"kind": "wordpiece", "vocab": 300}, "length": 128, "overlap": 32},
        "objective": {"kind": "retrieve-and-read" if kind == "question-articles" else "spans"},
        "model": {
            "width": 16,
            "encode": {"kind": "transformer", "stack": {"kind": "encoder", "depth": 1}, "embeddings": {"segments": 2}},
            "respond": {"kind": "spans"},
        },
        "train": {"validate": 1},
    }
    if kind == "generated-documents":
        recipe["data"] |= {"count": 40}
        domains = ["generated card", "generated dialogue", "generated list", "generated table"]
    else:
        sources = [{"path": "train.jsonl"}, {"path": "train.json", "domain": "plain"}]
        recipe["data"] |= {"folder": str(tmp_path / "data"), "sources": sources}
        domains = ["people", "plain"]
    if kind == "question-articles":
        recipe["data"] |= {"articles": 2, "passages": 2}
    folder = train(tmp_path, recipe)
    report = run("evaluate", folder, "--split", "validation", "--json").json
    assert {f"f1, {domain}" for domain in domains} <= report["intervals"].keys()
    log = (folder / "log.tsv").read_text()
    assert all(f"f1, {domain}" in log for domain in domains)
