"""Dataset of texts with answer texts, as tensors without padding, and its batches.

Shapes: e pairs of the dataset, b pairs of a batch, n tokens of a source, m tokens of an answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from mnemic.data.batches import TensorDataset, locate_tokens
from mnemic.data.text_tasks.examples import LabeledExample, TextError
from mnemic.models import IGNORE, WindowBatch
from mnemic.text import SubwordTokenizer

AnswerStart = Literal["cls", "sep", "pad"]


class Seq2SeqBatch(NamedTuple):
    """A batch of sources with shifted answers, and the target tokens."""

    inputs: WindowBatch
    targets: Tensor  # b m, IGNORE after the end


class RaggedTexts(NamedTuple):
    """Texts of different lengths, concatenated."""

    ids: Tensor  # of all texts
    offsets: Tensor  # e+1, where each text starts in ids

    @property
    def lengths(self) -> Tensor:
        return self.offsets[1:] - self.offsets[:-1]

    def pad_rows(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the texts ``rows`` (b) padded with 0, and their mask: b n each."""
        positions, mask = locate_tokens(self.offsets[rows], self.lengths[rows])
        return self.ids[positions].masked_fill(~mask, 0), mask


@dataclass(frozen=True, kw_only=True)
class Seq2SeqDataset(TensorDataset):
    """Pairs of a source text and an answer text on one device."""

    metrics: ClassVar[str] = "seq2seq"
    metric: str = "exact"  # that selects the best weights: "exact" or "perplexity"
    scores: Sequence[str] = ()  # of generated texts, by name
    num_unknown: ClassVar[int] = 0  # any text can be generated, also if it is not in training
    examples: Sequence[LabeledExample]
    tokenizer: SubwordTokenizer
    source: RaggedTexts
    answer: RaggedTexts  # with start and end tokens
    start_id: int  # the token that decoders begin with
    lengths: Tensor  # e, tokens of source and answer

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def token_counts(self) -> Tensor:
        """Return the tokens read and the tokens of each source, e 2: the same numbers."""
        return self.source.lengths.unsqueeze(1).expand(-1, 2)

    def batch(
        self, rows: Tensor, uniforms: Tensor | None = None, *, compact: bool = True, max_length: int | None = None
    ) -> Seq2SeqBatch:
        """Return the pairs ``rows`` (b), padded to the longest of them."""
        answer_ids, mask = self.answer.pad_rows(rows)
        targets = answer_ids[:, 1:].masked_fill(~mask[:, 1:], IGNORE)
        return Seq2SeqBatch(self.source_inputs(rows)._replace(decoder_tokens=answer_ids[:, :-1]), targets)

    def source_inputs(self, rows: Tensor) -> WindowBatch:
        """Return the sources ``rows`` (b) alone, for generation."""
        tokens, mask = self.source.pad_rows(rows)
        return WindowBatch(tokens, mask, torch.zeros_like(tokens), mask)


def make_seq2seq_dataset(
    examples: Sequence[LabeledExample], tokenizer: SubwordTokenizer, max_tokens: int, start: AnswerStart = "cls"
) -> Seq2SeqDataset:
    """Encode pairs; raise if a text has more than ``max_tokens`` tokens.

    ``start`` is the token that decoders begin with: that of the beginning of texts, which are
    otherwise framed in the tokenizer's own way, their end (BART) or padding (T5).
    """
    frame, start_id = tokenizer.special_tokens(), find_start_id(tokenizer, start)
    if start == "cls":
        frame = frame._replace(before=[tokenizer.cls], after=[tokenizer.sep])

    def encode_texts(texts: list[str], before: list[int]) -> RaggedTexts:
        sequences = [[*before, *ids, *frame.after] for ids in tokenizer.encode_batch(texts)]
        for text, ids in zip(texts, sequences):
            if len(ids) > max_tokens:
                raise TextError(
                    f"{text[:40]!r} has {len(ids)} tokens with its two ends, more than "
                    f"data.length = {max_tokens}; shorten it, or train with a larger length"
                )
        all_ids = torch.tensor([token_id for ids in sequences for token_id in ids], dtype=torch.long)
        return RaggedTexts(all_ids, torch.tensor([0, *accumulate(map(len, sequences))]))

    source = encode_texts([example.text for example in examples], frame.before)
    answer_prefix = [start_id] if start == "cls" else [start_id, *frame.before]
    answer = encode_texts([example.label for example in examples], answer_prefix)
    return Seq2SeqDataset(
        examples=examples,
        tokenizer=tokenizer,
        source=source,
        answer=answer,
        start_id=start_id,
        lengths=source.lengths + answer.lengths,
    )


def find_start_id(tokenizer: SubwordTokenizer, start: AnswerStart) -> int:
    """Return the token that decoders begin with."""
    return {"cls": lambda: tokenizer.cls, "sep": lambda: tokenizer.sep, "pad": lambda: tokenizer.pad}[start]()
