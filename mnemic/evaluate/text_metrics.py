"""Compute the metrics of a network on a dataset of texts, main metric first.

All are percentages, except losses.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.data.corpora import CorpusDataset
from mnemic.data.language_modeling.copies import CopyDataset
from mnemic.data.multi_task.batches import MultiTaskDataset
from mnemic.data.pictures.digits import PictureClassDataset
from mnemic.data.text_tasks.batches import TextDataset
from mnemic.evaluate import metrics
from mnemic.evaluate.answer_thresholds import SpanPrediction, evaluate_spans, summarize_reading, summarize_spans
from mnemic.evaluate.curves import average_precision, roc_auc
from mnemic.evaluate.generation_metrics import compute_generation_metrics
from mnemic.evaluate.intervals import Bounds, Share, bound_shares
from mnemic.evaluate.pictures.alignment import compute_alignment_metrics
from mnemic.evaluate.pictures.captions import compute_caption_metrics
from mnemic.evaluate.pictures.tasks import compute_task_metrics
from mnemic.evaluate.pretraining_metrics import (
    compute_denoising_metrics,
    compute_next_token_metrics,
    compute_replaced_token_metrics,
    compute_restored_token_metrics,
)
from mnemic.evaluate.ranking_metrics import summarize_ranks
from mnemic.evaluate.share_counts import count_shares
from mnemic.evaluate.view_metrics import RECALL_RANKS, compute_pair_cosines, compute_view_metrics
from mnemic.models import IGNORE
from mnemic.models.evaluating import evaluating
from mnemic.objectives.pretraining.masked import MaskedBatch, mask_batch, masked_token_loss
from mnemic.objectives.pretraining.permuted import AskedSpans, permute_batch
from mnemic.objectives.pretraining.tasks import PRETRAINING_TASKS, add_task_ids
from mnemic.objectives.pretraining.token_masking import TokenMasking
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
NEXT_SENTENCE = PRETRAINING_TASKS.index("nsp")
QUESTIONS_PER_BATCH = 500  # compared with all texts at once; changes memory use, not results


class Report(NamedTuple):
    """The metrics of a network on a dataset, with intervals and a reader's answers."""

    metrics: Metrics  # the one that selects the best weights first
    intervals: Bounds  # of metrics that are shares: 95 %, in percent
    bounds: Bounds  # as intervals, if it is the best of several networks
    predictions: Sequence[SpanPrediction] = ()


def compute_metrics(network: nn.Module, dataset: Any) -> Metrics:
    """Compute the metrics that a dataset names, the one that selects the best weights first."""
    return compute_report(network, dataset).metrics


def compute_report(network: nn.Module, dataset: Any, num_models: int = 1) -> Report:
    """Compute the metrics that a dataset names, with intervals and a reader's answers.

    With ``num_models`` the network is the best of so many on this dataset: its shares are bounded.
    """
    if not len(dataset):
        raise ConfigError("there are no texts to evaluate on")
    predictions: Sequence[SpanPrediction] = ()
    if dataset.metrics in OTHER_METRICS:
        values = OTHER_METRICS[dataset.metrics](network, dataset)
    else:
        predictions = evaluate_spans(network, dataset) if dataset.metrics in ANSWER_METRICS else ()
        values = compute_fractions(network, dataset, predictions)
    counts = count_shares(network, dataset, predictions)
    shares = {name: Share(values[name] / 100, counts[name]) for name in values if name in counts}
    return Report(values, *bound_shares(shares, num_models), predictions)


def compute_fractions(network: nn.Module, dataset: Any, predictions: Sequence[SpanPrediction]) -> Metrics:
    """Compute metrics that are fractions, in percent, the dataset's main one first."""
    values = (
        ANSWER_METRICS[dataset.metrics](predictions)
        if predictions
        else FRACTION_METRICS[dataset.metrics](network, dataset)
    )
    if dataset.metrics == "retrieval":
        values |= compute_retrieval_recall(network, dataset)
    values = {dataset.metric: values[dataset.metric]} | values
    return {name: 100 * value for name, value in values.items()}


def compute_classification_metrics(network: nn.Module, dataset: TextDataset) -> Metrics:
    """Compute accuracy, F1 (macro F1 of more than two classes) and Matthews' correlation.

    With two classes also the area under the ROC curve and the average precision of the second.
    """
    logits, targets = compute_class_logits(network, dataset), dataset.targets.tolist()
    values = measure_classes(logits, targets)
    if len(dataset.labels) == 2:
        decisions = score_second_class(logits, targets)
        values |= {"AUROC": roc_auc(*decisions), "average precision": average_precision(*decisions)}
    return values


def score_second_class(logits: Tensor, targets: Sequence[int]) -> tuple[list[float], list[bool]]:
    """Return the probability of the second class per text, and whether it is right."""
    probabilities = logits.double().softmax(1)[:, 1].tolist()
    return probabilities, [target == 1 for target in targets]


def compute_regression_metrics(network: nn.Module, dataset: TextDataset) -> Metrics:
    """Compute Pearson's and Spearman's correlation of predicted numbers and targets.

    A network that rates nothing but embeds predicts the cosine of the two texts of a pair.
    """
    if "rate" in network.respond.methods:  # type: ignore[operator, union-attr]
        outputs = compute_class_logits(network, dataset)
    else:
        outputs = compute_pair_cosines(network, dataset).unsqueeze(1)
    return measure_numbers(outputs, dataset.targets.tolist())


def compute_multi_task_metrics(network: nn.Module, dataset: MultiTaskDataset) -> Metrics:
    """Compute the main metric of each task by its name, and their mean."""
    logits = compute_class_logits(network, dataset)
    starts = [0, *accumulate(len(of_task) for of_task in dataset.datasets)]
    scores = {}
    for number, (name, of_task) in enumerate(zip(dataset.names, dataset.datasets)):
        first, count, is_number = dataset.outputs[:, number].tolist()
        outputs = logits[starts[number] : starts[number + 1], first : first + count]
        targets = of_task.targets.tolist()
        measure = measure_numbers if is_number else measure_classes
        scores[name] = measure(outputs, targets)[of_task.metric] if targets else 0.0
    return {"mean": sum(scores.values()) / len(scores)} | scores


def measure_classes(logits: Tensor, targets: Sequence[int]) -> Metrics:
    """Compute accuracy, F1 (macro F1 of more than two classes) and Matthews' correlation."""
    predictions = logits.argmax(1).tolist()
    return {
        "accuracy": metrics.accuracy(predictions, targets),
        "f1": metrics.f1(predictions, targets) if logits.shape[1] == 2 else metrics.macro_f1(predictions, targets),
        "matthews": metrics.matthews_correlation(predictions, targets),
    }


def measure_numbers(outputs: Tensor, targets: Sequence[float]) -> Metrics:
    """Compute Pearson's and Spearman's correlation of predicted numbers and targets."""
    predictions = outputs.squeeze(1).tolist()
    return {
        "pearson": metrics.pearson_correlation(predictions, targets),
        "spearman": metrics.spearman_correlation(predictions, targets),
    }


def compute_retrieval_recall(network: nn.Module, dataset: TextDataset) -> Metrics:
    """Compute recall among the most similar texts, MRR and nDCG@10.

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
    all_ranks = {variant: torch.cat(batch_ranks) for variant, batch_ranks in ranks.items()}
    recall = {
        f"recall@{top_k}{variant}": float((of_variant < top_k).double().mean())
        for variant, of_variant in all_ranks.items()
        for top_k in RECALL_RANKS
    }
    return recall | summarize_ranks(all_ranks[""].tolist())


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
    recipes can be compared. A network that predicts in a random order is asked for tokens instead;
    one with vectors of tasks is asked for masks and for next sentences by their own.
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
                is_pair, nsp_logits = batch.next_sentence_labels != IGNORE, output.nsp_logits
                if network.encode.num_tasks:  # type: ignore[union-attr]
                    with torch.autocast(corpus.device.type, torch.bfloat16, enabled=on_gpu):
                        nsp_logits = network(add_task_ids(masked.inputs, NEXT_SENTENCE)).logits.nsp_logits
                is_correct = (nsp_logits.argmax(-1) == 1 - batch.next_sentence_labels) & is_pair
                sums_of_batch += [is_correct.sum(), is_pair.sum()]
            sums[: len(sums_of_batch)] += torch.stack(sums_of_batch).double()
    total_loss, num_targets, num_correct, num_followed, num_pairs = sums.tolist()
    values = {"accuracy": 100 * num_correct / max(num_targets, 1), "loss": total_loss / max(num_targets, 1)}
    return values | ({"follows": 100 * num_followed / num_pairs} if num_pairs else {})


def compute_corpus_metrics(network: nn.Module, corpus: CorpusDataset) -> Metrics:
    """Compute the metrics of a corpus that fit what a network predicts."""
    respond: Any = network.respond
    return CORPUS_METRICS[respond.corpus_metrics](network, corpus)


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
    "denoising": compute_denoising_metrics,
    "masked": compute_masked_token_metrics,
    "next-token": compute_next_token_metrics,
    "replaced": compute_replaced_token_metrics,
    "restored": compute_restored_token_metrics,
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
    "seq2seq": compute_generation_metrics,
    "views": compute_view_metrics,
}
FRACTION_METRICS: dict[str, Callable[[nn.Module, Any], Metrics]] = {
    "classes": compute_classification_metrics,
    "copies": compute_copy_metrics,
    "numbers": compute_regression_metrics,
    "multi-task": compute_multi_task_metrics,
    "picture-classes": compute_picture_accuracy,
    "tags": compute_entity_metrics,
}
ANSWER_METRICS: dict[str, Callable[[Sequence[SpanPrediction]], Metrics]] = {
    "spans": summarize_spans,
    "retrieval": summarize_reading,
}
