"""The line of an answer is its own, and an answer stays within its line."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from mnemic.store import AnswerSpan, Memory
from mnemic.store.answer.units import find_best_lines, fit_span
from mnemic.store.answers import answer_to_dict
from mnemic.text.documents import Anchor, DocumentPiece, Passage, split_passages

FILES = {
    "wrapped.txt": "A long tale of a house that an old man sold in the year\nof the great flood for 77 crowns.\n",
    "notes.md": "# Notes\n\n- a **bold** thing that\n  was *paid* with **77** crowns\n",
    "page.html": "<p>The <b>house</b>\nwas sold\n\n<i>for</i> 77 crowns.</p>\n",
    "mail.eml": "From: a@b.c\nX-Long: yes\nSubject: house\n\nHello,\n\nthe house was sold\nfor 77 crowns.\n",
    "quoted.eml": (
        "From: a@b.c\nSubject: house\nContent-Transfer-Encoding: quoted-printable\n\n"
        "The house was sold by an old man for a great ma=\nny things and 77 crowns.\n"
    ),
    "code.py": "x = 1\n\n# The house was sold\n# for 77 crowns.\ny = 2\n",
    "list.txt": "House: big\nRooms: many\nPrice: 77 crowns\nOwner: Ann\n",
}


class Seventies:
    """A reader that answers 77 and whatever follows it up to a stop or the end."""

    def answer(self, question: str, passages: Sequence[str]) -> list[AnswerSpan]:
        matches = (re.search("77", text) for text in passages)
        return [
            AnswerSpan(match.start(), min(match.end() + 12, len(text)), 0.9, 0.1)
            if match
            else AnswerSpan(0, 0, 0.0, 1.0)
            for match, text in zip(matches, passages)
        ]


@pytest.mark.parametrize("name", FILES)
def test_the_line_of_an_answer(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(FILES[name], encoding="utf-8")
    with Memory(tmp_path / "memory.db", embedder="none", reader=Seventies()) as memory:
        assert [step.outcome for step in memory.remember(path)] == ["new"]
        answer = memory.ask("For how many crowns was the house sold?")
    lines = FILES[name].splitlines()
    assert answer.text.startswith("77 crowns")
    assert "77" in lines[answer.line - 1]
    assert answer.ranked[0].line == answer.line
    assert answer_to_dict(answer)["line"] == answer.line
    assert "\n" not in answer.text
    assert not re.search(r"[*_<>#]", answer.text)


def make_passage(text: str) -> Passage:
    (passage,) = split_passages([DocumentPiece(text, (Anchor(0, 0, 1),))], lambda texts: [1 for _ in texts])
    return passage


def fit(text: str, quote: str) -> str:
    start = text.index(quote)
    span = fit_span(AnswerSpan(start, start + len(quote), 0.5, 0.5), make_passage(text))
    return text[span.start : span.end]


def test_spans_end_with_their_line_and_numbers_are_whole() -> None:
    assert fit("SSID: zaun\nPassword: tief\nProvider: Init7", "tief\nProvider") == "tief"
    assert fit("Phone: +39 347 118\nName: Ann", "39 347 118") == "+39 347 118"
    assert fit("Tax: 19% a year\nName: Ann", "19") == "19%"
    wrapped = "It was built by a man of great wealth and of little taste, Edith\nMarlowe of Velm."
    assert fit(wrapped, "Edith\nMarlowe") == "Edith\nMarlowe"


def test_a_reader_sees_where_lines_end() -> None:
    passage = make_passage("Home\nSSID: zaun\nPassword: tief. Really.\n\nEnd")
    marks = passage.mark_units()
    assert marks == "Home.SSID: zaun.Password: tief. Really.\n\nEnd"
    assert len(marks) == len(passage.text)


def test_the_lines_that_fit_a_question() -> None:
    def find(question: str, text: str = "Monthly rent: 700\nDeposit: three months of rent\nPets: none") -> list[str]:
        passage = make_passage(text)
        return [passage.text[line.start : line.end] for line in find_best_lines(passage, question)]

    assert find("How high is the monthly rent?") == ["Monthly rent: 700"]
    assert find("Pets or a deposit?") == ["Deposit: three months of rent", "Pets: none"]
    assert find("What is the salary?") == []
    assert find("Which lines have it?", "it: a\nit: b\nit: c") == []
    assert find("What is said?", "Nothing is said here. That is said there.") == []
    assert find("One line?", "One line") == []


def test_the_lines_of_a_card_are_apart() -> None:
    text = "Start: 9:00;\nPlace: quay;\nNote: Bring a coat. We meet at\nthe kiosk."
    piece = DocumentPiece(text, (Anchor(0, 0, 1),), None, (len(text),))
    (passage,) = split_passages([piece], lambda texts: [1 for _ in texts])
    (line,) = find_best_lines(passage, "Where do we meet?")
    assert text[line.start : line.end] == "Note: Bring a coat. We meet at"
