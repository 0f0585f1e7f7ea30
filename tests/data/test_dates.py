"""Dates in words: readable back by rule, and no tested day among those trained on."""

from datetime import date

import pytest

from mnemic.data.contract import Part
from mnemic.data.seq2seq.dates import MONTHS, PHRASES, ordinal, pairs, part_of, year


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
    assert year(number) == words


def test_every_year_and_every_day_has_words_of_its_own() -> None:
    assert len({year(number) for number in range(1900, 2100)}) == 200
    assert len({ordinal(number) for number in range(1, 32)}) == 31
    assert ordinal(21) == "twenty first"
    assert ordinal(30) == "thirtieth"
    for phrase in PHRASES:
        said = {phrase(date(y, m, d)) for y in (1901, 1999, 2020) for m in (1, 12) for d in (1, 21)}
        assert len(said) == 12


def test_no_tested_day_is_trained_on() -> None:
    parts: list[Part] = ["train", "validation", "test"]
    days = {part: {day for _, day in pairs(part, 3000, seed=1)} for part in parts}
    for part, own in days.items():
        assert all(part_of(date.fromisoformat(day)) == part for day in own)
    assert not days["train"] & (days["validation"] | days["test"])
    found = [part_of(date.fromordinal(700_000 + n)) for n in range(5000)]
    assert 0.08 < found.count("test") / 5000 < 0.12
    assert 0.03 < found.count("validation") / 5000 < 0.07


def test_the_words_say_the_digits() -> None:
    for words, digits in pairs("train", 500, seed=3):
        day = date.fromisoformat(digits)
        assert words in {phrase(day) for phrase in PHRASES}
        assert MONTHS[day.month] in words.split()


def test_the_same_seed_gives_the_same_pairs() -> None:
    assert pairs("train", 50, seed=5) == pairs("train", 50, seed=5)
    assert pairs("train", 50, seed=5) != pairs("train", 50, seed=6)
    assert pairs("train", 80, seed=5)[:50] == pairs("train", 50, seed=5)
