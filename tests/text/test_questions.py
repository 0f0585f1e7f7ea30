"""Forms of questions."""

from random import Random

import pytest

from mnemic.text.questions import drop_question_mark, extract_keywords, misspell, normalize_question


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("what 's  the rock ' s name ?", "what's the rock's name?"),
        ("who does n ’ t believe it , and ca n't ?", "who doesn't believe it, and can't?"),
        ("when ( 1990 ) was the ' second ' act [ c ] ?", "when (1990) was the 'second' act [c]?"),
        ('what is the definition of an " warcraft carrier "?', 'what is the definition of an "warcraft carrier"?'),
        ("what do annelids ' larvae eat?", "what do annelids' larvae eat?"),
        ("What 2. 3 million years cost $ 12. 5 of 10, 000 ?", "what 2.3 million years cost $12.5 of 10,000?"),
        ("in 1990, 12 people of the U. S. Navy", "in 1990, 12 people of the u.s. navy"),
        ("did ac / dc or at & t win 50 % ?", "did ac/dc or at&t win 50%?"),
        ("Où est “ São Paulo ” — 10 – 15 ?", 'ou est "sao paulo" - 10-15?'),
        ("johnson & johnson", "johnson & johnson"),
        ("", ""),
    ],
)
def test_blanks_and_case_are_those_of_one_form(question: str, expected: str) -> None:
    assert normalize_question(question) == expected
    assert normalize_question(expected) == expected


def test_search_fields_get_keywords() -> None:
    assert extract_keywords("What's the well-known address of the dentist?") == "well-known address dentist"
    assert extract_keywords("Who is it?") == "Who is it?"
    assert extract_keywords("Why was it not built?") == "not built"  # negations stay
    assert drop_question_mark("Why ?!") == "Why"
    assert drop_question_mark("?") == "?"


def test_a_typing_error_is_one_edit_within_a_word() -> None:
    question = "Who wrote the history of Carthage?"
    for seed in range(50):
        changed = misspell(question, Random(seed))
        words, changed_words = question.split(), changed.split()
        different = [pair for pair in zip(words, changed_words) if pair[0] != pair[1]]
        assert len(words) == len(changed_words)
        assert len(different) <= 1  # two equal letters may be swapped
        for word, typo in different:
            assert word[0] == typo[0]
            assert abs(len(word) - len(typo)) <= 1
    assert misspell("Who is it?", Random(0)) == "Who is it?"
