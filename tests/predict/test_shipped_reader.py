"""The reader that comes with the package finds texts, answers from them, and declines."""

from functools import cache

import pytest

import mnemic
from mnemic.checkpoint import shipped
from mnemic.predict.model import Model

# Written for this test: no text and no question of SQuAD.
PASSAGES = (
    "The lighthouse on Skarn Island was finished in 1874 by the engineer Ada Lindqvist. It stands "
    "forty metres tall and was lit by whale oil until 1902, when an electric lamp took over.",
    "Otters of the Veldra river feed on crayfish in summer and on trout in winter. A grown otter "
    "eats about one and a half kilograms a day 🦦, and sleeps in dens called holts.",
    "The village of Brem holds its cheese fair on the first Sunday of October. Visitors come by "
    "the mountain railway, which the valley's farmers paid for themselves.",
)
ASKED = (
    ("Who built the lighthouse on Skarn Island?", 0, "Ada Lindqvist"),
    ("When did an electric lamp replace whale oil?", 0, "1902"),
    ("What do Veldra otters eat in winter?", 1, "trout"),
    ("What are the dens of otters called?", 1, "holts"),
    ("When does the cheese fair take place in Brem?", 2, "Sunday of October"),
    ("Who paid for the mountain railway?", 2, "farmers"),
)


@cache
def reader() -> Model:
    return mnemic.load("reader")


@pytest.mark.parametrize(("question", "index", "answer"), ASKED)
def test_it_quotes_the_answer(question: str, index: int, answer: str) -> None:
    answer_span = reader().answer(question, PASSAGES[index])
    assert answer_span.has_answer
    assert answer in answer_span.quote(PASSAGES[index])
    assert answer_span.end - answer_span.start <= len(answer) + len("the valley's ")
    assert answer_span.seen == answer_span.total


def test_it_declines_where_there_is_no_answer() -> None:
    wrong = [
        reader().answer(question, passage)
        for question, index, _ in ASKED
        for number, passage in enumerate(PASSAGES)
        if number != index
    ]
    assert sum(answer.has_answer for answer in wrong) <= 1


def test_a_question_is_nearest_to_the_passage_that_answers_it() -> None:
    texts, questions = (
        reader().embed(texts_to_embed).vectors for texts_to_embed in (PASSAGES, [question for question, *_ in ASKED])
    )
    assert (questions @ texts.mT).argmax(1).tolist() == [index for _, index, _ in ASKED]


def test_its_card_says_how_it_does() -> None:
    card = shipped.read_card("reader")
    assert card["precision"] == "int8"
    assert card["texts"] >= 10_570  # every question of dev, with its text
    figures = card["figures"]
    assert figures["exact"] >= 79
    assert figures["f1"] >= 88
    assert figures["hard: AUROC"] >= 85  # of questions that look answerable


def test_a_long_text_is_read_to_its_end() -> None:
    long = " ".join([PASSAGES[1]] * 12 + [PASSAGES[2]])
    answer = reader().answer(ASKED[4][0], long)
    assert long[answer.start : answer.end] in long[-len(PASSAGES[2]) :]
    assert ASKED[4][2] in answer.quote(long)
    assert answer.seen == answer.total > 384
