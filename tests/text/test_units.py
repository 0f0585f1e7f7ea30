"""The units of a text: lines that stand alone, sentences of prose, and passages of them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic.text.documents import Anchor, DocumentPiece, split_passages
from mnemic.text.documents.units import find_unit_ends, split_blocks

INSURANCE = """Household insurance Helvetia
Policy number: HB-4471-2209
Insured sum: 82,000 euros
Deductible: 150 euros per claim
premium: 214.80 euros, due on 15 March
"""
WRAPPED = """The hall was built in 1897 by Edith Marlowe, who had seen one like it
in Vienna and wanted the same. Its roof fell in during the storm of
March 1953. Note that the museum moved to the old mill in the meantime, and
importantly: nobody complained.
"""
CHINESE = """图书馆的说明
地址：北京市海淀区
电话：010-1234
馆长是王小明。他住在这里。
"""


def units(text: str) -> list[str]:
    ends = find_unit_ends(text)
    return [text[start:end].strip() for start, end in zip((0, *ends), ends)]


def count_words(texts: list[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def test_lines_with_a_key_are_units() -> None:
    assert units(INSURANCE) == INSURANCE.splitlines()
    assert units("Wifi at home\nSSID: zaun\npassword: zaunkoenig-4711-tief\nProvider: Init7") == [
        "Wifi at home", "SSID: zaun", "password: zaunkoenig-4711-tief", "Provider: Init7",
    ]  # fmt: skip
    lease = "Monthly rent: EUR 1,184.50\nNotice: three months to the end of\n  a quarter. In writing.\nPets: none"
    assert units(lease) == [
        "Monthly rent: EUR 1,184.50", "Notice: three months to the end of\n  a quarter.", "In writing.", "Pets: none",
    ]  # fmt: skip


def test_wrapped_prose_stays_together() -> None:
    assert units(WRAPPED) == [
        "The hall was built in 1897 by Edith Marlowe, who had seen one like it\nin Vienna and wanted the same.",
        "Its roof fell in during the storm of\nMarch 1953.",
        "Note that the museum moved to the old mill in the meantime, and\nimportantly: nobody complained.",
    ]
    assert units("A title\n" + WRAPPED)[0] == "A title"
    assert units("Anna Berger\nRosenweg 4\n8001 Zurich") == ["Anna Berger", "Rosenweg 4", "8001 Zurich"]


def test_items_headings_rows_and_code() -> None:
    text = (
        "# Head\n1. Buy milk. And eggs.\n2. Call Dr. Meier\n   at noon\n- a\n* b\n\nTitle\n=====\n"
        "Name   Amount   Date\nAnna\t12\n```sh\nx. Y\n\nz\n```\n> Quoted text. It\n> goes on.\nMine."
    )
    assert units(text) == [
        "# Head", "1. Buy milk.", "And eggs.", "2. Call Dr. Meier\n   at noon", "- a", "* b", "Title\n=====",
        "Name   Amount   Date", "Anna\t12", "```sh\nx. Y\n\nz\n```", "> Quoted text.", "It\n> goes on.", "Mine.",
    ]  # fmt: skip


def test_chinese_units() -> None:
    assert units(CHINESE) == [
        "图书馆的说明", "地址：北京市海淀区", "电话：010-1234", "馆长是王小明。", "他住在这里。",
    ]  # fmt: skip


@settings(deadline=None, max_examples=150)
@given(st.text(st.sampled_from("abA. \n|#-`1:>\t北。：!"), max_size=80))
def test_units_cover_a_text_and_cut_no_word(text: str) -> None:
    assert "".join(text[span.start : span.end] for span, _ in split_blocks(text)) == text
    ends = find_unit_ends(text)
    assert list(ends) == sorted(set(ends))
    assert not text or ends[-1] == len(text)
    for end in ends[:-1]:
        around = text[end - 1 : end + 1]
        assert not (around.isascii() and around.isalnum())


def test_a_long_text_takes_no_longer_than_its_length() -> None:
    for text in ("Deductible: 150 euros\n" * 20_000, "<!--" * 200_000, "word " * 100_000, "a. " * 40_000):
        assert find_unit_ends(text)[-1] == len(text)


def passages(text: str, max_tokens: int) -> list[str]:
    piece = DocumentPiece(text, (Anchor(0, 0, 1),))
    return [passage.text for passage in split_passages([piece], count_words, max_tokens)]


def test_a_heading_stays_with_what_follows_it() -> None:
    text = "One two three four.\n\nHeading\n\nFive six seven eight."
    assert passages(text, 6) == ["One two three four.", "Heading\n\nFive six seven eight."]
    assert passages(text, 4) == ["One two three four.", "Heading", "Five six seven eight."]
    rows = "".join(f"Key {number}: value of it\n" for number in range(9))
    assert all(passage.endswith("of it") for passage in passages(rows, 11))


@pytest.mark.parametrize(
    ("text", "anchors", "expected"),
    [
        ("one two three four", ((0, 0, 1), (8, 20, 2)), "one two\nthree four"),  # a line ends without a blank
        ("one\ntwo three", ((0, 0, 5), (4, 9, 5)), "one two three"),  # an escape on one line
        ("one two three", ((0, 0, 1), (5, 20, 3)), "one two\nthree"),  # inside a word
    ],
)
def test_a_unit_has_the_line_breaks_of_its_original(
    text: str, anchors: tuple[tuple[int, int, int], ...], expected: str
) -> None:
    piece = DocumentPiece(text, tuple(Anchor(*anchor) for anchor in anchors), cuts=(len(text),))
    (passage,) = split_passages([piece], count_words)
    assert passage.text == expected
