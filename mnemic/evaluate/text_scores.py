"""Scores of generated texts against references, by well-kept libraries: ``mnemic[metrics]``.

All are percentages. The libraries are imported when a score is computed.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from mnemic.evaluate import metrics
from mnemic.recipe import ConfigError, join_words

Texts = Sequence[str]
INSTALL = "install it with: pip install 'mnemic[metrics]'"


def score_bleu(predictions: Texts, references: Texts) -> dict[str, float]:
    """Compute BLEU of a corpus, up to four words (Papineni et al. 2002), by sacrebleu.

    Its tokenization is 13a and letters have a case (Post 2018).
    """
    try:
        from sacrebleu.metrics import BLEU
    except ImportError as error:
        raise ConfigError(f"BLEU is computed by sacrebleu, which is missing; {INSTALL}") from error
    return {"bleu": BLEU().corpus_score(list(predictions), [list(references)]).score}


def score_chrf(predictions: Texts, references: Texts) -> dict[str, float]:
    """Compute chrF2 of a corpus (Popović 2015), by sacrebleu."""
    try:
        from sacrebleu.metrics import CHRF
    except ImportError as error:
        raise ConfigError(f"chrF is computed by sacrebleu, which is missing; {INSTALL}") from error
    return {"chrf": CHRF().corpus_score(list(predictions), [list(references)]).score}


def score_rouge(predictions: Texts, references: Texts) -> dict[str, float]:
    """Compute the mean F1 of ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004), by rouge-score.

    Words are stemmed, as is usual for English.
    """
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise ConfigError(f"ROUGE is computed by rouge-score, which is missing; {INSTALL}") from error
    names = {"rouge1": "rouge-1", "rouge2": "rouge-2", "rougeL": "rouge-l"}
    scorer = RougeScorer(list(names), use_stemmer=True)
    scores = [scorer.score(reference, prediction) for prediction, reference in zip(predictions, references)]
    return {label: 100 * fmean(score[name].fmeasure for score in scores) for name, label in names.items()}


def score_numbers(predictions: Texts, references: Texts) -> dict[str, float]:
    """Compute the correlations of numbers that are said.

    What is no number counts as 0 (T5).
    """
    numbers, targets = ([parse_number(text) for text in texts] for texts in (predictions, references))
    return {
        "pearson": 100 * metrics.pearson_correlation(numbers, targets),
        "spearman": 100 * metrics.spearman_correlation(numbers, targets),
    }


def parse_number(text: str) -> float:
    """Read a number; 0 if it is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0


TEXT_SCORES: Mapping[str, Callable[[Texts, Texts], dict[str, float]]] = {
    "bleu": score_bleu,
    "chrf": score_chrf,
    "rouge": score_rouge,
    "numbers": score_numbers,
}


def score_texts(names: Sequence[str], predictions: Texts, references: Texts) -> dict[str, float]:
    """Compute the scores with these names of texts, each against one reference.

    >>> score_texts(["numbers"], ["1.0", "2.0", "four"], ["1.2", "2.4", "0.0"])
    {'pearson': 100.0, 'spearman': 100.0}
    """
    if unknown := [name for name in names if name not in TEXT_SCORES]:
        raise ConfigError(f"there is no score {unknown[0]!r} of texts; there are {join_words(TEXT_SCORES)}")
    values: dict[str, float] = {}
    for name in names:
        values |= TEXT_SCORES[name](predictions, references)
    return values
