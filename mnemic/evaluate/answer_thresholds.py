"""Judge the answers of a span reader, and choose a threshold of "no answer"."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import nn

from mnemic.data.text_tasks.batches import TextDataset
from mnemic.evaluate import metrics
from mnemic.evaluate.curves import average_precision, roc_auc
from mnemic.predict.results import NO_ANSWER_THRESHOLD
from mnemic.predict.windows import predict_spans
from mnemic.respond.merge_windows import TokenSpan

MIN_RIGHT_F1 = 0.5  # of an answer that counts as right
THRESHOLDS = tuple(number / 10 for number in range(1, 10))


class SpanPrediction(NamedTuple):
    """A reader's best span for a question and its text, compared with the right answers."""

    has_answer: bool
    probability: float  # that the text has an answer, as predicted
    exact: float  # of the best span, also if the text has no answer: then 0
    f1: float
    domain: str = ""


class ThresholdRow(NamedTuple):
    """What a reader does that answers from a probability on; shares from 0 to 1."""

    threshold: float
    answered: float  # of the questions with an answer, those that get one
    false_answers: float  # of the questions without an answer, those that get one
    precision: float  # of the answers, those that are right; 1 without answers
    exact: float  # as in SQuAD 2.0: no answer is right where there is none
    f1: float


def evaluate_spans(network: nn.Module, dataset: TextDataset) -> list[SpanPrediction]:
    """Answer all questions of a dataset and compare the best spans with the right answers."""
    return compare_spans(dataset, predict_spans(network, dataset))


def compare_spans(dataset: TextDataset, spans: Sequence[TokenSpan]) -> list[SpanPrediction]:
    """Compare the span of each question with its right answers."""
    predictions = []
    for index, span in enumerate(spans):
        example, text, exact, f1 = dataset.examples[index], quote_span(dataset, index, span), 0.0, 0.0
        if example.answers:
            exact, f1 = (metric(text, example.references) for metric in (metrics.exact_match, metrics.answer_f1))
        probability = 1 - span.no_answer_probability
        predictions.append(SpanPrediction(bool(example.answers), probability, exact, f1, example.domain))
    return predictions


def quote_span(dataset: TextDataset, index: int, span: TokenSpan) -> str:
    """Return the text of an answer span; empty if the text has no tokens."""
    offsets, text = dataset.token_offsets(index), dataset.examples[index].text
    return text[offsets[span.first_token][0] : offsets[span.last_token][1]] if offsets else ""


def summarize_spans(predictions: Sequence[SpanPrediction]) -> dict[str, float]:
    """Compute SQuAD's F1 and exact match, and what tells questions without an answer.

    If every question has an answer, as in SQuAD 1.1, the best span is always the answer. Otherwise
    there are the accuracy of "no answer", the area under its ROC curve and its average precision.
    """
    if all(case.has_answer for case in predictions):
        return average_answers(predictions) | summarize_domains(predictions)
    at_threshold = apply_threshold(predictions, 1 - NO_ANSWER_THRESHOLD)
    is_unanswerable = [not case.has_answer for case in predictions]
    decisions = [1 - case.probability >= NO_ANSWER_THRESHOLD for case in predictions]
    return (
        {"f1": at_threshold.f1, "exact": at_threshold.exact, "no answer": metrics.accuracy(decisions, is_unanswerable)}
        | summarize_ranking(predictions)
        | summarize_domains(predictions)
    )


def summarize_reading(predictions: Sequence[SpanPrediction]) -> dict[str, float]:
    """Compute span, no-answer and calibration metrics of a retrieve-and-read network.

    F1 and exact match are SQuAD 1.1's: on texts that hold the answer, which is always predicted.
    "No answer" is the balanced accuracy over texts with and without the answer. "Calibration error"
    compares the probability of no answer with its frequency.
    """
    is_unanswerable = [not case.has_answer for case in predictions]
    probabilities = [1 - case.probability for case in predictions]
    values = average_answers([case for case in predictions if case.has_answer])
    values["no answer"] = metrics.balanced_accuracy(
        [probability >= NO_ANSWER_THRESHOLD for probability in probabilities], is_unanswerable
    )
    values["calibration error"] = metrics.expected_calibration_error(probabilities, is_unanswerable)
    return values | summarize_ranking(predictions) | summarize_domains(predictions)


def summarize_ranking(predictions: Sequence[SpanPrediction]) -> dict[str, float]:
    """Measure how well the probability of no answer ranks questions without an answer."""
    scores = [1 - case.probability for case in predictions], [not case.has_answer for case in predictions]
    return {"no answer AUROC": roc_auc(*scores), "no answer average precision": average_precision(*scores)}


def summarize_domains(predictions: Sequence[SpanPrediction]) -> dict[str, float]:
    """Compute F1 and exact match of each domain, and the AUROC of "no answer".

    F1 and exact match are of the questions with an answer, which is always predicted. Nothing
    without at least two domains; texts of none are left out.
    """
    by_domain: dict[str, list[SpanPrediction]] = {}
    for case in predictions:
        by_domain.setdefault(case.domain, []).append(case)
    by_domain.pop("", None)
    values: dict[str, float] = {}
    for domain, cases in sorted(by_domain.items()) if len(by_domain) > 1 else ():
        if answerable := [case for case in cases if case.has_answer]:
            values |= {f"{name}, {domain}": value for name, value in average_answers(answerable).items()}
        if 0 < len(answerable) < len(cases):
            scores = [1 - case.probability for case in cases], [not case.has_answer for case in cases]
            values[f"no answer AUROC, {domain}"] = roc_auc(*scores)
    return values


def average_answers(predictions: Sequence[SpanPrediction]) -> dict[str, float]:
    """Average F1 and exact match."""
    count = max(len(predictions), 1)
    return {
        "f1": sum(case.f1 for case in predictions) / count,
        "exact": sum(case.exact for case in predictions) / count,
    }


def apply_threshold(predictions: Sequence[SpanPrediction], threshold: float) -> ThresholdRow:
    """Measure a reader that answers from a probability on, and else says "no answer"."""
    answered = [case for case in predictions if case.probability > threshold]
    num_answerable = sum(case.has_answer for case in predictions)
    num_right_silences = sum(not case.has_answer and case.probability <= threshold for case in predictions)
    num_answered = sum(case.has_answer for case in answered)
    count = max(len(predictions), 1)
    return ThresholdRow(
        threshold=threshold,
        answered=num_answered / max(num_answerable, 1),
        false_answers=(len(answered) - num_answered) / max(len(predictions) - num_answerable, 1),
        precision=sum(case.f1 >= MIN_RIGHT_F1 for case in answered) / len(answered) if answered else 1.0,
        exact=(sum(case.exact for case in answered) + num_right_silences) / count,
        f1=(sum(case.f1 for case in answered) + num_right_silences) / count,
    )


def tabulate_thresholds(predictions: Sequence[SpanPrediction]) -> list[ThresholdRow]:
    """Measure a reader at several thresholds, and at the one with the best F1.

    The best threshold is that of these very questions: choose it on validation data.
    """
    rows = [apply_threshold(predictions, threshold) for threshold in THRESHOLDS]
    best = apply_threshold(predictions, find_best_threshold(predictions))
    return sorted([*rows, best], key=lambda row: row.threshold)


def find_best_threshold(predictions: Sequence[SpanPrediction]) -> float:
    """Find the threshold with the best F1; answers are those above it.

    From the most certain answer down, each further answer adds its F1, or costs a right silence.
    """
    ordered = sorted(predictions, key=lambda case: -case.probability)
    gain, best_gain, best_threshold = 0.0, 0.0, 1.0
    for index, case in enumerate(ordered):
        gain += case.f1 if case.has_answer else -1.0
        following = ordered[index + 1].probability if index + 1 < len(ordered) else 0.0
        if gain > best_gain and following < case.probability:
            best_gain, best_threshold = gain, (case.probability + following) / 2
    return best_threshold
