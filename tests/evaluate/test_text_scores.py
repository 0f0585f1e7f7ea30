"""Scores of generated texts: by hand, at their ends, and what is said without the libraries."""

import sys
from math import exp, log

import pytest

from mnemic.evaluate.text_scores import TEXT_SCORES, score_texts
from mnemic.recipe import ConfigError

REFERENCES = ["the cat sat on the mat today .", "a dog barks at the red house ."]


@pytest.mark.parametrize("name", ["bleu", "chrf", "rouge"])
def test_equal_texts_are_right_and_strange_ones_are_not(name: str) -> None:
    assert list(score_texts([name], REFERENCES, REFERENCES).values()) == pytest.approx(
        [100] * (3 if name == "rouge" else 1)
    )
    assert max(score_texts([name], ["zzz", "qqq"], REFERENCES).values()) < 2


def test_bleu_is_that_of_the_paper() -> None:
    """Precisions 5/6, 3/5, 1/4 and, smoothed, 1/(2·3) of one text of six words against eight."""
    score = score_texts(["bleu"], ["the cat sat in the mat"], REFERENCES[:1])["bleu"]
    precisions = [5 / 6, 3 / 5, 1 / 4, 1 / 6]
    brevity = exp(1 - 8 / 6)
    assert score == pytest.approx(100 * brevity * exp(sum(map(log, precisions)) / 4))
    swapped = score_texts(["bleu"], ["x y", "the cat sat in the mat"], ["x y", REFERENCES[0]])["bleu"]
    assert swapped == score_texts(["bleu"], ["the cat sat in the mat", "x y"], [REFERENCES[0], "x y"])["bleu"]


def test_rouge_is_the_mean_f1_of_stemmed_words() -> None:
    scores = score_texts(["rouge"], ["the cats sat", "b"], ["the cat sat down", "a"])
    assert scores["rouge-1"] == pytest.approx(100 * (2 * 1 * 0.75 / 1.75) / 2)
    assert scores["rouge-l"] == pytest.approx(scores["rouge-1"])
    assert scores["rouge-2"] == pytest.approx(100 * (2 * 1 * (2 / 3) / (5 / 3)) / 2)


def test_numbers_that_are_said() -> None:
    assert score_texts(["numbers"], ["0.0", "2.0", "4.0"], ["0.2", "2.2", "4.2"])["pearson"] == pytest.approx(100)
    assert score_texts(["numbers"], ["?", "-1.0"], ["1.0", "0.0"])["pearson"] == pytest.approx(100)  # 0 and -1


def test_unknown_scores_and_missing_libraries_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="there is no score 'blue' of texts; there are bleu"):
        score_texts(["blue"], [], [])
    for module in ("sacrebleu.metrics", "rouge_score.rouge_scorer"):
        monkeypatch.setitem(sys.modules, module, None)
    for name in ("bleu", "chrf", "rouge"):
        with pytest.raises(ConfigError, match=r"pip install 'mnemic\[metrics\]'"):
            score_texts([name], ["a"], ["a"])
    assert set(TEXT_SCORES) >= {"bleu", "chrf", "rouge", "numbers"}
