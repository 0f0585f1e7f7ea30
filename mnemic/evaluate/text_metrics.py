"""Compute the metrics of a network on a dataset of texts, main metric first.

All are percentages, except losses.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.data.corpora import CorpusDataset
from mnemic.data.seq2seq.batches import Seq2SeqDataset
from mnemic.data.text_tasks.batches import TextDataset
from mnemic.evaluate import metrics
from mnemic.models import IGNORE
from mnemic.models.evaluating import evaluating
from mnemic.objectives.masking import TokenMasking
from mnemic.objectives.pretraining import mask_batch, masked_token_loss
from mnemic.predict.generate import generate_candidates
from mnemic.predict.perplexity import compute_perplexity
from mnemic.predict.results import NO_ANSWER_THRESHOLD
from mnemic.predict.windows import (
    TOKENS_PER_BATCH,
    compute_class_logits,
    compute_tag_logits,
    compute_text_and_sentence_vectors,
    compute_text_vectors,
    predict_spans,
)
from mnemic.recipe import ConfigError
from mnemic.respond.merge_windows import TokenSpan

Metrics = dict[str, float]
RECALL_RANKS = (1, 5)  # the k of recall@k
QUESTIONS_PER_BATCH = 500  # compared with all texts at once; changes memory use, not results
NUM_BEAMS = 4  # of beam search, reported next to greedy search


def compute_metrics(network: nn.Module, dataset: Any) -> Metrics:
    """Compute the metrics that a dataset names, the one that selects the best weights first."""
    if not len(dataset):
        raise ConfigError("there are no texts to evaluate on")
    if dataset.metrics in OTHER_METRICS:
        return OTHER_METRICS[dataset.metrics](network, dataset)
    values = FRACTION_METRICS[dataset.metrics](network, dataset)
    main_metric = {dataset.metric: values[dataset.metric]}
    return {name: 100 * value for name, value in (main_metric | values).items()}


def compute_classification_metrics(network: nn.Module, dataset: TextDataset) -> Metrics:
    """Compute accuracy, F1 (macro F1 of more than two classes) and Matthews' correlation."""
    predictions, targets = (compute_class_logits(network, dataset).argmax(1).tolist(), dataset.targets.tolist())
    is_binary = len(dataset.labels) == 2
    return {
        "accuracy": metrics.accuracy(predictions, targets),
        "f1": metrics.f1(predictions, targets) if is_binary else metrics.macro_f1(predictions, targets),
        "matthews": metrics.matthews_correlation(predictions, targets),
    }


def compute_regression_metrics(network: nn.Module, dataset: TextDataset) -> Metrics:
    """Compute Pearson's and Spearman's correlation of predicted numbers and targets."""
    predictions, targets = (compute_class_logits(network, dataset).squeeze(1).tolist(), dataset.targets.tolist())
    return {
        "pearson": metrics.pearson_correlation(predictions, targets),
        "spearman": metrics.spearman_correlation(predictions, targets),
    }


def compute_span_metrics(network: nn.Module, dataset: TextDataset) -> Metrics:
    """Compute SQuAD's F1 and exact match, and the accuracy of "no answer".

    If every question has an answer, as in SQuAD 1.1, the best span is always the answer.
    """
    unanswerable = [not example.answers for example in dataset.examples]
    answers, spans = [], predict_spans(network, dataset)
    for index, span in enumerate(spans):
        is_empty = any(unanswerable) and span.no_answer_probability >= NO_ANSWER_THRESHOLD
        answers.append("" if is_empty else quote_span(dataset, index, span))
    values = compute_answer_metrics(answers, [example.references for example in dataset.examples])
    if any(unanswerable):
        values["no answer"] = metrics.accuracy([not text for text in answers], unanswerable)
    return values | compute_domain_metrics(dataset, spans)


def compute_domain_metrics(dataset: TextDataset, spans: Sequence[TokenSpan]) -> Metrics:
    """Compute F1 and exact match of each domain, and the AUROC of "no answer".

    F1 and exact match are of the questions with an answer, which is always predicted. Nothing
    without at least two domains; texts of none are left out.
    """
    rows_by_domain: dict[str, list[int]] = {}
    for index, example in enumerate(dataset.examples):
        rows_by_domain.setdefault(example.domain, []).append(index)
    values: Metrics = {}
    for domain, rows in sorted(rows_by_domain.items()) if len(rows_by_domain.keys() - {""}) > 1 else ():
        if not domain:
            continue
        if answerable := [row for row in rows if dataset.examples[row].answers]:
            references = [dataset.examples[row].references for row in answerable]
            scores = compute_answer_metrics([quote_span(dataset, row, spans[row]) for row in answerable], references)
            values |= {f"{name}, {domain}": score for name, score in scores.items()}
        if 0 < len(answerable) < len(rows):
            probabilities = [spans[row].no_answer_probability for row in rows]
            is_unanswerable = [not dataset.examples[row].answers for row in rows]
            values[f"no answer AUROC, {domain}"] = metrics.area_under_roc(probabilities, is_unanswerable)
    return values


def compute_reading_metrics(network: nn.Module, dataset: TextDataset) -> Metrics:
    """Compute span, no-answer, calibration and retrieval metrics of a retrieve-and-read network.

    F1 and exact match are SQuAD 1.1's: on texts that hold the answer, which is always predicted.
    "No answer" is the balanced accuracy over texts with and without the answer. "Calibration error"
    compares the probability of no answer with its frequency.
    """
    spans = predict_spans(network, dataset)
    is_unanswerable = [not example.answers for example in dataset.examples]
    answerable = [index for index, unanswerable in enumerate(is_unanswerable) if not unanswerable]
    answers = [quote_span(dataset, index, spans[index]) for index in answerable]
    values = compute_answer_metrics(answers, [dataset.examples[index].references for index in answerable])
    probabilities = [span.no_answer_probability for span in spans]
    values["no answer"] = metrics.balanced_accuracy(
        [probability >= NO_ANSWER_THRESHOLD for probability in probabilities], is_unanswerable
    )
    values["calibration error"] = metrics.expected_calibration_error(probabilities, is_unanswerable)
    return values | compute_retrieval_recall(network, dataset) | compute_domain_metrics(dataset, spans)


def compute_retrieval_recall(network: nn.Module, dataset: TextDataset) -> Metrics:
    """Compute how often a question's text is among the 1 or 5 most similar texts.

    A text is as similar as its most similar sentence; "whole" uses one vector per text instead.
    """
    if dataset.retrieval is None or not len(dataset.retrieval.questions):
        return {}
    question_vectors = compute_text_vectors(network, dataset.retrieval.questions)
    text_vectors, sentence_vectors = compute_text_and_sentence_vectors(network, dataset.retrieval.texts)
    counts = torch.tensor([len(vectors) for vectors in sentence_vectors])
    all_sentences, target_ids = (torch.cat(sentence_vectors), torch.tensor(dataset.retrieval.gold_texts))
    ranks: dict[str, list[Tensor]] = {"": [], ", whole": []}
    for batch, batch_targets in zip(question_vectors.split(QUESTIONS_PER_BATCH), target_ids.split(QUESTIONS_PER_BATCH)):
        sentence_scores = torch.segment_reduce(all_sentences @ batch.mT, "max", lengths=counts, axis=0).mT
        for variant, scores in (("", sentence_scores), (", whole", batch @ text_vectors.mT)):
            ranks[variant].append((scores > scores.gather(1, batch_targets.unsqueeze(1))).sum(1))
    return {
        f"recall@{top_k}{variant}": float((torch.cat(batch_ranks) < top_k).double().mean())
        for variant, batch_ranks in ranks.items()
        for top_k in RECALL_RANKS
    }


def quote_span(dataset: TextDataset, index: int, span: TokenSpan) -> str:
    """Return the text of an answer span; empty if the text has no tokens."""
    offsets, text = dataset.token_offsets(index), dataset.examples[index].text
    return text[offsets[span.first_token][0] : offsets[span.last_token][1]] if offsets else ""


def compute_answer_metrics(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> Metrics:
    """Compute the mean F1 and exact match of predictions, each with its possible answers."""
    pairs, count = list(zip(predictions, answers)), max(len(predictions), 1)
    return {
        "f1": sum(metrics.answer_f1(*pair) for pair in pairs) / count,
        "exact": sum(metrics.exact_match(*pair) for pair in pairs) / count,
    }


def compute_entity_metrics(network: nn.Module, dataset: TextDataset) -> Metrics:
    """Compute F1, precision and recall of named entities."""
    predictions = [
        [dataset.labels[tag] for tag in logits.argmax(1).tolist()] for logits in compute_tag_logits(network, dataset)
    ]
    scores = metrics.entity_f1(predictions, [example.tags for example in dataset.examples])
    return {"entity f1": scores.f1, "precision": scores.precision, "recall": scores.recall}


@torch.no_grad()
def compute_masked_token_metrics(network: nn.Module, corpus: CorpusDataset) -> Metrics:
    """Compute accuracy and loss on masked tokens, and the accuracy of next-sentence prediction.

    The masks are single tokens and always the same, however the network was trained, so that
    recipes can be compared. On a GPU matrix products are in bfloat16.
    """
    on_gpu = corpus.device.type == "cuda"
    with evaluating(network):
        sums = torch.zeros(5, dtype=torch.float64, device=corpus.device)
        rows = torch.arange(len(corpus), device=corpus.device)
        for batch_rows in rows.split(max(TOKENS_PER_BATCH // corpus.max_length, 1)):
            batch = corpus.batch(batch_rows, compact=not on_gpu)
            masked = mask_batch(batch, TokenMasking())
            with torch.autocast(corpus.device.type, torch.bfloat16, enabled=on_gpu):
                output = network(masked.inputs).logits
            loss = masked_token_loss(output, masked)
            sums_of_batch = [loss.total, loss.num_targets, (output.masked_logits.argmax(-1) == masked.targets).sum()]
            if output.nsp_logits is not None:
                is_pair = batch.next_sentence_labels != IGNORE
                is_correct = (output.nsp_logits.argmax(-1) == 1 - batch.next_sentence_labels) & is_pair
                sums_of_batch += [is_correct.sum(), is_pair.sum()]
            sums[: len(sums_of_batch)] += torch.stack(sums_of_batch).double()
    total_loss, num_targets, num_correct, num_followed, num_pairs = sums.tolist()
    values = {"accuracy": 100 * num_correct / max(num_targets, 1), "loss": total_loss / max(num_targets, 1)}
    return values | ({"follows": 100 * num_followed / num_pairs} if num_pairs else {})


def compute_generation_metrics(network: nn.Module, dataset: Seq2SeqDataset) -> Metrics:
    """Compute the exact match of generated answers, by greedy and by beam search."""
    bounds = dataset.answer.offsets.tolist()
    answers = [dataset.tokenizer.decode(dataset.answer.ids[start:end].tolist()) for start, end in pairwise(bounds)]
    predictions = {
        num_beams: [candidates[0][0] for candidates in generate_candidates(network, dataset, num_beams)]
        for num_beams in (1, NUM_BEAMS)
    }
    return {
        "exact": metrics.accuracy(predictions[1], answers),
        f"exact, {NUM_BEAMS} beams": metrics.accuracy(predictions[NUM_BEAMS], answers),
    }


# By the name that a dataset has for its metrics.
OTHER_METRICS: dict[str, Callable[[nn.Module, Any], Metrics]] = {
    "masked": compute_masked_token_metrics,
    "perplexity": compute_perplexity,
}
FRACTION_METRICS: dict[str, Callable[[nn.Module, Any], Metrics]] = {
    "classes": compute_classification_metrics,
    "numbers": compute_regression_metrics,
    "seq2seq": compute_generation_metrics,
    "spans": compute_span_metrics,
    "tags": compute_entity_metrics,
    "retrieval": compute_reading_metrics,
}
