"""Sentences tile their text, in English and in Chinese."""

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mnemic.text import Span, han_fraction, split_sentences, trim_span
from mnemic.text.rules import find_sentence_ends

MARKS = " \n\t.!?。！？…\"'“”‘’「」『』()（）[]:;,-1aA我"


def split_text(text: str, language: str | None = None) -> list[str]:
    """Split a text into sentences without white space around them."""
    spans = [trim_span(text, span) for span in split_sentences(text, language)]
    return [text[span.start : span.end] for span in spans]


@pytest.mark.parametrize(
    "expected",
    [
        ["Dr. Smith went to the U.S. in 1999.", "He paid 3.14 dollars, e.g. for tea.", "Ok."],
        ['"Really?" she said.', '"Yes. Indeed."', "Mr. and Mrs. Jones left at 5 p.m. today."],
        ["Is it?", "It is!", "Really?!", "Well... yes."],
        ["Version 2.0.1 is out.", "See https://a.b/c?d=e.html now."],
        ["(He left. She stayed.) Then it rained.", "No end"],
        ["😀 Hi.", "😀😀 There!", "E\u0301a."],
    ],
)
def test_english(expected: list[str]) -> None:
    assert split_text(" ".join(expected)) == expected
    assert split_text("  ".join(expected), "en") == expected


@pytest.mark.parametrize(
    "expected",
    [
        ["你好。", "我是小明！", "你呢？", "什么？！", "价格是3.5元。"],
        ["他说：“今天天气很好。”", "然后他走了。", "「真的吗？」", "她说：『不好！』", "完"],
        ["林益世请辞获准。", "2012年6月29日案情急转直下。", "OK吧。", "ok吧！", "3.14是圆周率。"],
    ],
)
def test_chinese(expected: list[str]) -> None:
    assert split_text("".join(expected)) == expected
    assert split_text("\n".join(expected), "zh") == expected


def test_the_language_is_told_by_its_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    # sentencex 1.0 splits both languages in the same way, so the test looks at its arguments.
    languages: list[str] = []
    monkeypatch.setattr("sentencex.get_sentence_boundaries", lambda language, _: languages.append(language) or [])
    for text in ("我在北京 on 3 May", "I met 小明 in Peking", "3.14", ""):
        split_sentences(text)
    split_sentences("我在北京", "de")
    assert languages == ["zh", "en", "en", "en", "de"]


def test_a_language_has_its_own_rules() -> None:
    text = "Am 3. Mai kam er. Er ging."
    assert split_text(text, "de") == ["Am 3. Mai kam er.", "Er ging."]
    assert split_text(text, "en") == ["Am 3.", "Mai kam er.", "Er ging."]


def test_the_share_of_chinese_characters() -> None:
    assert han_fraction("我在 abcd 12!") == pytest.approx(0.25)
    assert han_fraction("！。 ?") == han_fraction("") == 0.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t ", [" \n\t "]),
        ("No end", ["No end"]),
        ("  First.  \n\n Second.\n", ["  First.  \n\n ", "Second.\n"]),
        ("\n\nTitle\n\nBody text. More.", ["\n\nTitle\n\n", "Body text. ", "More."]),
        ("a line\nthat goes on.\nAnother", ["a line\nthat goes on.\n", "Another"]),
        ("Dr.\nSmith came. He\nleft.", ["Dr.\nSmith came. ", "He\nleft."]),
    ],
)
def test_white_space_belongs_to_the_sentence_before_it(text: str, expected: list[str]) -> None:
    assert [text[span.start : span.end] for span in split_sentences(text)] == expected


def test_a_quotation_ends_with_its_line_if_a_sentence_does() -> None:
    lines = ['He said "it began.', "It rained. It poured.", "Dr.\nSmith was", 'the end" and left.']
    assert split_text("\n".join(lines)) == [*lines[:2], "\n".join(lines[2:])]


def test_quotes_that_belong_to_no_pair_stay_where_they_open_or_close() -> None:
    text = 'He said "it began.\nThe "end" came later. It rained.\n"Yes." They left.'
    assert split_text(text) == ['He said "it began.', 'The "end" came later.', "It rained.", '"Yes."', "They left."]
    sentences = ['She said: "I know.', "It rained.", '"So what?"', 'Then "no" again.']
    assert split_text(" ".join(sentences)) == sentences
    assert split_text('He left."Yes," she said.') == ["He left.", '"Yes," she said.']


def test_a_quotation_swallows_no_page() -> None:
    sentence = 'She said: "I know. It rained all day. The end" came.'
    assert split_text(sentence) == [sentence]
    sentences = ['She said: "I know.', *["It rained all day."] * 60, "‘So?’", 'The end" came.']
    assert split_text(" ".join(sentences)) == sentences


def test_trim() -> None:
    text = "  a b\n "
    assert trim_span(text, Span(0, 7)) == Span(2, 5)
    assert trim_span(text, Span(2, 4)) == Span(2, 3)
    assert trim_span(text, Span(0, 2)) == Span(0, 0)
    assert trim_span(text, Span(5, 7)) == Span(5, 5)
    assert trim_span("", Span(0, 0)) == Span(0, 0)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(
    text=st.text(st.one_of(st.characters(), st.sampled_from(MARKS)), max_size=80),
    language=st.sampled_from(["en", "zh", "de", None]),
)
@example(text="a\ud800. B\ud800。C", language="en")
@example(text="a. ?'’\\n\\n 我.", language="en")
@example(text='"A." b.\n" C. "' * 4, language="en")
@example(text='" a.\n" b.\n"' * 80, language=None)
@example(text="「『。』1。」" * 200, language=None)
def test_sentences_tile_any_text(text: str, language: str | None) -> None:
    spans = split_sentences(text, language)
    assert "".join(text[span.start : span.end] for span in spans) == text
    assert [span.start for span in spans] == [0, *(span.end for span in spans)][: len(spans)]
    assert all(span.start < span.end for span in spans)
    assert not any(text[span.start].isspace() for span in spans[1:])
    assert len(spans) == 1 or all(text[span.start : span.end].strip() for span in spans)


def test_plain_rules_need_no_other_package() -> None:
    text = 'He left. "Why?" she said! Of 3.5 apples\n\n a heading \n \nNew.\n'
    text += "小王走了。他说：“好！”然后"
    ends = [0, *find_sentence_ends(text), len(text)]
    assert [text[start:end].strip() for start, end in pairwise(ends)] == [
        "He left.", '"Why?"', "she said!", "Of 3.5 apples", "a heading", "New.", "小王走了。",
        "他说：“好！”", "然后",
    ]  # fmt: skip


def test_plain_rules_know_titles_and_initials() -> None:
    """A period after a title or an initial does not end a sentence."""
    text = "It was Mrs. Bute’s avarice. Mr. W. E. B. Du Bois saw St. Paul’s vs. York, e.g. then. "
    text += "So did I. He is a test. Is it Dr.? So."
    ends = [0, *find_sentence_ends(text), len(text)]
    assert [text[start:end].strip() for start, end in pairwise(ends) if start < end] == [
        "It was Mrs. Bute’s avarice.",
        "Mr. W. E. B. Du Bois saw St. Paul’s vs. York, e.g. then.",
        "So did I.", "He is a test.", "Is it Dr.?", "So.",
    ]  # fmt: skip
