"""Relative times in answers are resolved against the day on which they were said."""

import json
import os
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from app_runs import run

from mnemic.store import Answer, AnswerSpan, Memory
from mnemic.store.answer import anchor
from mnemic.store.answer.confidence import SpanFeatures
from mnemic.store.answer.focus import asks_time, focus_on_times, list_utterances
from mnemic.store.answer.rank import SlotSpan
from mnemic.store.answer.surroundings import read_surroundings
from mnemic.store.answers import answer_to_dict
from mnemic.store.contract import MemorySlot
from mnemic.text.documents import Passage, Sentence

FILLER = "This is talk about nothing of any interest, and it goes on for a good while without a point.\n"
CHAT = "[8 May 2023, 10:15] Anna: I sold the boat yesterday.\n[9 May 2023, 8:02] Ben: The plumber came this morning.\n"


class Quotes:
    """A reader that is sure of one quotation, wherever a text has it."""

    def __init__(self, quotation: str) -> None:
        self.quotation = quotation

    def answer(self, question: str, passages: Sequence[str]) -> list[AnswerSpan]:
        starts = [text.find(self.quotation) for text in passages]
        size = len(self.quotation)
        return [
            AnswerSpan(start, start + size, 0.99, 0.01) if start >= 0 else AnswerSpan(0, 0, 0.0, 1.0)
            for start in starts
        ]


def ask(folder: Path, text: str, words: str, question: str = "When was the boat sold?", name: str = "a.txt") -> Answer:
    """Remember a file, or a note if it has no name; ask, and quote the words."""
    with Memory(folder / "memory.db", embedder="none", reader=Quotes(words)) as memory:
        if name:
            (folder / name).write_text(text, encoding="utf-8")
            memory.remember(folder / name)
        else:
            memory.note(text)
        return memory.ask(question)


def iso_of(answer: Answer) -> str | None:
    return answer.date.iso if answer.date else None


def test_the_date_of_the_message_and_the_words_it_comes_from(tmp_path: Path) -> None:
    answer = ask(tmp_path, CHAT, "yesterday")
    assert answer.text == "yesterday"
    assert answer.date is not None
    assert (answer.date.iso, answer.date.text, answer.date.words) == ("2023-05-07", "7 May 2023", "yesterday")
    assert answer.evidence[0].passage[answer.date.start : answer.date.end] == "yesterday"
    source = answer.date.anchor
    assert source is not None
    assert (source.text, source.line, answer.date.source) == ("8 May 2023", 1, "text")
    evidence = source.evidence
    assert evidence.sentence == "[8 May 2023, 10:15] Anna: I sold the boat yesterday."
    assert (tmp_path / "a.txt").read_text(encoding="utf-8")[evidence.first : evidence.last] == evidence.sentence
    assert iso_of(ask(tmp_path, CHAT, "this morning", "When did the plumber come?")) == "2023-05-09"


@pytest.mark.parametrize("question", ["What did Anna sell?", "Who sold the boat?", "What did Anna do when it rained?"])
def test_only_a_question_for_a_time_gets_a_date(question: str, tmp_path: Path) -> None:
    assert ask(tmp_path, CHAT, "yesterday", question).date is None


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("When did Anna move?", True),
        ("On what date did Anna move?", True),
        ("Which year did she move in?", True),
        ("How long ago did she move?", True),
        ("Since when does she live here?", True),
        ("安娜什么时候搬家的？", True),
        ("What did she say when she moved?", False),
        ("How long did it take?", False),
        ("Where does she live?", False),
    ],
)
def test_questions_for_a_time(question: str, expected: bool) -> None:
    assert asks_time(question) is expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("s.txt", "DATE: 1:56 pm on 8 May, 2023\n\nAnna: Hi!\nAnna: I sold the boat yesterday.\n", "2023-05-07"),
        ("s.md", "## 2023-05-08\n\nI sold the boat yesterday.\n\n## 2023-05-12\n\nIt rains.\n", "2023-05-07"),
        ("s.csv", "text,date\nI sold the boat yesterday.,2023-05-08\nNothing new.,2023-06-09\n", "2023-05-07"),
        (
            "s.jsonl",
            '{"text": "I sold the boat yesterday.", "ts": "2023-05-08T10:15:00Z", "user": "anna"}\n',
            "2023-05-07",
        ),
        ("s.txt", "8 May 2023, 9:00 Ben: Hi\n10 May, 9:05 Anna: I sold the boat yesterday.\n", "2023-05-09"),
        ("2023-05-08 boat.txt", "I sold the boat yesterday.\n", "2023-05-07"),
        ("20230508_boat.txt", "I sold the boat yesterday.\n", "2023-05-07"),
        ("s.txt", "Anna (8 May 2023, 10:15): We met Ben on 2 March 2021. I sold the boat yesterday.\n", "2023-05-07"),
        ("s.txt", "31/08/2023, 9:00 - Ben: Hi\n05/09/2023, 9:00 - Anna: I sold the boat yesterday.\n", "2023-09-04"),
        ("s.txt", "08/31/2023, 9:00 - Ben: Hi\n09/05/2023, 9:00 - Anna: I sold the boat yesterday.\n", "2023-09-04"),
    ],
)
def test_where_the_day_comes_from(name: str, text: str, expected: str, tmp_path: Path) -> None:
    assert iso_of(ask(tmp_path, text, "yesterday", name=name)) == expected


def test_an_ambiguous_date_is_reported(tmp_path: Path) -> None:
    answer = ask(tmp_path, "05/08/2023, 9:00 - Anna: I sold the boat yesterday.\n", "yesterday")
    assert answer.date is not None
    assert (answer.date.iso, answer.date.text) == ("", "4 August 2023 or 7 May 2023")
    assert any("4 August 2023 or 7 May 2023" in note for note in answer.notes)


def test_a_note_was_said_on_the_day_when_it_was_remembered(tmp_path: Path) -> None:
    today = datetime.now().astimezone().date()
    answer = ask(tmp_path, "I sold the boat yesterday.", "yesterday", name="")
    assert answer.date is not None
    assert answer.date.iso in {(today - timedelta(1)).isoformat(), (date.today() - timedelta(1)).isoformat()}
    assert (answer.date.source, answer.date.anchor, answer.notes) == ("remembered", None, ())


def test_the_time_of_a_file_is_used_last_and_said(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("I sold the boat yesterday.", encoding="utf-8")
    noon = datetime(2020, 2, 1, 12).astimezone().timestamp()
    os.utime(tmp_path / "a.txt", (noon, noon))
    with Memory(tmp_path / "memory.db", embedder="none", reader=Quotes("yesterday")) as memory:
        memory.remember(tmp_path / "a.txt")
        answer = memory.ask("When was the boat sold?")
    assert answer.date is not None
    assert (answer.date.iso, answer.date.source) == ("2020-01-31", "file")
    assert any("last change" in note for note in answer.notes)


def test_a_date_without_a_year_is_not_guessed_from_the_time_of_a_file(tmp_path: Path) -> None:
    answer = ask(tmp_path, "The boat will be sold on 30 June.", "30 June", "When will the boat be sold?")
    assert (answer.text, answer.date, answer.notes) == ("30 June", None, ())
    dated = "Velm, 8 May 2023\n\nThe boat will be sold on 30 June."
    assert iso_of(ask(tmp_path, dated, "30 June", "When will the boat be sold?", "b.txt")) == "2023-06-30"


def test_the_head_may_stand_many_passages_above_but_not_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anchor, "MAX_PASSAGES", 2 * anchor.BATCH)
    for number, (repeats, expected) in enumerate(((500, ("2023-05-07", "text")), (1000, ("2019-01-01", "name")))):
        folder = tmp_path / str(number)
        folder.mkdir()
        text = f"DATE: 8 May 2023\n\n{FILLER * repeats}\nAnna: I sold the boat yesterday.\n"
        answer = ask(folder, text, "yesterday", name="2019-01-02.txt")
        assert answer.looked > anchor.BATCH
        assert answer.date is not None
        assert (answer.date.iso, answer.date.source) == expected


MAIL = (
    "From: Anna <a@x.org>\nTo: Ben <b@x.org>\nDate: Mon, 8 May 2023 10:15:00 +0200\nSubject: boat\n\n"
    "Hi Ben, I sold the boat yesterday.\n\nOn Sun, 7 May 2023 at 20:00, Ben <b@x.org> wrote:\n"
    "> I bought the car three days ago.\n\nWe meet two days ago.\n"
)


def test_mails_and_what_they_quote(tmp_path: Path) -> None:
    assert iso_of(ask(tmp_path, MAIL, "yesterday", name="m.eml")) == "2023-05-07"
    assert iso_of(ask(tmp_path, MAIL + " ", "three days ago", "When was the car bought?", "n.eml")) == "2023-05-04"
    assert iso_of(ask(tmp_path, MAIL + "  ", "two days ago", "When do we meet?", "o.eml")) == "2023-05-06"


def test_a_mail_without_a_date_does_not_take_that_of_another_mail(tmp_path: Path) -> None:
    text = (
        "From a@x.org\nFrom: Anna <a@x.org>\nDate: Mon, 8 May 2023 10:15:00 +0200\nSubject: hi\n\nHello.\n\n"
        "From b@x.org\nFrom: Ben <b@x.org>\nSubject: boat\n\nI sold the boat yesterday.\n"
    )
    answer = ask(tmp_path, text, "yesterday", name="m.mbox")
    assert answer.date is not None
    assert answer.date.source == "file"


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("On 8 May 2023 the team met. The next day the boat was sold.", "The next day", "2023-05-09"),
        ("[8 May 2023] Anna: Last Friday I was ill. Two days later I sold the boat.", "Two days later", "2023-05-07"),
        ("[8 May 2023] Anna: I sold the boat the week before.", "the week before", "2023-05-01/2023-05-07"),
        ("[8 May 2023] Anna: I was ill a few years ago. The next day I sold the boat.", "The next day", None),
        ("[8 May 2023] Anna: The next day I sold the boat.", "The next day", None),
        ("[8 May 2023] Anna: I sold the boat a few years ago.", "a few years ago", None),
        ("[8 May 2023] Anna: I sold the boat on 2 May 2023.", "2 May 2023", None),
    ],
)
def test_what_a_time_is_counted_from(text: str, words: str, expected: str | None, tmp_path: Path) -> None:
    assert iso_of(ask(tmp_path, text, words)) == expected


def focus(question: str, text: str, quotation: str) -> tuple[str, float]:
    """Where the span of a quotation moves in a passage, and the log-odds that it gains."""
    slot = MemorySlot(1, 1, 0, Passage(text, None, (Sentence(0, len(text), 1, 0, len(text)),)))
    start = text.index(quotation)
    candidates = [(SlotSpan(slot, start, start + len(quotation), 0.5), SpanFeatures(1, 1, 0, 0, 0))]
    focused = focus_on_times(question, candidates)
    assert focused is not None
    ((span, features),) = focused
    return span.text, features.answer_log_odds


TWO = "[8 May 2023, 10:15] Anna: I sold the boat yesterday.\n[9 May 2023, 8:02] Anna: Carla painted it two days ago.\n"


def test_spans_move_from_the_head_of_a_message_to_the_time_in_it() -> None:
    question = "When did Anna sell the boat?"
    assert focus(question, TWO, "8 May 2023")[0] == "yesterday"
    assert focus(question, TWO, "8 May 2023, 10:15] Anna: I sold the boat yesterday")[0] == "yesterday"
    assert focus(question, TWO, "two days ago")[0] == "yesterday"  # that has the boat, too
    assert focus("When did Carla paint it?", TWO, "8 May 2023")[0] == "two days ago"
    assert focus("When will Anna sell the boat?", TWO, "8 May 2023")[0] == "8 May 2023"  # yesterday is past
    assert focus(question, TWO, "yesterday")[1] > focus("When did Dan sell the car?", TWO, "yesterday")[1]


def test_the_head_of_a_mail_or_a_title_names_the_speaker(tmp_path: Path) -> None:
    """A sentence with "I" has the name that stands in From, or in the first line."""
    chat = "[8 May 2023, 10:15] Anna: Hi\n[9 May 2023, 8:02] Ben: I sold the boat yesterday.\n"
    texts = {"m.eml": MAIL, "d.txt": f"Diary of Anna\n\n8 May 2023\n\nI sold the boat.\n{FILLER * 40}", "c.txt": chat}
    expected = {"m.eml": ("Anna", True), "d.txt": ("Diary of Anna", True), "c.txt": ("c\n", False)}
    with Memory(tmp_path / "memory.db", embedder="none", reader=None) as memory:
        for name, text in texts.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
            memory.remember(tmp_path / name)
            last = list(memory.store.list_slots(memory.document(tmp_path / name).id))[-1]
            above = read_surroundings(memory.store, last)
            words, is_dated = expected[name]
            assert words in above.text
            assert above.is_dated is is_dated
            if name == "m.eml":
                known = list_utterances("When had Anna sold the boat?", last.passage.text, above)
                unknown = list_utterances("When had Anna sold the boat?", f"[8 May 2023] {last.passage.text}")
                assert max(row.overlap for row in known) == 1 > max(row.overlap for row in unknown)


def test_other_texts_and_questions_stay_as_they_are_read() -> None:
    prose = "The war began on 8 May 1912. Two years later the boat was sold, and last of all the car."
    assert focus("When was the boat sold?", prose, "8 May 1912") == ("8 May 1912", 0)
    assert focus("Who sold the boat?", TWO, "8 May 2023") == ("8 May 2023", 0)


def test_every_front_door_shows_the_date(tmp_path: Path) -> None:
    """The shipped reader reads a chat; the terminal, JSON and a notebook show the date."""
    (tmp_path / "chat.txt").write_text(CHAT, encoding="utf-8")
    path = tmp_path / "memory.db"
    with Memory(path) as memory:
        memory.remember(tmp_path / "chat.txt")
        answer = memory.ask("When did Anna sell the boat?")
    assert iso_of(answer) == "2023-05-07"
    html = answer._repr_html_()
    assert "<b>yesterday</b> = 7 May 2023" in html
    assert "counted from “8 May 2023”" in html
    report = json.loads(json.dumps(answer_to_dict(answer)["date"]))
    assert (report["iso"], report["anchor"]["text"]) == ("2023-05-07", "8 May 2023")
    assert "passage" not in report["anchor"]["evidence"]
    printed = run("ask", "When did Anna sell the boat?", "--memory", path).out
    (line,) = [line for line in printed.splitlines() if line.startswith("date")]
    assert "7 May 2023  (“yesterday”, counted from “8 May 2023”" in line
    assert run("ask", "When did Anna sell the boat?", "--memory", path, "--json").json["date"] == report
