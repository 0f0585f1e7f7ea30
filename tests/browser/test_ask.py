"""Ask in the page: the answer, its evidence, and the way to the highlighted sentence."""

from collections.abc import Callable
from pathlib import Path

import papers
import pytest
from visitor import Visitor

LEASE, DEPOSIT = "When does the lease end?", "How much is the deposit?"
Writer = Callable[[Path], Path]


def test_a_text_opens_at_the_sentence(visitor: Visitor, tmp_path: Path) -> None:
    visitor.upload(papers.write_letter(tmp_path / "letter.txt"))
    assert visitor.ask(LEASE) == "30 June"
    assert "%" in visitor.page.inner_text(".answer .confidence-number")
    marked = visitor.open_evidence()
    assert marked.inner_text() == "30 June"
    assert visitor.is_on_screen(marked)
    line = visitor.page.locator(".line", has=visitor.page.locator("mark"))
    assert line.locator("mark.found").all_inner_texts() == [
        "The lease of the flat in Mill Street ends on ",
        "30 June",
        ".",
    ]
    assert line.locator(".line-number").inner_text() == "61"
    visitor.page.go_back()
    visitor.page.wait_for_selector(".answer .answer-words")
    assert visitor.page.inner_text(".answer .answer-words") == "30 June"


def test_a_pdf_opens_at_the_page_with_the_words_marked(visitor: Visitor, tmp_path: Path) -> None:
    visitor.upload(papers.write_contract(tmp_path / "contract.pdf"))
    assert visitor.ask(DEPOSIT) == "1,400 euros"
    marked = visitor.open_evidence()
    assert visitor.is_on_screen(marked)
    page = visitor.page.locator("#page-2")
    assert page.locator("img").evaluate("(image) => image.decode().then(() => image.naturalWidth)") > 600
    found, said = (page.locator(f".{name}").first.bounding_box() for name in ("box-found", "box-said"))
    sheet = page.locator(".page-sheet").bounding_box()
    assert found is not None
    assert said is not None
    assert sheet is not None
    assert found["width"] > said["width"] > 20
    # the line stands 72 of 792 points below the upper edge, and begins 72 of 612 from the left
    assert (found["y"] + found["height"] / 2 - sheet["y"]) / sheet["height"] == pytest.approx(68 / 792, abs=0.015)
    assert (found["x"] - sheet["x"]) / sheet["width"] == pytest.approx(72 / 612, abs=0.015)
    visitor.page.click("[data-mode=text]")
    visitor.page.wait_for_selector("mark.said")
    assert visitor.page.inner_text("mark.said") == "1,400 euros"


def test_a_mail_opens_with_its_headers(visitor: Visitor, tmp_path: Path) -> None:
    visitor.upload(papers.write_mail(tmp_path / "bakery.eml"))
    assert "Friday" in visitor.ask("When does the bakery open?")
    marked = visitor.open_evidence()
    assert "Friday" in marked.inner_text()
    assert visitor.is_on_screen(marked)
    assert visitor.page.locator(".mail-head dd").all_inner_texts()[:2] == [
        "Ann Berg <ann@example.org>",
        "Bob <bob@example.org>",
    ]


@pytest.mark.parametrize(("name", "write"), [("costs.xlsx", papers.write_sheet), ("costs.csv", papers.write_table)])
def test_a_table_opens_at_the_cell(visitor: Visitor, tmp_path: Path, name: str, write: Writer) -> None:
    visitor.upload(write(tmp_path / name))
    assert visitor.ask("What is the amount for brushes?").startswith("17")
    marked = visitor.open_evidence()
    assert marked.inner_text().startswith("17")
    assert visitor.is_on_screen(marked)
    row = visitor.page.locator("tr.is-found").locator("th, td").all_inner_texts()
    assert [text.lower() for text in row[:2]] == ["3", "brushes"]
    assert visitor.page.locator(".sheet thead th").all_inner_texts()[1:3] == ["item", "amount"]


def test_no_answer_shows_what_is_nearest(visitor: Visitor) -> None:
    visitor.add_note("The lease of the flat in Mill Street ends on 30 June.")
    assert visitor.ask("What is the phone number of the landlord?") == "No answer in these documents"
    assert visitor.page.inner_text(".cards-title") == "What came nearest"
    assert visitor.page.locator(".card").count() == 1
    assert visitor.page.locator(".card mark").count() == 0


def test_filters_stand_in_the_address(visitor: Visitor, tmp_path: Path) -> None:
    visitor.upload(papers.write_contract(tmp_path / "contract.pdf"))
    visitor.add_note("The deposit of the other flat is 900 euros.")
    visitor.open("ask", selector="#question")
    visitor.page.click(".filters summary")
    visitor.page.select_option("#kind", "note")
    assert visitor.page.locator("#kind").is_visible()
    visitor.page.fill("#question", DEPOSIT)
    visitor.page.click("#ask")
    visitor.page.wait_for_selector(".results:not([aria-busy]) .answer")
    assert visitor.page.inner_text(".answer-words") == "900 euros"
    assert "kind=note" in visitor.page.url
    visitor.page.reload()
    visitor.page.wait_for_selector(".results:not([aria-busy]) .answer")
    assert visitor.page.inner_text(".answer-words") == "900 euros"
    assert visitor.page.input_value("#kind") == "note"


def test_evidence_comes_before_the_answer(visitor: Visitor) -> None:
    """Note what the results show over time: cards first, then the words."""
    visitor.add_note("The lease of the flat in Mill Street ends on 30 June.")
    visitor.open("ask", selector="#question")
    visitor.page.evaluate(
        """() => {
            window.stages = [];
            const results = document.querySelector('.results');
            new MutationObserver(() => {
              const has = (selector) => Boolean(results.querySelector(selector));
              const waiting = has('.card') ? 'found' : 'searching';
              const stage = has('.answer-waiting') ? waiting : has('.answer') ? 'answer' : 'other';
              if (window.stages.at(-1) !== stage) window.stages.push(stage);
            }).observe(results, { childList: true, subtree: true });
        }"""
    )
    visitor.page.fill("#question", LEASE)
    visitor.page.click("#ask")
    visitor.page.wait_for_selector(".results:not([aria-busy]) .answer")
    assert visitor.page.evaluate("window.stages") == ["searching", "found", "answer"]


def test_questions_are_remembered_and_deleted(visitor: Visitor) -> None:
    visitor.add_note("The lease of the flat in Mill Street ends on 30 June. The rent is 700 euros a month.")
    visitor.ask(LEASE)
    visitor.ask("How much is the rent?")
    visitor.page.reload()
    visitor.page.wait_for_selector(".history li")
    questions = visitor.page.locator(".history-question")
    assert questions.all_inner_texts() == ["How much is the rent?", LEASE]
    visitor.page.click(".history li:first-child button")
    assert questions.all_inner_texts() == [LEASE]
    questions.first.click()
    visitor.wait_for_texts(".answer .answer-words", ["30 June"])
    visitor.page.click(".history-head button")
    assert questions.count() == 0


def test_nothing_jumps_while_an_answer_comes(visitor: Visitor) -> None:
    """Layout shifts, as the browser counts them, stay below what people notice (0.1)."""
    visitor.add_note("The lease of the flat in Mill Street ends on 30 June.")
    visitor.page.goto(f"{visitor.served.url}/#/ask?m={visitor.memory}&q={LEASE.replace(' ', '%20')}")
    visitor.page.wait_for_selector(".results:not([aria-busy]) .answer")
    visitor.page.wait_for_timeout(300)
    assert sum(visitor.page.evaluate("window.shifts")) < 0.1


def test_text_of_documents_is_never_markup(visitor: Visitor) -> None:
    visitor.add_note("The password is <img src=x onerror=alert(1)><b>sesame</b>.", "<script>alert(2)</script>")
    visitor.ask("What is the password?")
    assert "<b>sesame</b>" in visitor.page.inner_text(".card")
    assert visitor.page.locator(".card b, .card img").count() == 0
    visitor.open_evidence()
    assert visitor.page.inner_text("h1") == "<script>alert(2)</script>"
