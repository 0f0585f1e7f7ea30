"""Dates in words: they can be parsed back, and test days are not in training."""

from datetime import date

import pytest

from mnemic.data.contract import Split
from mnemic.data.seq2seq.dates import MONTHS, PHRASES, generate_dates, spell_ordinal, spell_year, split_of


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1900, "nineteen hundred"),
        (1905, "nineteen oh five"),
        (1910, "nineteen ten"),
        (1984, "nineteen eighty four"),
        (2000, "two thousand"),
        (2007, "two thousand and seven"),
        (2015, "twenty fifteen"),
        (2099, "twenty ninety nine"),
    ],
)
def test_years(number: int, words: str) -> None:
    assert spell_year(number) == words


def test_every_year_and_every_day_has_words_of_its_own() -> None:
    assert len({spell_year(number) for number in range(1900, 2100)}) == 200
    assert len({spell_ordinal(number) for number in range(1, 32)}) == 31
    assert spell_ordinal(21) == "twenty first"
    assert spell_ordinal(30) == "thirtieth"
    for phrase in PHRASES:
        phrases = {phrase(date(y, m, d)) for y in (1901, 1999, 2020) for m in (1, 12) for d in (1, 21)}
        assert len(phrases) == 12


def test_no_tested_day_is_trained_on() -> None:
    splits: list[Split] = ["train", "validation", "test"]
    days = {split: {day for _, day in generate_dates(split, 3000, seed=1)} for split in splits}
    for split, split_days in days.items():
        assert all(split_of(date.fromisoformat(day)) == split for day in split_days)
    assert not days["train"] & (days["validation"] | days["test"])
    day_splits = [split_of(date.fromordinal(700_000 + n)) for n in range(5000)]
    assert 0.08 < day_splits.count("test") / 5000 < 0.12
    assert 0.03 < day_splits.count("validation") / 5000 < 0.07


def test_the_words_say_the_digits() -> None:
    for words, digits in generate_dates("train", 500, seed=3):
        day = date.fromisoformat(digits)
        assert words in {phrase(day) for phrase in PHRASES}
        assert MONTHS[day.month] in words.split()


def test_the_same_seed_gives_the_same_pairs() -> None:
    assert generate_dates("train", 50, seed=5) == generate_dates("train", 50, seed=5)
    assert generate_dates("train", 50, seed=5) != generate_dates("train", 50, seed=6)
    assert generate_dates("train", 80, seed=5)[:50] == generate_dates("train", 50, seed=5)
