"""Networks, long texts and tables in the page."""

from visitor import Visitor

SENTENCES = [
    "The museum was founded by Edith Marlowe in 1897.",
    "Visitors pay nothing on Sundays.",
    "The oldest picture shows a harbor in fog.",
]


def test_a_story_in_an_entity_network(visitor: Visitor) -> None:
    visitor.open("networks", selector="#network")
    visitor.page.select_option("#network", "entnet-babi")
    visitor.page.fill("#story", "Mary went to the garden.\nJohn moved to the office.")
    visitor.page.fill("#story-question", "Where is John?")
    visitor.page.click(".network-form .primary")
    visitor.page.wait_for_selector(".network-results .answer-words")
    assert visitor.page.inner_text(".answer-words") == "office"
    attention, slots = (visitor.page.locator(".network-results table").nth(number) for number in (0, 1))
    weights = [float(text) for text in attention.locator("tbody td").all_inner_texts()]
    assert attention.locator("tbody tr").count() == 2
    assert weights[-1] > 0.5 > weights[0]  # the second sentence was read
    assert slots.locator("tbody tr").count() == 3  # two sentences, and what was read of each slot
    gates = [float(text) for text in slots.locator("tbody td").all_inner_texts()]
    assert max(gates) > 0.5


def test_a_generated_story_has_its_own_answer(visitor: Visitor) -> None:
    visitor.open("networks", selector="#network")
    visitor.page.click("text=Generate a story")
    visitor.page.wait_for_selector("#live:has-text('A new story is there')", state="attached")
    visitor.page.click(".network-form .primary")
    visitor.page.wait_for_selector("text=The story's own answer")


def test_a_long_text_is_read_and_asked(visitor: Visitor) -> None:
    filler = " ".join(f"Room {number} holds chairs of the year {1700 + number}." for number in range(120))
    visitor.open("text", selector="#long-text")
    visitor.page.fill("#long-text", f"{' '.join(SENTENCES)} {filler}")
    visitor.page.fill("#text-name", "Museum")
    visitor.page.click(".text-form .primary")
    visitor.page.wait_for_selector(".strip")
    assert visitor.page.inner_text("h1") == "Museum"
    assert visitor.page.locator(".strip rect").count() == 123
    visitor.page.locator(".strip rect").first.click(force=True)
    assert visitor.page.inner_text(".long-text mark").strip() == SENTENCES[0]
    visitor.page.focus("#sentence")
    visitor.page.keyboard.press("ArrowRight")  # the same without a mouse
    assert visitor.page.inner_text(".long-text mark").strip() == SENTENCES[1]
    assert visitor.page.get_attribute("#sentence", "aria-valuetext").startswith("Sentence 2, storage weight 0.")
    assert visitor.page.locator(".slot-grid rect").count() > 1
    visitor.page.fill("#text-question", "Who founded the museum?")
    visitor.page.click(".text-ask .primary")
    visitor.page.wait_for_selector(".text-answer .answer-words")
    assert "Edith Marlowe" in visitor.page.inner_text(".text-answer .answer-words")
    assert SENTENCES[0] in visitor.page.inner_text(".text-answer table")
    visitor.page.reload()  # the address is that of the text
    visitor.page.wait_for_selector(".strip")
    assert visitor.page.inner_text("h1") == "Museum"


def test_tables_are_sorted(visitor: Visitor) -> None:
    visitor.open("tables", selector=".figures")
    table = visitor.page.locator(".figures").first
    head = table.locator("th", has_text="Here").first
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    column = table.locator("thead th").all_inner_texts()
    number = next(index for index, text in enumerate(column) if text.startswith("Here"))
    texts = [row.locator("th, td").nth(number).inner_text() for row in table.locator("tbody tr").all()]
    values = [float(text.replace(",", "")) for text in texts if text]
    assert values == sorted(values)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
