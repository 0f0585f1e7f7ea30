"""Windows of a question with a text, made from a batch of single ones.

Shapes: n pairs, t tokens of the row, w tokens of the longest window.
"""

import torch
from torch import Tensor

from mnemic.data.text_tasks.retrieval_batches import RetrievalBatch
from mnemic.models import WindowBatch


def make_pairs(batch: RetrievalBatch, questions: Tensor, texts: Tensor) -> WindowBatch:
    """Put each question before a text, as a cross-encoder reads them.

    ``questions`` and ``texts`` (n) are their numbers in the batch, whose row has each of them
    between the special tokens of single texts. A text that leaves no space for its question is
    truncated, as the data truncates texts to windows.
    """
    row, frame, num_reading = batch.inputs.tokens[0], batch.frame, len(batch.targets)
    edges = batch.inputs.mask.cu_seqlens.long()
    question_windows = batch.window_ranks[num_reading + questions]
    text_windows = batch.window_ranks[num_reading + len(batch.gold_texts) + texts]
    num_specials = frame.num_before + frame.num_after
    lengths = edges.diff() - num_specials
    question_lengths, text_lengths = lengths[question_windows], lengths[text_windows]
    capacity = frame.max_tokens - num_specials - len(frame.between) - question_lengths
    text_lengths = torch.minimum(text_lengths, capacity)  # n
    head = frame.num_before + question_lengths  # n, where the sections of a window end
    middle = head + len(frame.between)
    tail = middle + text_lengths
    column = torch.arange(int(tail.max()) + frame.num_after, device=row.device)  # w
    head, middle, tail = (ends.unsqueeze(1) for ends in (head, middle, tail))
    from_question = edges[question_windows].unsqueeze(1) + column
    from_text = edges[text_windows].unsqueeze(1) + frame.num_before + column - middle
    from_end = edges[text_windows + 1].unsqueeze(1) - frame.num_after + column - tail
    sources = torch.where(column < head, from_question, torch.where(column < tail, from_text, from_end))
    tokens = row[sources.clamp(0, len(row) - 1)]  # n w
    is_between = (column >= head) & (column < middle)
    if len(frame.between):
        tokens = torch.where(is_between, frame.between[(column - head).clamp(0, len(frame.between) - 1)], tokens)
    mask, is_second = column < tail + frame.num_after, column >= middle
    answer_mask = ((column >= frame.num_before) & (column < head)) | (is_second & (column < tail))
    return WindowBatch(tokens.masked_fill(~mask, 0), mask, (is_second & mask).long(), answer_mask)
