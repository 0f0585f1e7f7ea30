"""Generated documents: where answers are, splits apart, and what relative times mean."""

import re
from datetime import date
from typing import get_args

import pytest

from mnemic.data.contract import Split
from mnemic.data.documents import pools
from mnemic.data.documents.generate import DOCUMENT_TYPES, generate_documents
from mnemic.data.documents.times import list_future_times, list_past_times
from mnemic.data.documents.writer import GeneratedDocument
from mnemic.text.documents.passages import split_passages
from mnemic.text.documents.piece import Anchor, DocumentPiece

SPLITS: tuple[Split, ...] = get_args(Split)


@pytest.fixture(scope="module")
def documents() -> dict[str, list[GeneratedDocument]]:
    return {split: generate_documents(split, 400) for split in SPLITS}


def test_documents_depend_on_split_seed_and_number_alone() -> None:
    assert generate_documents("test", 8)[:4] == generate_documents("test", 4)
    assert generate_documents("test", 8, seed=1) != generate_documents("test", 8)


def test_answers_are_single_values_in_the_text(documents: dict[str, list[GeneratedDocument]]) -> None:
    for document in documents["train"]:
        for question in document.questions:
            answers = [document.text[start:end] for start, end in question.spans]
            assert all(answers), question
            assert not any("{" in text for text in (question.question, document.text))
            assert len(set(question.spans)) == len(question.spans) <= 5
    sizes = {len(question.spans) for document in documents["train"] for question in document.questions}
    assert sizes == {0, 1, 2, 3, 4, 5}


@pytest.mark.parametrize("form", DOCUMENT_TYPES)
def test_every_form_has_questions_with_and_without_an_answer(
    form: str, documents: dict[str, list[GeneratedDocument]]
) -> None:
    questions = [
        question for document in documents["train"] if document.form == form for question in document.questions
    ]
    share = sum(not question.spans for question in questions) / len(questions)
    assert 0.15 < share < 0.5
    assert form in ("card", "fact") or any(len(question.spans) > 1 for question in questions)


def test_splits_share_no_questions_names_or_cities(documents: dict[str, list[GeneratedDocument]]) -> None:
    names = [*pools.FIRST_NAMES, *pools.CITIES]
    texts = {
        split: "\n".join(text for d in documents[split] for text in (d.text, *(q.question for q in d.questions)))
        for split in SPLITS
    }
    for number, split in enumerate(SPLITS):
        for other_split in SPLITS[number + 1 :]:
            questions = [{q.question for d in documents[s] for q in d.questions} for s in (split, other_split)]
            assert not questions[0] & questions[1]
            found_names = [{n for n in names if re.search(rf"\b{n}\b", texts[s])} for s in (split, other_split)]
            assert len(found_names[0]) > 20
            assert not found_names[0] & found_names[1]


def test_an_unanswerable_question_of_a_card_asks_for_what_is_absent() -> None:
    """No question without an answer is asked with one in the same document."""
    for document in generate_documents("train", 200):
        answerable = {question.question for question in document.questions if question.spans}
        unanswerable = {question.question for question in document.questions if not question.spans}
        assert not answerable & unanswerable


def test_stops_are_those_that_a_memory_adds() -> None:
    """A document with line breaks, marked by a memory, is the same document with stops."""
    num_marked = 0
    for document in generate_documents("train", 100, forms=["card", "table"]):
        if "\n" not in document.text:
            continue
        passages = list(
            split_passages(
                [DocumentPiece(document.text, (Anchor(0, 0, 1),))], lambda texts: [len(t) // 4 for t in texts], 10**6
            )
        )
        assert len(passages) == 1
        lines = [line if line[-1] in ".!?:;,…" else f"{line}." for line in document.text.split("\n")[:-1]]
        assert passages[0].mark_units().replace("\n", "") == "".join([*lines, document.text.split("\n")[-1]])
        num_marked += 1
    assert num_marked > 20


def test_relative_times_by_hand() -> None:
    day = date(2023, 5, 8)  # a Monday
    past, future = dict(list_past_times(day)), dict(list_future_times(day))
    assert past["yesterday"] == "2023-05-07"
    assert past["last weekend"] == "2023-05-06/2023-05-07"
    assert past["last week"] == "2023-05-01/2023-05-07"
    assert past["last Friday"] == "2023-05-05"
    assert past["last month"] == "2023-04"
    assert past["two weeks ago"] == "2023-04-24"
    assert future["next Monday"] == "2023-05-15"
    assert future["this Friday"] == "2023-05-12"
    assert "next Friday" not in future  # the 12th or the 19th
    assert dict(list_past_times(date(2024, 1, 3)))["last month"] == "2023-12"
    assert "last Tuesday" not in dict(list_past_times(date(2024, 1, 3)))  # a Wednesday: yesterday, or of last week
