"""Questions for several things get their items, each with its own place."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from app_runs import run

from mnemic.store import Answer, AnswerSpan, Memory
from mnemic.store.answer.asks_several import asks_several
from mnemic.store.answer.coordination import split_coordination
from mnemic.store.answers import answer_to_dict
from mnemic.text.sentences import Span


class QuotesFirst:
    """A reader that is sure of the first of its quotations that a text has."""

    def __init__(self, *quotations: str) -> None:
        self.quotations = quotations

    def answer(self, question: str, passages: Sequence[str]) -> list[AnswerSpan]:
        return [self.find(text) for text in passages]

    def find(self, text: str) -> AnswerSpan:
        for quotation in self.quotations:
            if (start := text.find(quotation)) >= 0:
                return AnswerSpan(start, start + len(quotation), 0.9, 0.1)
        return AnswerSpan(0, 0, 0.0, 1.0)


def ask(folder: Path, text: str, question: str, *quotations: str, name: str = "a.txt") -> Answer:
    (folder / name).write_text(text, encoding="utf-8")
    with Memory(folder / "memory.db", embedder="none", reader=QuotesFirst(*quotations)) as memory:
        memory.remember(folder / name)
        return memory.ask(question)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which three cities did she visit?", True),
        ("Which cities did she visit?", True),
        ("What are the ingredients of the soup?", True),
        ("Who are the members of the board?", True),
        ("Who were the first four kings?", True),
        ("What kinds of birds live there?", True),
        ("List the planets.", True),
        ("Name two rivers in Velm.", True),
        ("Which of the players are injured?", True),
        ("有哪些城市？", True),
        ("Which city did she visit?", False),
        ("Who is the chair of the board members?", False),
        ("What is the sum of the bills?", False),
        ("What does the series cost?", False),
        ("Which bus goes to the stations?", False),
        ("Which Square stops both streets?", False),
        ("What do the guests want?", False),
        ("When did the guests come?", False),
        ("What was the cause of the floods?", False),
        ("How many cities did she visit?", False),
        ("Who are you?", False),
    ],
)
def test_questions_for_several_things(question: str, expected: bool) -> None:
    assert asks_several(question) is expected


SENTENCE = "The school teaches Welsh, Greek, Old Norse and Latin to all."


@pytest.mark.parametrize(
    ("sentence", "quotation", "items"),
    [
        (SENTENCE, "Welsh, Greek, Old Norse and Latin", ["Welsh", "Greek", "Old Norse", "Latin"]),
        (SENTENCE, "Welsh", ["Welsh", "Greek", "Old Norse", "Latin"]),
        (SENTENCE, "Latin", ["Welsh", "Greek", "Old Norse", "Latin"]),
        (SENTENCE, "Old Norse", ["Welsh", "Greek", "Old Norse", "Latin"]),
        ("In the shed there are a rake, a saw, and two spades.", "a saw", ["a rake", "a saw", "two spades"]),
        ("It goes to both Lyon and Porto.", "both Lyon and Porto", ["Lyon", "Porto"]),
        ("Colours: red; green; blue", "red; green; blue", ["red", "green", "blue"]),
        ("She met Anna Brandt in Velm.", "Anna Brandt", ["Anna Brandt"]),
        ("她去了北京、上海和广州。", "北京、上海和广州", ["北京", "上海", "广州"]),
    ],
)
def test_a_coordination_is_completed_and_split(sentence: str, quotation: str, items: list[str]) -> None:
    start = sentence.index(quotation)
    spans = split_coordination(sentence, Span(start, start + len(quotation)), Span(0, len(sentence)))
    assert [sentence[span.start : span.end] for span in spans] == items


BULLETS = (
    "The soup is famous.\n\nIngredients of the soup:\n- leeks\n- white beans,\n- ham\n\n"
    "Remarks:\n- serve hot\n- no salt\n"
)
MARKDOWN = (
    "# Soup\n\n## Ingredients of the soup\n\n* leeks\n* white beans\n* ham\n\n## Remarks\n\n* serve hot\n* no salt\n"
)
NUMBERS = "Ingredients of the soup\n1. leeks\n2. white beans\n3. ham\n\nIt is served hot, with bread.\n"
KEYS = "Soup\n\nOpen: daily\nIngredient: leeks\nIngredient: white beans\nIngredient: ham\nPhone: 555\n"
PROSE = "The soup has leeks. It rains a lot. The soup also has white beans. Into the soup goes ham.\n"


@pytest.mark.parametrize(
    ("name", "text"), [("a.txt", BULLETS), ("a.md", MARKDOWN), ("a.txt", NUMBERS), ("a.txt", KEYS), ("a.txt", PROSE)]
)
@pytest.mark.parametrize("question", ["What are the ingredients of the soup?", "Which three ingredients has the soup?"])
def test_the_items_beside_the_answer_with_their_places(name: str, text: str, question: str, tmp_path: Path) -> None:
    """A reader finds one item; the others stand beside it."""
    answer = ask(tmp_path, text, question, "white beans", "leeks", "ham", name=name)
    assert [item.text for item in answer.items] == ["leeks", "white beans", "ham"]
    for item in answer.items:
        evidence = item.evidence
        assert item.text in evidence.sentence
        assert item.text in text.splitlines()[item.line - 1]
        assert text[evidence.first : evidence.last].endswith(evidence.sentence[-3:])
    assert answer.text == "white beans" if text != PROSE else answer.text in {"white beans", "leeks"}


def test_a_heading_with_the_words_of_the_question_is_enough(tmp_path: Path) -> None:
    """The reader is sure of nothing; the list under the heading is the answer."""
    answer = ask(tmp_path, BULLETS, "What are the ingredients of the soup?", "nowhere")
    assert [item.text for item in answer.items] == ["leeks", "white beans", "ham"]
    assert answer.text == "leeks"
    assert not ask(tmp_path, BULLETS, "What are the winners of the race?", "nowhere").items


TABLE = "player,team,shirt\nAda,red,2\nBo,blue,4\nCleo,red,7\nDora,green,8\n"


def test_the_column_of_the_rows_that_are_meant(tmp_path: Path) -> None:
    for quotation in ("Ada", "Bo", "nowhere"):  # whether the reader finds a right row, a wrong one, or none
        answer = ask(tmp_path, TABLE, "Which players are in the red team?", quotation, name="t.csv")
        assert [(item.text, item.line) for item in answer.items] == [("Ada", 2), ("Cleo", 4)]


def test_a_question_for_one_thing_is_answered_as_before(tmp_path: Path) -> None:
    answer = ask(tmp_path, BULLETS, "What is the first ingredient of the soup?", "leeks")
    assert (answer.text, answer.items) == ("leeks", ())
    single = "The members of the board meet Anna Brandt in Velm.\n"
    assert not ask(tmp_path, single, "Who are the members of the board?", "Anna Brandt", name="b.txt").items


def test_every_front_door_shows_the_items(tmp_path: Path) -> None:
    """The shipped reader reads a list; the terminal, JSON and a notebook show its items."""
    (tmp_path / "soup.txt").write_text(BULLETS, encoding="utf-8")
    question, path = "What are the ingredients of the soup?", tmp_path / "memory.db"
    with Memory(path) as memory:
        memory.remember(tmp_path / "soup.txt")
        answer = memory.ask(question)
    assert [item.text for item in answer.items] == ["leeks", "white beans", "ham"]
    assert "<li>leeks <small>" in answer._repr_html_()
    report = json.loads(json.dumps(answer_to_dict(answer)["items"]))
    assert [(item["answer"], item["line"]) for item in report] == [("leeks", 4), ("white beans", 5), ("ham", 6)]
    printed = [line for line in run("ask", question, "--memory", path).out.splitlines() if line.startswith("item")]
    assert [line.split("(")[0].split() for line in printed] == [
        ["item", "1", "leeks"],
        ["item", "2", "white", "beans"],
        ["item", "3", "ham"],
    ]
    assert run("ask", question, "--memory", path, "--json").json["items"] == report
