"""Questions from several files: reading, groups, splits, weights and forms."""

import gzip
import json
import lzma
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from text_files import write

from mnemic.data import DATASETS
from mnemic.data.groups import number_groups
from mnemic.data.text_tasks.augment_questions import Augmentation, augment_questions
from mnemic.data.text_tasks.examples import QuestionExample, TextError
from mnemic.data.text_tasks.question_lines import read_question_lines
from mnemic.data.text_tasks.question_sources import select_hard_pairs
from mnemic.data.text_tasks.retrieval_batches import RetrievalDataset
from mnemic.recipe import ConfigError, build
from mnemic.train.sampler import BatchSampler

TEXT = "Ann lives in Oslo. Bob lives in Rome."


def record(number: int, **changes: Any) -> dict[str, Any]:
    """Make a record with a text of its own."""
    city = ["Oslo", "Rome", "Lima"][number % 3]
    text = f"Person {number} lives in {city}."
    answer = {"text": city, "answer_start": text.index(city)}
    return {"id": str(number), "question": f"Where is {number} ?", "context": text, "answers": [answer]} | changes


def write_lines(path: Path, records: list[dict[str, Any]]) -> Path:
    write(path, [json.dumps(row) for row in records])
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write three files: with titles, without, and in SQuAD's form, with texts in common."""
    write_lines(tmp_path / "titled.jsonl", [record(n, title=f"t{n // 4}", domain="chat") for n in range(40)])
    rows = [record(n) if n % 2 else record(n, answers=[], is_impossible=True) for n in range(30, 90)]
    write_lines(tmp_path / "plain_train.jsonl", rows)
    paragraphs = [
        {"context": r["context"], "qas": [{"id": f"s{r['id']}", "question": "WHERE?", "answers": r["answers"]}]}
        for r in (record(n) for n in range(80, 120))
    ]
    articles = [{"title": f"a{n}", "paragraphs": paragraphs[4 * n : 4 * n + 4]} for n in range(10)]
    write(tmp_path / "train-v1.1.json", [json.dumps({"data": articles})])
    return tmp_path


SOURCES = [{"path": "titled.jsonl"}, {"path": "*_train.jsonl", "validation": 0.25}, {"path": "train-v1.1.json"}]


def source(folder: Path, kind: str = "questions", **options: Any) -> Any:
    spec = {"sources": SOURCES, "tokenizer": {"kind": "words"}, "validation": 0.2, "length": 40, "overlap": 10}
    return build(DATASETS, {"kind": kind, "folder": str(folder), **spec, **options})


def test_lines_are_read_packed_or_not(tmp_path: Path) -> None:
    line = json.dumps({"question": "Where?", "context": TEXT, "answers": [{"text": "Rome"}]})
    content = f"\n{line}\n".encode()
    for name, data in (
        ("a.jsonl", content),
        ("a.jsonl.gz", gzip.compress(content)),
        ("a.jsonl.xz", lzma.compress(content)),
    ):
        (tmp_path / name).write_bytes(data)
        (example,) = read_question_lines(tmp_path / name)
        assert (example.answers, example.start) == (("Rome",), TEXT.index("Rome"))
        assert example.question_id == f"{tmp_path / name}, line 2"


def test_an_offset_that_is_off_finds_the_nearest_occurrence(tmp_path: Path) -> None:
    answers = [{"text": "lives", "answer_start": 20}, {"text": "Ann", "answer_start": 5}]
    path = write_lines(tmp_path / "a.jsonl", [{"question": "?", "context": TEXT, "answers": answers}])
    (example,) = read_question_lines(path)
    assert example.answer_starts == (TEXT.rindex("lives"), 0)


def test_answers_are_alternatives_or_all_required(tmp_path: Path) -> None:
    answers = [{"text": "Oslo", "answer_start": 13}, {"text": "Rome", "answer_start": 32}]
    rows = [{"question": "?", "context": TEXT, "answers": answers, **extra} for extra in ({}, {"answer_kind": "all"})]
    alternatives, everything = read_question_lines(write_lines(tmp_path / "a.jsonl", rows))
    assert alternatives.references == ("Oslo", "Rome")
    assert everything.references == ("Oslo Rome",)
    assert alternatives.split_answers() == [alternatives]
    singles = everything.split_answers()
    assert [(single.answers, single.start) for single in singles] == [(("Oslo",), 13), (("Rome",), 32)]
    assert read_question_lines(tmp_path / "a.jsonl", "all")[0].needs_all


def test_earlier_turns_come_before_the_question(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", [record(0, history=["user: hi", "agent: hello"])])
    assert read_question_lines(path)[0].question == "Where is 0 ?"
    assert read_question_lines(path, num_turns=1)[0].question == "agent: hello Where is 0 ?"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"a\.jsonl, line 1: no valid JSON"),
        ("[]", "line 1: expected an object"),
        (json.dumps(record(0, question=" ")), "line 1: 'question' is a text that is not empty"),
        (json.dumps(record(0, answers=[{"text": "Paris"}])), "line 1: the answer 'Paris' is not in its context"),
        (json.dumps(record(0, answers=["Oslo"])), 'line 1: "answers" is a list'),
        (json.dumps(record(0, answer_kind="some")), 'line 1: "answer_kind" is "any" or "all"'),
        (json.dumps(record(0, history="hi")), 'line 1: "history" is a list'),
        ("", "holds no questions"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    write(tmp_path / "a.jsonl", [line])
    with pytest.raises(TextError, match=message):
        read_question_lines(tmp_path / "a.jsonl")


def test_groups_are_connected_components() -> None:
    """Compare with merging sets until nothing changes."""
    generator = torch.Generator().manual_seed(0)
    keys = [torch.randint(30, (2,), generator=generator).tolist() for _ in range(20)]
    sets = [set(item_keys) for item_keys in keys]
    for _ in sets:
        sets = [set().union(*(other for other in sets if other & item)) for item in sets]
    numbers = number_groups(keys)
    for first in range(20):
        for second in range(20):
            assert (numbers[first] == numbers[second]) == (sets[first] == sets[second])


def test_no_text_or_title_is_in_two_splits(folder: Path) -> None:
    train, validation = (source(folder).read_split(split) for split in ("train", "validation"))
    assert len(train) + len(validation) == 40 + 60 + 40
    for keys in ("text", "title"):
        sets = [{getattr(example, keys) for example in split} - {""} for split in (train, validation)]
        assert all(sets)
        assert not sets[0] & sets[1]


def test_the_split_is_by_hash_and_by_share(folder: Path) -> None:
    """Other options, or another order of lines, hold out the same articles."""
    held_out = {example.title for example in source(folder).read_split("validation") if example.title.startswith("t")}
    assert len(held_out) == 2  # a fifth of ten
    lines = (folder / "titled.jsonl").read_text().splitlines()
    write(folder / "titled.jsonl", lines[::-1])
    again = source(folder, normalize=True, seed=3).read_split("validation")
    assert {example.title for example in again if example.title.startswith("t")} == held_out


def test_a_file_for_validation_or_test_is_there_as_a_whole(folder: Path) -> None:
    sources = [SOURCES[0], {"path": "train-v1.1.json", "split": "test"}, {"path": "plain_train.jsonl", "validation": 0}]
    files = source(folder, sources=sources)
    counts = {split: Counter(e.domain for e in files.read_split(split)) for split in ("train", "validation", "test")}
    assert counts["test"]["train-v1"] == 40
    assert counts["test"]["plain_train"] == 10  # of texts that the test file has, too
    assert counts["train"]["plain_train"] + counts["validation"]["plain_train"] == 50


def test_domains_questions_and_documents_of_sources(folder: Path) -> None:
    sources = [
        {"path": "titled.jsonl", "max_questions": 7, "validation": 0},
        {"path": "plain_train.jsonl", "domain": "mine", "validation": 0},
        {"documents": 8},
    ]
    files = source(folder, sources=sources, normalize=True)
    domains = Counter(example.domain for example in files.read_split("train"))
    assert domains["chat"] == 7
    assert domains["mine"] == 60
    assert {f"generated {form}" for form in ("dialogue", "list", "card", "table", "fact")} < set(domains)
    assert not files.read_split("validation")
    assert all(example.question == example.question.lower() for example in files.read_split("train"))


def test_an_article_has_texts_of_one_file(folder: Path) -> None:
    articles = source(folder, "question-articles", texts_per_article=4).articles_by_split["train"]
    sizes = [len({example.text for example in article.examples}) for article in articles]
    assert sum(size < 4 for size in sizes) <= len(SOURCES)
    assert all(len({example.domain for example in article.examples}) == 1 for article in articles)


def test_hard_pairs_are_of_the_same_texts() -> None:
    examples = [
        QuestionExample(f"q{n}", f"text {n // 5}", ("text",) if n % 5 < n // 5 else (), -(n % 5 >= n // 5), str(n))
        for n in range(25)
    ]
    pairs = select_hard_pairs(examples)
    counts = Counter((example.text, bool(example.answers)) for example in pairs)
    assert counts == {(f"text {n}", answerable): min(n, 5 - n) for n in (1, 2, 3, 4) for answerable in (True, False)}


@pytest.mark.parametrize("kind", ["questions", "question-articles"])
def test_an_epoch_has_each_question_by_its_weight(folder: Path, kind: str) -> None:
    sources = [{**spec, "weight": weight} for spec, weight in zip(SOURCES, (2.0, 0.5, 1.25))]
    train = source(folder, kind, sources=sources).load().train
    unweighted = source(folder, kind).load().train
    assert unweighted.weights is None
    assert len(train.weights) == len(train) == len(unweighted)
    rows = [torch.arange(len(train))]
    sampler = BatchSampler(pools=rows, seeds=[0], batch_size=1, weights=train.weights)
    epochs = [sampler.draw_epoch(epoch)[0].flatten().bincount(minlength=len(train)) for epoch in range(3)]
    for weight in (2.0, 0.5, 1.25):
        of_source = train.weights == weight
        for counts in epochs:
            assert int(counts[of_source].sum()) == round(weight * int(of_source.sum()))
            assert set(counts[of_source].tolist()) <= {int(weight), int(weight) + (weight % 1 > 0)}
    assert not torch.equal(epochs[0], epochs[1])
    assert torch.equal(epochs[1], sampler.draw_epoch(1)[0].flatten().bincount(minlength=len(train)))


def test_weights_hold_in_every_bucket() -> None:
    lengths, weights = torch.tensor([10] * 8 + [20] * 8), torch.tensor([3.0] * 4 + [1.0] * 12)
    sampler = BatchSampler(
        pools=[torch.arange(16)], seeds=[0], batch_size=4, lengths=lengths, num_buckets=2, weights=weights
    )
    rows, _, _ = sampler.draw_epoch(0)
    assert rows.flatten().bincount().tolist() == [3] * 4 + [1] * 12


def test_unanswerable_questions_are_read_with_their_text(folder: Path) -> None:
    """Whatever is drawn, their window has their own text and no answer."""
    train: RetrievalDataset = source(folder, "question-articles").load().train
    rows = (train.answer_tokens[:, 0] < 0).nonzero().flatten()
    uniforms = torch.zeros(len(rows), 4, dtype=torch.float64)
    windows, targets = train.draw_reading_windows(rows, uniforms)
    assert len(rows) > 10
    assert torch.equal(windows.second, train.text_spans[train.text_of_question[rows]])
    assert not targets.any()
    others = (train.answer_tokens[:, 0] >= 0).nonzero().flatten()
    windows, _ = train.draw_reading_windows(others, uniforms[:1].expand(len(others), 4))
    assert (windows.second[:, 0] != train.text_spans[train.text_of_question[others], 0]).all()


def test_questions_that_need_their_text_search_for_none(folder: Path) -> None:
    sources = [{**SOURCES[0], "standalone": False}, SOURCES[1], {**SOURCES[2], "standalone": False}]
    files = source(folder, "question-articles", sources=sources)
    data = files.load()
    train: RetrievalDataset = data.train
    assert train.is_standalone is not None
    dependent = (~train.is_standalone).nonzero().flatten()
    windows, _ = train.draw_reading_windows(dependent, torch.zeros(len(dependent), 4, dtype=torch.float64))
    assert torch.equal(windows.second[:, 0], train.text_spans[train.text_of_question[dependent], 0])
    mixed = torch.cat([dependent[:5], train.is_standalone.nonzero().flatten()[:2]])
    assert train.select_searches(mixed, 4).tolist() == [*mixed[5:], *mixed[5:]]
    assert train.select_searches(dependent[:5], 4).tolist() == dependent[:4].tolist()
    validation = data.validation
    num_searches = sum(e.domain == "plain_train" for e in files.read_split("validation") for e in e)
    assert len(validation.retrieval.questions) == num_searches
    wrong = validation.examples[sum(map(len, files.read_split("validation"))) :]
    assert {example.domain for example in wrong} == {""}


def test_augmentation_depends_on_seed_and_question_alone() -> None:
    rows = [
        QuestionExample(f"When does contract {n} with Northwind end?", TEXT, ("Ann",), 0, str(n)) for n in range(400)
    ]
    shares = Augmentation(lower=0.2, unmarked=0.3, keywords=0.1)
    changed = augment_questions(rows, shares, 0)
    assert changed == augment_questions(rows[:200], shares, 0) + augment_questions(rows[200:], shares, 0)
    assert changed != augment_questions(rows, shares, 1)
    kinds = Counter(re.sub(r"\d+", "N", example.question) for example in changed)
    assert abs(kinds["when does contract N with northwind end?"] - 80) < 25
    assert abs(kinds["When does contract N with Northwind end"] - 120) < 25
    assert abs(kinds["contract N Northwind end"] - 40) < 20
    assert augment_questions(rows, Augmentation(), 0) == rows


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sources": []}, "data.sources lists files"),
        ({"sources": [{"path": "titled.jsonl", "weight": 0}]}, "the weight of titled.jsonl is above 0"),
        ({"sources": [{}]}, "has a path, or a number"),
        ({"sources": [{"path": "missing*"}]}, r"no file 'missing\*' of data.sources in .*plain_train"),
        ({"sources": [{"path": "titled.jsonl", "split": "test"}]}, "no file of data.sources is for training"),
        ({"sources": [{"path": "titled.jsonl", "wieght": 1}]}, "weight"),
        ({"augment": {"lower": 0.8, "keywords": 0.4}}, "add up to at most 1"),
        ({"train_file": "x"}, "data.sources names the files"),
    ],
)
def test_mistakes_in_sources_are_told(folder: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, TextError), match=message):
        source(folder, **options).load()
