"""Datasets to evaluate embeddings: texts, and the texts among which their partners are found."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from mnemic.data.text_tasks.batches import RetrievalTest, TextDataset
from mnemic.data.text_tasks.encode_windows import encode_labeled
from mnemic.data.text_tasks.examples import LabeledExample
from mnemic.data.views.batches import make_text_pool
from mnemic.data.views.draw import NUM_UNIFORMS, HalfViews, Views
from mnemic.data.views.groups import number_texts, simplify
from mnemic.text import Tokenizer, WindowOptions


def make_evaluation_dataset(
    pairs: Sequence[tuple[str, str]], groups: Mapping[str, int], tokenizer: Tokenizer, options: WindowOptions
) -> TextDataset:
    """Encode first texts, and the second texts among which their partners are found."""
    second_texts = {simplify(second): second for _, second in reversed(pairs)}
    index = {text: number for number, text in enumerate(second_texts)}

    def encode(texts: Sequence[str]) -> TextDataset:
        return encode_labeled([LabeledExample(text, None, "") for text in texts], tokenizer, options, labels=())

    first = encode([first for first, _ in pairs])
    gold_texts = tuple(index[simplify(second)] for _, second in pairs)
    text_groups = tuple(groups[text] for text in second_texts)
    test = RetrievalTest(first, encode(list(second_texts.values())), gold_texts, text_groups)
    return replace(first, metrics="views", metric="recall@1", retrieval=test)


def make_view_test(texts: Sequence[str], views: Views, tokenizer: Tokenizer, options: WindowOptions) -> TextDataset:
    """Draw two views of each text, always the same, and encode them as texts.

    Views that are equal would find each other; instead of them the halves of a text are compared.
    """
    pool = make_text_pool(texts, tokenizer)
    compared: Views = HalfViews() if views.are_equal else views
    has_tokens = pool.spans[: len(texts), 1] >= compared.min_tokens
    rows = (has_tokens & (pool.sentence_ranges[:, 1] >= compared.min_sentences)).nonzero().squeeze(1)
    uniforms = torch.rand(len(rows), NUM_UNIFORMS, generator=torch.Generator().manual_seed(0)).double()
    first, second = compared.draw(pool.select(rows), uniforms)
    pairs: list[tuple[str, str]] = []
    for row, start, first_ranges, second_ranges in zip(rows.tolist(), pool.spans[rows, 0].tolist(), first, second):
        offsets = tokenizer.encode(texts[row], special=False).offsets
        view_texts = [quote_ranges(texts[row], offsets, ranges, start) for ranges in (first_ranges, second_ranges)]
        pairs.append((view_texts[0], view_texts[1]))
    groups = number_texts([texts[row], *pair] for row, pair in zip(rows.tolist(), pairs))
    return make_evaluation_dataset(pairs, groups, tokenizer, options)


def quote_ranges(text: str, offsets: Sequence[tuple[int, int]], ranges: Tensor, start: int) -> str:
    """Quote token ranges (2 2) of a text that begins at token ``start``."""
    quotes = []
    for first, length in ranges.tolist():
        if length:
            quotes.append(text[offsets[first - start][0] : offsets[first - start + length - 1][1]])
    return " ".join(quotes)
