"""Compute the metrics of a network on a dataset of texts, main metric first.

All are percentages, except losses.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.data.corpora import CorpusDataset
from mnemic.data.language_modeling.copies import CopyDataset
from mnemic.data.pictures.digits import PictureClassDataset
from mnemic.data.seq2seq.batches import Seq2SeqDataset
from mnemic.data.text_tasks.batches import TextDataset
from mnemic.evaluate import metrics
from mnemic.evaluate.answer_thresholds import SpanPrediction, evaluate_spans, summarize_reading, summarize_spans
from mnemic.evaluate.caption_metrics import compute_caption_metrics
from mnemic.evaluate.intervals import bound_best, wilson_interval
from mnemic.evaluate.pictures.alignment import compute_alignment_metrics
from mnemic.evaluate.pictures.tasks import compute_task_metrics
from mnemic.evaluate.pretraining_metrics import compute_next_token_metrics, compute_replaced_token_metrics
from mnemic.evaluate.view_metrics import RECALL_RANKS, compute_pair_cosines, compute_view_metrics
from mnemic.models import IGNORE
from mnemic.models.evaluating import evaluating
from mnemic.objectives.pretraining.masked import MaskedBatch, mask_batch, masked_token_loss
from mnemic.objectives.pretraining.permuted import AskedSpans, permute_batch
from mnemic.objectives.pretraining.token_masking import TokenMasking
from mnemic.predict.generate import generate_candidates
from mnemic.predict.perplexity import compute_perplexity
from mnemic.predict.windows import (
    TOKENS_PER_BATCH,
    compute_class_logits,
    compute_tag_logits,
    compute_text_and_sentence_vectors,
    compute_text_vectors,
)
from mnemic.recipe import ConfigError

Metrics = dict[str, float]
RECALL_NAMES = tuple(f"recall@{top_k}{variant}" for variant in ("", ", whole") for top_k in RECALL_RANKS)
QUESTIONS_PER_BATCH = 500  # compared with all texts at once; changes memory use, not results
NUM_BEAMS = 4  # of beam search, reported next to greedy search


class Report(NamedTuple):
    """The metrics of a network on a dataset, with intervals and a reader's answers."""

    metrics: Metrics  # the one that selects the best weights first
    intervals: dict[str, tuple[float, float]]  # of metrics that are shares: 95 %, in percent
    predictions: list[SpanPrediction]
    bounds: dict[str, tuple[float, float]]  # as intervals, if it is the best of several networks


def compute_metrics(network: nn.Module, dataset: Any) -> Metrics:
    """Compute the metrics that a dataset names, the one that selects the best weights first."""
    return compute_report(network, dataset).metrics


def compute_report(network: nn.Module, dataset: Any, num_models: int = 1) -> Report:
    """Compute the metrics that a dataset names, with intervals and a reader's answers.

    With ``num_models`` the network is the best of so many on this dataset: its shares are bounded.
    """
    if not len(dataset):
        raise ConfigError("there are no texts to evaluate on")
    if dataset.metrics in OTHER_METRICS:
        return Report(OTHER_METRICS[dataset.metrics](network, dataset), {}, [], {})
    predictions = evaluate_spans(network, dataset) if dataset.metrics in ANSWER_METRICS else []
    values = (
        ANSWER_METRICS[dataset.metrics](predictions)
        if predictions
        else FRACTION_METRICS[dataset.metrics](network, dataset)
    )
    if dataset.metrics == "retrieval":
        values |= compute_retrieval_recall(network, dataset)
    values = {dataset.metric: values[dataset.metric]} | values
    # Recall, and the answers of a retrieval set, are of the questions that have one.
    count = sum(case.has_answer for case in predictions) if dataset.metrics == "retrieval" else len(dataset)
    shares = {name: values[name] for name in values if name in SHARES.get(dataset.metrics, ())}
    intervals = {name: wilson_interval(min(share, 1.0), count) for name, share in shares.items()}
    bounds = {name: bound_best(min(share, 1.0), count, num_models) for name, share in shares.items()}
    return Report(
        {name: 100 * value for name, value in values.items()},
        {name: (100 * low, 100 * high) for name, (low, high) in intervals.items()},
        predictions,
        {name: (100 * low, 100 * high) for name, (low, high) in bounds.items()} if num_models > 1 else {},
    )


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
    """Compute Pearson's and Spearman's correlation of predicted numbers and targets.

    A network that rates nothing but embeds predicts the cosine of the two texts of a pair.
    """
    targets = dataset.targets.tolist()
    if "rate" in network.respond.methods:  # type: ignore[operator, union-attr]
        predictions = compute_class_logits(network, dataset).squeeze(1).tolist()
    else:
        predictions = compute_pair_cosines(network, dataset).tolist()
    return {
        "pearson": metrics.pearson_correlation(predictions, targets),
        "spearman": metrics.spearman_correlation(predictions, targets),
    }


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
    recipes can be compared. A network that predicts in a random order is asked for tokens instead.
    On a GPU matrix products are in bfloat16.
    """
    on_gpu = corpus.device.type == "cuda"
    corrupt = CORRUPTIONS[network.respond.corruption]  # type: ignore[union-attr, index]
    with evaluating(network):
        sums = torch.zeros(5, dtype=torch.float64, device=corpus.device)
        rows = torch.arange(len(corpus), device=corpus.device)
        for batch_rows in rows.split(max(TOKENS_PER_BATCH // corpus.max_length, 1)):
            batch = corpus.batch(batch_rows, compact=not on_gpu)
            masked = corrupt(batch)
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


def compute_corpus_metrics(network: nn.Module, corpus: CorpusDataset) -> Metrics:
    """Compute the metrics of a corpus that fit what a network predicts."""
    respond: Any = network.respond
    return CORPUS_METRICS[respond.corpus_metrics](network, corpus)


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


@torch.no_grad()
def compute_copy_metrics(network: nn.Module, dataset: CopyDataset) -> Metrics:
    """Compute the shares of right tokens and of right texts, of second halves."""
    results = []  # b n, where a target is right; NaN without a target
    with evaluating(network):
        for rows in torch.arange(len(dataset), device=dataset.device).split(TOKENS_PER_BATCH // dataset.max_tokens + 1):
            batch = dataset.batch(rows, compact=False)
            is_right = (network(batch.inputs).logits.argmax(-1) == batch.targets).double()
            results.append(is_right.masked_fill(batch.targets == IGNORE, float("nan")))
    is_right = torch.cat(results)
    return {
        "accuracy": float(is_right.nanmean()),
        "whole texts": float((is_right.nansum(1) == is_right.isfinite().sum(1)).double().mean()),
    }


@torch.no_grad()
def compute_picture_accuracy(network: nn.Module, dataset: PictureClassDataset) -> Metrics:
    """Compute the share of pictures whose class is right."""
    with evaluating(network):
        rows = torch.arange(len(dataset), device=dataset.device)
        classes = [network(dataset.batch(batch).inputs).logits.argmax(-1) for batch in rows.split(TOKENS_PER_BATCH)]
    return {"accuracy": float((torch.cat(classes) == dataset.targets).double().mean())}


# By the name that a response has for them.
CORPUS_METRICS: dict[str, Callable[[nn.Module, Any], Metrics]] = {
    "masked": compute_masked_token_metrics,
    "next-token": compute_next_token_metrics,
    "replaced": compute_replaced_token_metrics,
}
# By the name that a response to masked tokens has for its corruption.
CORRUPTIONS: dict[str, Callable[[Any], MaskedBatch]] = {
    "masked": lambda batch: mask_batch(batch, TokenMasking()),
    "permuted": lambda batch: permute_batch(batch, AskedSpans()),
}
# By the name that a dataset has for its metrics.
OTHER_METRICS: dict[str, Callable[[nn.Module, Any], Metrics]] = {
    "alignment": compute_alignment_metrics,
    "tasks": compute_task_metrics,
    "captions": compute_caption_metrics,
    "masked": compute_corpus_metrics,
    "perplexity": compute_perplexity,
    "views": compute_view_metrics,
}
FRACTION_METRICS: dict[str, Callable[[nn.Module, Any], Metrics]] = {
    "classes": compute_classification_metrics,
    "copies": compute_copy_metrics,
    "numbers": compute_regression_metrics,
    "picture-classes": compute_picture_accuracy,
    "seq2seq": compute_generation_metrics,
    "tags": compute_entity_metrics,
}
ANSWER_METRICS: dict[str, Callable[[Sequence[SpanPrediction]], Metrics]] = {
    "spans": summarize_spans,
    "retrieval": summarize_reading,
}
# Metrics that are means over examples of values from 0 to 1: they have an interval.
SHARES: dict[str, tuple[str, ...]] = {
    "classes": ("accuracy",),
    "copies": ("whole texts",),
    "picture-classes": ("accuracy",),
    "seq2seq": ("exact", f"exact, {NUM_BEAMS} beams"),
    "spans": ("f1", "exact", "no answer"),
    "retrieval": ("f1", "exact", *RECALL_NAMES),
}
