"""Run a network over windows of texts, and merge the outputs per text.

Windows are batched by length; a network with a memory reads the windows of a text in order.

Shapes: e texts, w windows, n tokens, c classes or tags, s sentences, d width.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.data.text_tasks.batches import TextDataset, list_windows
from mnemic.data.text_tasks.encode_windows import find_first_tokens
from mnemic.models import TextOutput, WindowBatch
from mnemic.models.evaluating import evaluating
from mnemic.models.segment_text_model import SegmentTextOutput
from mnemic.predict.slot_evidence import OnRead
from mnemic.respond.merge_windows import TokenSpan, find_best_spans, select_best_span
from mnemic.text.sentence_spans import count_sentence_tokens
from mnemic.text.windows import TokenRange, assign_tokens

TOKENS_PER_BATCH = 16_384  # with padding; changes memory use and time, not results


@torch.no_grad()
def map_windows(
    network: Any, dataset: TextDataset, extract: Callable[[Any, WindowBatch], Tensor], on_read: OnRead | None = None
) -> list[Tensor]:
    """Run a network over all windows; return what ``extract`` takes from each (w …), in order.

    ``on_read`` gets the window ids of each batch and what they read from memory, if there is one.
    """
    with evaluating(network):
        extracts: list[Tensor | None] = [None] * (len(dataset.window_starts) - 1)
        for window_ids, inputs, output in read_windows(network, dataset):
            for window, extracted in zip(window_ids.tolist(), extract(output, inputs).float().cpu()):
                extracts[window] = extracted
            if on_read is not None and network.reads_windows_in_turn:
                on_read(window_ids.tolist(), output.slot_reads)
    return [extracted for extracted in extracts if extracted is not None]


def read_windows(network: Any, dataset: TextDataset) -> Iterator[tuple[Tensor, WindowBatch, Any]]:
    """Read all windows in batches; yield window ids, inputs and output."""
    return (read_in_order if network.reads_windows_in_turn else read_by_length)(network, dataset)


def read_by_length(network: Any, dataset: TextDataset) -> Iterator[tuple[Tensor, WindowBatch, TextOutput]]:
    """Read windows in batches of similar length, longest first; yield ids, inputs and output."""
    lengths = dataset.window_starts[1:] - dataset.window_starts[:-1]
    order = lengths.argsort(descending=True, stable=True)
    start, sizes = 0, lengths[order].tolist()
    while start < len(sizes):
        num_windows = max(TOKENS_PER_BATCH // max(sizes[start], 1), 1)
        window_ids = order[start : start + num_windows]
        inputs, _ = dataset.make_windows(window_ids)
        yield window_ids, inputs, network(inputs)
        start += num_windows


def read_in_order(network: Any, dataset: TextDataset) -> Iterator[tuple[Tensor, WindowBatch, SegmentTextOutput]]:
    """Read each text's windows in order with a memory; batch texts by length."""
    first_windows, counts = dataset.first_window[:-1], dataset.first_window.diff()
    order = counts.argsort(descending=True, stable=True)
    width = max(int(dataset.window_starts.diff().max()), 1)
    start = 0
    while start < len(order):
        max_windows = int(counts[order[start]])
        text_ids = order[start : start + max(TOKENS_PER_BATCH // (width * max_windows), 1)]
        state = None
        for offset in range(0, max_windows, max(TOKENS_PER_BATCH // width, 1)):
            num_windows = (counts[text_ids] - offset).clamp(min=0, max=max(TOKENS_PER_BATCH // width, 1))
            document_windows = list_windows(num_windows)
            window_table = (first_windows[text_ids] + offset).unsqueeze(1) + torch.arange(
                document_windows.shape[1], device=text_ids.device
            )
            window_ids = window_table[document_windows >= 0]
            inputs = dataset.make_windows(window_ids)[0]._replace(document_windows=document_windows)
            output = network(inputs, state)
            state = output.state
            yield window_ids, inputs, output
        start += len(text_ids)


def compute_class_logits(network: Any, dataset: TextDataset, on_read: OnRead | None = None) -> Tensor:
    """Compute each text's class logits, or its predicted number (c = 1): e c."""
    if not len(dataset):
        return torch.zeros(0, 1)
    logits = torch.stack(map_windows(network, dataset, lambda output, _: output.logits, on_read))
    if network.reads_windows_in_turn:
        return logits[dataset.first_window[1:].cpu() - 1]  # the last window has the memory of all
    counts = (dataset.first_window[1:] - dataset.first_window[:-1]).cpu()
    return torch.segment_reduce(logits, "mean", lengths=counts, axis=0)  # as ``average_windows``


def predict_spans(network: Any, dataset: TextDataset, on_read: OnRead | None = None) -> list[TokenSpan]:
    """Find the best answer span of each question, in tokens counted from the text's start."""
    has_relevance = network.respond.relevance is not None

    def extract_best(output: Any, _: WindowBatch) -> Tensor:
        ends, no_answer = find_best_spans(output.logits, network.respond.max_tokens)
        relevance = [output.relevance.unsqueeze(1)] if has_relevance else []
        return torch.cat([ends, no_answer.unsqueeze(1), *relevance], 1)  # w 5, w 6 with relevance

    windows = map_windows(network, dataset, extract_best, on_read)
    token_starts, text_spans, first_windows = (
        tensor.tolist() for tensor in (dataset.text_start, dataset.token_range, dataset.first_window)
    )
    spans_by_text = []
    for start, end in pairwise(first_windows):
        window_spans = torch.stack(windows[start:end])
        span = select_best_span(window_spans[:, :4], window_spans[:, 4], window_spans[:, 5] if has_relevance else None)
        shift = text_spans[start + span.window][0] - token_starts[start + span.window]
        spans_by_text.append(span._replace(first_token=span.first_token + shift, last_token=span.last_token + shift))
    return spans_by_text


def compute_tag_logits(network: Any, dataset: TextDataset, on_read: OnRead | None = None) -> list[Tensor]:
    """Compute the tag logits of each text's words (n c).

    A word without a token is ``O``.
    """
    windows = map_windows(network, dataset, lambda output, _: output.logits, on_read)  # n c each
    token_starts, text_spans, first_windows = (
        tensor.tolist() for tensor in (dataset.text_start, dataset.token_range, dataset.first_window)
    )
    tag_logits = []
    for index, example in enumerate(dataset.examples):
        window_ids = range(first_windows[index], first_windows[index + 1])
        window_of_token = assign_tokens([TokenRange(*text_spans[window]) for window in window_ids])
        word_logits = []
        for token in find_first_tokens(dataset.token_offsets(index), example.word_spans):
            if token is None or token >= len(window_of_token):
                word_logits.append(outside_logits(len(dataset.labels)))
                continue
            window = window_ids[window_of_token[token]]
            word_logits.append(windows[window][token_starts[window] + token - text_spans[window][0]])
        tag_logits.append(torch.stack(word_logits) if word_logits else torch.zeros(0, len(dataset.labels)))
    return tag_logits


def outside_logits(num_tags: int) -> Tensor:
    """Return logits (c) that make a word certainly ``O``, the first tag."""
    return torch.tensor([0.0] + [-torch.inf] * (num_tags - 1))


def compute_text_vectors(network: Any, dataset: TextDataset) -> Tensor:
    """Compute a unit vector per text (e d): its normalized mean hidden state.

    A token in two windows counts twice. A text without tokens is all zeros. A response whose
    ``text_vector`` is "first" has the mean of the windows' first states instead.
    """

    def sum_states(output: Any, inputs: WindowBatch) -> Tensor:
        if network.respond.text_vector == "first":
            return output.states[:, 0] * inputs.answer_mask.any(1, keepdim=True)
        return (output.states * inputs.answer_mask.unsqueeze(-1)).sum(1)

    if not len(dataset):
        return torch.zeros(0, network.encode.width)
    sums = torch.stack(map_windows(network, dataset, sum_states))
    counts = (dataset.first_window[1:] - dataset.first_window[:-1]).cpu()
    text_ids = torch.arange(len(dataset)).repeat_interleave(counts)
    totals = sums.new_zeros(len(dataset), sums.shape[1]).index_add(0, text_ids, sums)
    return nn.functional.normalize(totals, dim=1)


def compute_text_and_sentence_vectors(network: Any, dataset: TextDataset) -> tuple[Tensor, list[Tensor]]:
    """Compute the vectors of texts (e d) and sentences (s d) in one pass."""
    if not len(dataset):
        return compute_text_vectors(network, dataset), []
    sums = sum_sentence_states(network, dataset)
    sentence_vectors = [nn.functional.normalize(sentence_sums, dim=1) for sentence_sums in sums]
    if network.respond.text_vector == "first":
        return compute_text_vectors(network, dataset), sentence_vectors
    totals = torch.stack([sentence_sums.sum(0) for sentence_sums in sums])
    return nn.functional.normalize(totals, dim=1), sentence_vectors


@torch.no_grad()
def sum_sentence_states(network: Any, dataset: TextDataset) -> list[Tensor]:
    """Sum the hidden states of each sentence's tokens: s d per text."""
    with evaluating(network):
        width: int = network.encode.width
        lengths = [
            count_sentence_tokens(example.text, dataset.token_offsets(index))
            for index, example in enumerate(dataset.examples)
        ]
        sums = [torch.zeros(len(counts), width) for counts in lengths]
        text_ids = torch.arange(len(dataset)).repeat_interleave(dataset.first_window.diff().cpu()).tolist()
        token_starts, text_spans = dataset.text_start.tolist(), dataset.token_range.tolist()
        for window_ids, inputs, output in read_windows(network, dataset):
            sentence_of_token = torch.full(inputs.tokens.shape, -1)
            for row, window in enumerate(window_ids.tolist()):
                counts = torch.tensor(lengths[text_ids[window]])
                sentence_ids = torch.arange(len(counts)).repeat_interleave(counts)
                window_sentences = sentence_ids[slice(*text_spans[window])]
                sentence_of_token[row, token_starts[window] : token_starts[window] + len(window_sentences)] = (
                    window_sentences
                )
            sentence_range = torch.arange(int(sentence_of_token.max()) + 1).view(-1, 1, 1)
            membership = (sentence_of_token == sentence_range).transpose(0, 1).to(output.states)  # w s n
            pooled = (membership @ output.states).float().cpu()
            for window, window_sums in zip(window_ids.tolist(), pooled):
                # a text's further sentences are in other windows
                text_sums = sums[text_ids[window]][: len(window_sums)]
                text_sums += window_sums[: len(text_sums)]
    return sums
