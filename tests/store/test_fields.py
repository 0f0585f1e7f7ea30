"""Values of rows, cards and constants answer questions that name their keys."""

import pytest

from mnemic.store.answer.fields import find_values, merge_values
from mnemic.store.answer.plausible import is_plausible
from mnemic.store.answer.rank import SlotSpan, compute_name_overlap
from mnemic.store.answer.units import complete_words
from mnemic.store.contract import MemorySlot
from mnemic.text.documents import Anchor, DocumentPiece, split_passages
from mnemic.text.sentences import Span

BOXES = (
    "box; place; content\n"
    "box: 1; place: cellar, left shelf; content: tent, two mats\n"
    "box: 3; place: cellar, right shelf; content: ice skates, size 39 and 44\n"
    "box: 4; place: attic; content: clothes\n"
)
OVENS = (
    "appliance: fridge; bought on: 2021-10-12; width mm: 540; warranty until: 2024-10-12\n"
    "appliance: oven; bought on: 2022-05-03; width mm: 595; warranty until: 2027-05-03\n"
)
INVOICE = "Seller.Name: Menken\nLine.Item: Bookcase;\nLine.Amount: 1480.00\nTotal.currency: EUR\nTotal: 1575.00\n"
TIDE = (
    "Hours between two high waters.\n    public static final double PERIOD_HOURS = 12.42;\n\n"
    "Height of the zero, in metres.\npub const GAUGE_ZERO: f64 = -5.02;\n"
)
CONTACTS = (
    "Name: Ole Sand;\nPhone (cell): +49 170 555;\nNote: Father. Prefers letters.\n"
    "Name: Ann Brandt;\nPhone (home): +49 5121 555;\n"
)


def make_slot(text: str, cuts: tuple[int, ...] | None = None) -> MemorySlot:
    piece = DocumentPiece(text, (Anchor(0, 0, 1),), None, cuts)
    (passage,) = split_passages([piece], lambda texts: [1 for _ in texts])
    return MemorySlot(1, 7, 0, passage)


def find(question: str, text: str, name: str = "", cuts: tuple[int, ...] | None = None) -> str:
    values = find_values(question, [make_slot(text, cuts)], {7: name})
    return values[0].text if values and values[0].score > 0.3 else ""


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        ("In which box are the ice skates?", BOXES, "3"),
        ("What is the content of box 4?", BOXES, "clothes"),
        ("In which box are the books?", BOXES, ""),
        ("Are the ice skates in a box?", BOXES, ""),
        ("What is the warranty end date of the oven?", OVENS, "2027-05-03"),
        ("How wide is the oven?", OVENS, "595"),
        ("How wide is the sofa?", OVENS, ""),
        ("What is the total of the invoice of Menken?", INVOICE, "1575.00"),
        ("How many hours are between two high waters?", TIDE, "12.42"),
        ("What is the gauge zero in metres?", TIDE, "-5.02"),
    ],
)
def test_the_value_whose_key_and_row_fit(question: str, text: str, answer: str) -> None:
    assert find(question, text, "invoice.xml") == answer


def test_a_card_is_one_row() -> None:
    cuts = (CONTACTS.index("Name: Ann"), len(CONTACTS))
    assert find("What is the mobile phone of Ole Sand?", CONTACTS, cuts=cuts) == "+49 170 555"
    assert find("What is the phone of Ann Brandt?", CONTACTS, cuts=cuts) == "+49 5121 555"


def test_a_row_that_lacks_a_word_of_another_row_does_not_fit() -> None:
    codes = "code: F.22; action: fill\ncode: F.61; action: call\n"
    scores = {value.text: value.score for value in find_values("Which action at code 61?", [make_slot(codes)], {})}
    assert scores["call"] > 0.4 > scores["fill"]


def test_a_sure_value_leaves_little_to_rivals_in_its_passage() -> None:
    slot = make_slot(BOXES)
    values = find_values("In which box are the ice skates?", [slot], {})
    start = BOXES.index("39 and 44")
    answers = merge_values([SlotSpan(slot, start, start + 9, 0.95)], values)
    assert answers[0].text == "3"
    assert answers[1].score < 0.2
    elsewhere = SlotSpan(slot._replace(id=2), start, start + 9, 0.95)
    assert merge_values([elsewhere], values)[0].text == "39 and 44"


def test_names_and_numbers() -> None:
    texts = ["The mayor of Bergen", "the mayor", "In 2019 Bergen"]
    assert compute_name_overlap("Who was the mayor of Bergen in 2019?", texts) == [0.5, 0.0, 1.0]
    assert compute_name_overlap("Who was the mayor?", texts) == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("question", "answer", "plausible"),
    [
        ("How many hours is it?", "Hours", False),  # words of the question
        ("Is it red or blue?", "red", True),
        ("How many hours is it?", "the client", False),  # no number
        ("How many hours is it?", "twelve hours", True),
        ("When was Gesine Harms born?", "Landlord", False),  # the name of a value
        ("Who is Gesine Harms?", "Landlord", True),
        ("Who is the landlord?", "Gesine Harms", True),
    ],
)
def test_what_can_be_an_answer(question: str, answer: str, plausible: bool) -> None:
    text = "Landlord: Gesine Harms\nHours of the client: twelve hours, red"
    start = text.index(answer)
    assert is_plausible(question, text, Span(start, start + len(answer))) is plausible


@pytest.mark.parametrize(
    ("part", "word"),
    {
        "client": "/etc/exim4/passwd.client",
        "info@beach": "info@beach.example",
        "54": "549.00",
        "17": "9:17",
        "b/c": "https://a.b/c_d.html",
        "ray": "ray",
        "AC": "AC",
    }.items(),
)
def test_ends_of_spans_are_moved_out_of_words(part: str, word: str) -> None:
    text = "”/etc/exim4/passwd.client” to info@beach.example; 549.00 at 9:17. The x-ray AC/DC https://a.b/c_d.html"
    start = text.index(part)
    span = complete_words(Span(start, start + len(part)), text)
    assert text[span.start : span.end] == word
