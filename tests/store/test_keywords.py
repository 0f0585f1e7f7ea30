"""Keywords and misspelled words find what they mean; exact words never change."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from mnemic import Memory
from mnemic.store import ENGINES, AnswerSpan, StoreError
from mnemic.store.answer.keywords import is_keywords, phrase_question
from mnemic.store.retrieve.spelling import count_errors, is_typing_error

NOTES = {
    "insurance.txt": "Household insurance\nInsurance premium: 318.40 euros a year\nDeductible: 150 euros\n",
    "lease.txt": "Monthly rent: EUR 1,184.50\nLandlady: Margit Oberholzer\n- **Notice period**: three months\n",
    "car.md": "# Car\n\nThe winter tyres are at Garage Huber. The mileage was 84,210 km. Coats: since 2016.\n",
    "trip.txt": "Provider: Quickline\nProvider: Helvetia\nSee https://example.org at 12:30.\n",
}


class Silent:
    """A reader that finds nothing, so that answers are values of keys."""

    def __init__(self) -> None:
        self.questions: list[str] = []

    def answer(self, question: str, passages: Sequence[str]) -> list[AnswerSpan]:
        self.questions.append(question)
        return [AnswerSpan(0, 0, 0.0, 1.0) for _ in passages]


@pytest.fixture(scope="module", params=sorted(ENGINES))
def memory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    folder = tmp_path_factory.mktemp("keywords")
    new_address: Callable[[], str] = request.getfixturevalue("new_address")
    address = new_address() if request.param == "postgresql" else folder / "memory.db"
    for name, text in NOTES.items():
        (folder / name).write_text(text, encoding="utf-8")
    with Memory(address, embedder="hashed-ngrams", reader=Silent()) as memory:
        memory.remember(folder)
        yield memory


@pytest.mark.parametrize(
    ("question", "answer"),
    {
        "rent": "EUR 1,184.50",
        "insurance premium": "318.40 euros a year",
        "What is the insurance premium?": "318.40 euros a year",
        "Who is the landlady?": "Margit Oberholzer",
        "notice periods": "three months",
        "insurence premum": "318.40 euros a year",
        "deductable": "150 euros",
        "Where is the landlady?": "",  # of where a key says nothing
        "rent of the garage": "",
        "landlady's dog": "",
    }.items(),
)
def test_values_of_keys(memory: Memory, question: str, answer: str) -> None:
    found = memory.ask(question)
    assert found.text == answer
    assert found.question == question
    if answer:
        assert found.evidence[0].passage[found.start : found.end] == answer


def test_several_values_share_their_probability(memory: Memory) -> None:
    answers = memory.ask("provider").ranked
    assert {answer.text for answer in answers} == {"Quickline", "Helvetia"}
    assert [answer.score for answer in answers] == [0.45, 0.45]


@pytest.mark.parametrize(
    ("query", "corrected"),
    {
        "insurence premum": "insurance premium",
        "Insurence": "Insurance",
        "What is the milage?": "What is the mileage?",
        "the winter tyers": "the winter tyres",
        "hosehold inshurance": "household insurance",
        "Quikline": "Quickline",
        "insurances insured rents": "insurances insured rents",  # other forms of known words
        "tent boat coast": "tent boat coast",  # common words, though "rent" and "coats" are near
        "Hubert garages": "Hubert garages",
        "prx 84210 x1premum 你好吗": "prx 84210 x1premum 你好吗",
        "since 2061": "since 2061",  # a number is never a typing error
    }.items(),
)
def test_only_misspelled_words_are_corrected(memory: Memory, query: str, corrected: str) -> None:
    assert memory.correct(query) == corrected
    assert memory.correct(corrected) == corrected


def test_a_correction_is_told_and_searched(memory: Memory) -> None:
    assert "read as: What is the mileage?" in memory.ask("What is the milage?").notes
    assert memory.ask("What is the mileage?").notes == ()
    assert "mileage" in memory.search("milage")[0].text
    with pytest.raises(StoreError, match="is empty"):
        memory.correct(" ")


def test_keywords_are_phrased_as_a_question(memory: Memory) -> None:
    assert isinstance(memory.reader, Silent)
    memory.ask("winter tyres")
    assert memory.reader.questions[-1] == "What is the winter tyres?"
    assert phrase_question("When does it end") == "When does it end"
    assert is_keywords("rent")
    for question in ("rent?", "How much rent", "the rent of my flat in the town", "", "Is it red"):
        assert not is_keywords(question)


def test_typing_errors() -> None:
    pairs = {("rnet", "rent"): 1, ("premum", "premium"): 1, ("abc", "cab"): 2, ("", "ab"): 2, ("same", "same"): 0}
    assert {pair: count_errors(*pair) for pair in pairs} == pairs
    assert is_typing_error("rnet", "rent", 1)
    assert is_typing_error("lese", "lease", 1)
    assert not is_typing_error("bern", "berg", 1)  # another word
    assert is_typing_error("premiam", "premium", 1)


def test_an_old_read_only_memory_is_corrected_as_well(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder="none", reader=None) as memory:
        memory.note("The mortgage is paid.")
    (tmp_path / "memory.db").chmod(0o400)
    with Memory(tmp_path / "memory.db", reader=None) as memory:
        assert memory.correct("morgage") == "mortgage"
