"""Training dataset for retrieving texts and reading answers in them, and its packed batches.

Every question and every text is stored once, as ids without special tokens; windows are assembled
when they are drawn, packed into one row without padding. The dataset stays on the CPU, where shapes
are known without synchronizing; only the packed row goes to ``batch_device``.

Shapes: q questions, p texts, t tokens of all, b reading windows of a batch, a articles of a batch,
g texts of an article, m windows of a row, n tokens of a window, s spans.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from mnemic.data.batches import AssembledDataset, move_batch
from mnemic.encode.packed import PackedMask
from mnemic.models import IGNORE, PackedBatch

READING_UNIFORMS = 4  # per row: is the text wrong, of another article, which one, which span


class RetrievalMix(NamedTuple):
    """What a training batch is composed of; from the keys of the data kind ``retrieval``."""

    max_tokens: int  # per window
    wrong_fraction: float  # of the questions, read with a wrong text
    other_article_fraction: float  # of the wrong texts, from another article
    num_articles: int  # per batch, for retrieval
    texts_per_article: int
    questions_per_text: int
    hard_negatives: int = 0  # texts that were mined for each of these questions


class PooledSpans(NamedTuple):
    """The spans of a packed row that are pooled into vectors.

    A text has one span per sentence; any other window is one span.
    """

    lengths: Tensor  # s, tokens of each span, in the row's order
    question_spans: Tensor  # k, indices of the questions' spans
    text_spans: Tensor  # indices of the sentences' spans, text by text
    spans_per_text: Tensor  # p


class PairFrame(NamedTuple):
    """How a question and a text become one window."""

    num_before: int  # special tokens before the question, as before a single text
    between: Tensor  # ids of the special tokens between the two
    num_after: int  # special tokens after the text, as after a single text
    max_tokens: int  # of the window


class RetrievalBatch(NamedTuple):
    """A packed row of windows, the targets of reading, and the targets of retrieval."""

    inputs: PackedBatch
    targets: Tensor  # b 2, columns of the logits: first and last token, 0 = no answer
    window_ranks: Tensor  # m, rank in the row of the reading windows, questions and texts
    gold_texts: Tensor  # k, of each question the index of its text in the batch
    text_ids: Tensor  # p, the dataset's number of each text: a text may be there twice
    spans: PooledSpans
    frame: PairFrame

    @property
    def reading_inputs(self) -> PackedBatch:
        """The windows that answers are read in, without those of retrieval."""
        inputs, lengths = self.inputs, self.inputs.mask.lengths[: len(self.targets)]
        num_tokens = sum(lengths)
        edges = inputs.mask.cu_seqlens[: len(lengths) + 1]
        row = [values[:, :num_tokens] for values in (inputs.tokens, inputs.segment_ids, inputs.positions)]
        mask = PackedMask(lengths, edges, max(lengths), num_tokens)
        return PackedBatch(row[0], mask, row[1], row[2], inputs.answer_mask[:, :num_tokens], *inputs[5:])


class WindowSpans(NamedTuple):
    """The spans of the token pool that each window is made of."""

    first: Tensor  # m 2, start and length; length 0: a window of one text
    second: Tensor  # m 2
    is_pair: Tensor  # m, True = both spans, a question and a text


@dataclass(frozen=True, kw_only=True)
class RetrievalDataset(AssembledDataset):
    """The training dataset of retrieval and reading, from which windows are drawn."""

    metrics: ClassVar[str] = "retrieval"
    mix: RetrievalMix
    num_special: tuple[int, int, int]  # special tokens before, between and after the texts
    token_pool: Tensor  # ids of all questions, all texts, then the special tokens
    question_spans: Tensor  # q 2, start and length in the pool
    text_spans: Tensor  # p 2
    sentence_lengths: Tensor  # tokens of all sentences of all texts
    sentence_ranges: Tensor  # p 2, first sentence and number of sentences of each text
    text_of_question: Tensor  # q, the text of each question
    answer_tokens: Tensor  # q 2, first and last token of the answer in its text; -1: none
    question_ranges: Tensor  # p 2, first question and number of questions of each text
    article_ranges: Tensor  # p 2, first text and number of texts of each text's article
    mined_texts: Tensor | None = None  # texts that are wrong for a question, question by question
    mined_ranges: Tensor | None = None  # q 2, first and number of the mined texts of each question
    is_extractive: Tensor | None = None  # q, False = its text is only to be found; None: all True
    is_standalone: Tensor | None = None  # q, True = it makes sense without its text; None: all

    def __len__(self) -> int:
        return len(self.question_spans)

    @property
    def num_uniforms(self) -> int:
        """Random numbers per row: for its reading window, and for the retrieval windows."""
        return READING_UNIFORMS + self.mix.texts_per_article * self.uniforms_per_text

    @property
    def uniforms_per_text(self) -> int:
        """Random numbers of a text: for itself, its questions and their hard negatives."""
        return 1 + self.mix.questions_per_text * (1 + self.mix.hard_negatives)

    @property
    def lengths(self) -> Tensor:
        """Count the tokens of each question with its whole text, q."""
        return self.question_spans[:, 1] + self.text_spans[self.text_of_question, 1] + sum(self.num_special)

    def batch(
        self, rows: Tensor, uniforms: Tensor | None = None, *, compact: bool = True, max_length: int | None = None
    ) -> RetrievalBatch:
        """Return the questions ``rows`` (b) with a text each, and a retrieval task."""
        drawn_uniforms = (torch.zeros(len(rows), self.num_uniforms) if uniforms is None else uniforms).double()
        reading, targets = self.draw_reading_windows(rows, drawn_uniforms[:, :READING_UNIFORMS])
        num_articles = min(self.mix.num_articles, len(rows))
        shape = (num_articles, self.mix.texts_per_article, self.uniforms_per_text)
        questions, texts, right, text_ids = self.draw_retrieval_windows(
            self.select_searches(rows, num_articles), drawn_uniforms[:num_articles, READING_UNIFORMS:].view(shape)
        )
        all_windows = WindowSpans(*(torch.cat(parts) for parts in zip(reading, questions, texts)))
        inputs, ranks = self.pack_windows(all_windows, len(rows))
        window_lengths = torch.tensor(inputs.mask.lengths)[ranks]
        spans = self.locate_spans(window_lengths, ranks, text_ids, len(rows))
        tensors = (targets, ranks, right, text_ids, spans, self.frame)
        return RetrievalBatch(inputs, *move_batch(tensors, self.batch_device))

    @cached_property
    def frame(self) -> PairFrame:
        """Return the special tokens of a question with a text."""
        before, between, after = self.num_special
        end = len(self.token_pool) - after
        return PairFrame(before, self.token_pool[end - between : end].long(), after, self.mix.max_tokens)

    def select_searches(self, rows: Tensor, count: int) -> Tensor:
        """Select the first standalone rows, again and again if they are too few."""
        if self.is_standalone is None or not self.is_standalone[rows].any():
            return rows[:count]
        searches = rows[self.is_standalone[rows]]
        return searches[torch.arange(count) % len(searches)]

    def draw_reading_windows(self, rows: Tensor, uniforms: Tensor) -> tuple[WindowSpans, Tensor]:
        """Draw a span of the right or a wrong text for each question, with targets.

        A question that is not extractive gets an empty one, and no target.
        """
        gold_text, num_texts = self.text_of_question[rows], len(self.text_spans)
        first, count = self.article_ranges[gold_text].unbind(1)
        same_article_text = draw_other(gold_text, first, count, uniforms[:, 2])
        any_text = draw_other(gold_text, 0, num_texts, uniforms[:, 2])
        is_other_article = (uniforms[:, 1] < self.mix.other_article_fraction) | (count == 1)
        wrong_text = torch.where(is_other_article, any_text, same_article_text)
        is_answerable = self.answer_tokens[rows, 0] >= 0
        is_wrong = (uniforms[:, 0] < self.mix.wrong_fraction) & (num_texts > 1) & is_answerable
        if self.is_standalone is not None:
            is_wrong &= self.is_standalone[rows]
        text = torch.where(is_wrong, wrong_text, gold_text)
        max_tokens = self.mix.max_tokens - sum(self.num_special) - self.question_spans[rows, 1]
        num_tokens = torch.minimum(self.text_spans[text, 1], max_tokens)
        if self.is_extractive is not None:
            num_tokens = num_tokens.where(self.is_extractive[rows], 0)
        start = (uniforms[:, 3] * (self.text_spans[text, 1] - num_tokens + 1)).long()
        spans = torch.stack([self.text_spans[text, 0] + start, num_tokens], 1)
        windows = WindowSpans(self.question_spans[rows], spans, torch.ones_like(is_wrong))
        answer_ends = self.answer_tokens[rows] - start.unsqueeze(1)  # b 2
        has_answer = ~is_wrong & is_answerable & (answer_ends[:, 0] >= 0) & (answer_ends[:, 1] < num_tokens)
        text_start = self.num_special[0] + self.num_special[1] + self.question_spans[rows, 1:]
        targets = torch.where(has_answer.unsqueeze(1), answer_ends + text_start + 1, 0)
        if self.is_extractive is not None:
            targets = targets.where(self.is_extractive[rows].unsqueeze(1), IGNORE)
        return windows, targets

    def draw_retrieval_windows(self, rows: Tensor, uniforms: Tensor) -> tuple[WindowSpans, WindowSpans, Tensor, Tensor]:
        """Draw texts of the articles of ``rows`` (a), spread evenly, and questions about each.

        ``uniforms`` are a g uniforms_per_text. Texts longer than a window are truncated. Returns
        the windows of questions and of texts, mined ones last, each question's text, and the
        numbers of all texts.
        """
        first, count = self.article_ranges[self.text_of_question[rows]].unbind(1)  # a
        strata = torch.arange(self.mix.texts_per_article) + uniforms[..., 0]  # a g
        text = (first[:, None] + (strata * count[:, None] / self.mix.texts_per_article).long()).flatten()
        first_question, num_questions = self.question_ranges[text].unbind(1)
        per_question = uniforms[..., 1:].reshape(len(text), self.mix.questions_per_text, -1)
        question = first_question[:, None] + (per_question[..., 0] * num_questions[:, None]).long()
        gold_texts = torch.arange(len(text)).repeat_interleave(self.mix.questions_per_text)
        text = torch.cat([text, self.draw_mined_texts(question.flatten(), per_question[..., 1:].flatten(0, 1))])
        max_tokens = self.mix.max_tokens - self.num_special[0] - self.num_special[2]
        questions, texts = self.question_spans[question.flatten()], self.text_spans[text]
        longest = torch.tensor([len(self.token_pool), max_tokens])  # start and length
        windows = [
            WindowSpans(torch.zeros_like(spans), torch.minimum(spans, longest), torch.zeros(len(spans)).bool())
            for spans in (questions, texts)
        ]
        return windows[0], windows[1], gold_texts, text

    def draw_mined_texts(self, questions: Tensor, uniforms: Tensor) -> Tensor:
        """Draw hard negatives of the questions that have any; ``uniforms`` are k hard_negatives."""
        if self.mined_texts is None or self.mined_ranges is None:
            return torch.zeros(0, dtype=torch.long)
        first, count = self.mined_ranges[questions].unsqueeze(2).unbind(1)  # k 1
        index = first + (uniforms * count).long()
        return self.mined_texts[index[(count > 0).expand_as(index)]]

    def pack_windows(self, windows: WindowSpans, num_reading: int) -> tuple[PackedBatch, Tensor]:
        """Pack all windows into one row; return each window's rank, too.

        The first ``num_reading`` windows are those that answers are read in. They come first in the
        row, then those of retrieval, both shortest first.
        """
        before, between, after = self.num_special
        middle = between * windows.is_pair  # m
        window_lengths = before + windows.first[:, 1] + middle + windows.second[:, 1] + after
        parts = window_lengths.tensor_split([num_reading])
        order = torch.cat([parts[0].argsort(stable=True), num_reading + parts[1].argsort(stable=True)])
        rank = torch.empty_like(order).scatter_(0, order, torch.arange(len(order)))
        edges = torch.cat([window_lengths.new_zeros(1), window_lengths[order].cumsum(0)])
        owner = order.repeat_interleave(window_lengths[order])  # t, the window of each token
        position = torch.arange(len(owner)) - edges[rank[owner]]
        # Where each section starts in its window: question, between, text, after.
        head = before + windows.first[:, 1]
        tail = head + middle
        section_starts = torch.stack([torch.full_like(head, before), head, tail, tail + windows.second[:, 1]])
        section = (position >= section_starts[:, owner]).sum(0)  # t, 0 to 4
        special_start = len(self.token_pool) - sum(self.num_special)
        sources = torch.stack(  # pool index of a section's first token, minus its position
            [
                torch.full_like(head, special_start),
                windows.first[:, 0] - before,
                special_start + before - head,
                windows.second[:, 0] - tail,
                special_start + before + between - section_starts[3],
            ]
        )
        ids = self.token_pool[sources[section, owner] + position]
        is_second = (section >= 3) & windows.is_pair[owner]
        packed = torch.stack([ids, is_second.long(), position, (section == 3).long()]).int()
        tokens, segments, positions, answer_mask = move_batch(packed, self.batch_device).long().unsqueeze(1)
        column = torch.arange(int(window_lengths[:num_reading].max()))
        reading_positions = edges[rank[:num_reading]].unsqueeze(1) + column  # b n
        is_real = reading_positions < edges[rank[:num_reading] + 1].unsqueeze(1)
        lengths = tuple(window_lengths[order].tolist())
        device_tensors = (edges.int(), reading_positions.clamp(max=len(owner) - 1), is_real)
        device_edges, *reading = move_batch(device_tensors, self.batch_device)
        mask = PackedMask(lengths, device_edges, max(lengths), len(owner))
        return PackedBatch(tokens, mask, segments, positions, answer_mask.bool(), *reading), rank

    def locate_spans(self, window_lengths: Tensor, rank: Tensor, text_ids: Tensor, num_reading: int) -> PooledSpans:
        """Cut a row into the spans that are pooled: windows, and sentences of texts.

        The last windows (m) are the texts ``text_ids`` (p), the first ``num_reading`` those that
        answers are read in; ``rank`` is the rank of each window in the row. Special tokens belong
        to the sentence next to them. Of a truncated text only the remaining sentences count.
        """
        first, num_sentences = self.sentence_ranges[text_ids].unbind(1)
        owner = torch.arange(len(text_ids)).repeat_interleave(num_sentences)
        tokens = self.sentence_lengths[concatenate_ranges(first, num_sentences)]
        text_offsets = self.text_spans[text_ids, 1].cumsum(0) - self.text_spans[text_ids, 1]
        ends = tokens.cumsum(0) - text_offsets[owner]
        starts = ends - tokens
        num_text_tokens = window_lengths[-len(text_ids) :] - self.num_special[0] - self.num_special[2]
        is_inside = (starts < num_text_tokens[owner]) | (starts == 0)
        sentence_lengths = (torch.minimum(ends, num_text_tokens[owner]) - starts)[is_inside]
        spans_per_text = torch.bincount(owner[is_inside], minlength=len(text_ids))
        sentence_lengths[spans_per_text.cumsum(0) - spans_per_text] += self.num_special[0]
        sentence_lengths[spans_per_text.cumsum(0) - 1] += self.num_special[2]
        num_others = len(window_lengths) - len(text_ids)
        spans_per_window = torch.cat([torch.ones(num_others, dtype=torch.long), spans_per_text])  # m
        order = rank.argsort()
        span_order = concatenate_ranges((spans_per_window.cumsum(0) - spans_per_window)[order], spans_per_window[order])
        span_ranks = torch.empty_like(span_order).scatter_(0, span_order, torch.arange(len(span_order)))
        lengths = torch.cat([window_lengths[:num_others], sentence_lengths])[span_order]
        return PooledSpans(lengths, span_ranks[num_reading:num_others], span_ranks[num_others:], spans_per_text)


def concatenate_ranges(first: Tensor, count: Tensor) -> Tensor:
    """Concatenate the ranges of ``count`` numbers from ``first`` on: m and m → sum of counts."""
    step = torch.arange(int(count.sum()))
    return step + (first - count.cumsum(0) + count).repeat_interleave(count)


def draw_other(excluded: Tensor, first: Tensor | int, count: Tensor | int, uniforms: Tensor) -> Tensor:
    """Draw from the ``count`` numbers from ``first`` on, without ``excluded``, one of them."""
    numbers = first + (uniforms * (count - 1)).long()
    return numbers + (numbers >= excluded)
