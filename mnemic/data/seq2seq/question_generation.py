"""Data source of question generation: SQuAD turned round, passage and answer → question."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from mnemic.data.contract import Names
from mnemic.data.seq2seq.batches import AnswerStart, Seq2SeqDataset
from mnemic.data.seq2seq.dataset import BYTE_BPE, SelectBy, Seq2SeqSource, require_subwords
from mnemic.data.text_tasks.examples import LabeledExample, QuestionExample, TextError
from mnemic.data.text_tasks.splits import TextFiles
from mnemic.data.text_tasks.squad import read_squad
from mnemic.text import SubwordTokenizer, Tokenizer

NUM_SPECIAL = 4  # tokens around a text, at most


class AnswerInPassage(NamedTuple):
    """An answer, and where it stands in its passage."""

    passage: str
    answer: str
    start: int  # of the answer, in characters


@dataclass(frozen=True, kw_only=True)
class QuestionGenerationFiles(Seq2SeqSource, TextFiles):
    """Passages with an answer each, and the question; from files in SQuAD format.

    A network reads ``answer: … context: …`` and says the question. Questions without an answer are
    left out. Of a passage that is longer than ``length`` tokens it reads the part around the
    answer. Questions about one passage are in one split. ``select_by`` is the metric that selects
    the best weights.
    """

    files: ClassVar[str] = "SQuAD"
    alternative: ClassVar[str] = "your own of the same form"
    scores: ClassVar[Names] = ("bleu", "rouge")
    test_file: str = "dev"
    start: AnswerStart = "cls"
    select_by: SelectBy = "perplexity"
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: {**BYTE_BPE, "vocab": 16000})
    length: int = 384

    def read_file(self, path: Path) -> list[QuestionExample]:
        """Read the questions of one file that have an answer."""
        examples = [example for example in read_squad(path) if example.answers]
        if not examples:
            raise TextError(f"{path} has no question with an answer: there is nothing to ask for")
        return examples

    def list_groups(self, examples: Sequence[QuestionExample]) -> Sequence[Hashable]:
        """List the text of each question."""
        return [example.text for example in examples]

    def list_texts(self, examples: Sequence[QuestionExample]) -> list[str]:
        """List the passages, each once, and the questions."""
        return list(dict.fromkeys(text for example in examples for text in (example.text, example.question)))

    def encode(
        self, examples: Sequence[QuestionExample], tokenizer: Tokenizer, labels: Sequence[str]
    ) -> Seq2SeqDataset:
        """Encode answers and passages, with their questions."""
        subwords = require_subwords(tokenizer)
        cases = [AnswerInPassage(example.text, example.answers[0], example.start) for example in examples]
        texts = write_sources(cases, subwords, self.length)
        pairs = [LabeledExample(text, None, example.question) for text, example in zip(texts, examples)]
        return super().encode(pairs, tokenizer, labels)


def write_sources(cases: Sequence[AnswerInPassage], tokenizer: SubwordTokenizer, max_tokens: int) -> list[str]:
    """Write what a network reads of each case, in at most ``max_tokens`` tokens."""
    texts = [write_source(case) for case in cases]
    counts = [len(ids) + NUM_SPECIAL for ids in tokenizer.encode_batch(texts)]
    return [
        text if count <= max_tokens else write_source(cut_around_answer(case, tokenizer, max_tokens))
        for text, count, case in zip(texts, counts, cases)
    ]


def write_source(case: AnswerInPassage) -> str:
    """Write an answer and its passage as one text.

    >>> write_source(AnswerInPassage("Oslo is cold.", "Oslo", 0))
    'answer: Oslo context: Oslo is cold.'
    """
    return f"answer: {case.answer} context: {case.passage}"


def cut_around_answer(case: AnswerInPassage, tokenizer: SubwordTokenizer, max_tokens: int) -> AnswerInPassage:
    """Cut a passage to the words around its answer that fit into ``max_tokens`` tokens."""
    offsets = encode_offsets(tokenizer, case.passage)
    end = case.start + len(case.answer)
    first = next((number for number, (_, stop) in enumerate(offsets) if stop > case.start), 0)
    last = next((number for number, (begin, _) in enumerate(offsets) if begin >= end), len(offsets))
    room = max_tokens - NUM_SPECIAL - len(tokenizer.encode(write_source(case._replace(passage="")), special=False).ids)
    while room >= last - first:
        before = max((room - (last - first)) // 2, room - (last - first) - (len(offsets) - last))
        low = max(first - before, 0)
        high = min(low + room, len(offsets))
        start, stop = offsets[low][0], offsets[high - 1][1]
        piece = AnswerInPassage(case.passage[start:stop], case.answer, case.start - start)
        num_excess = len(tokenizer.encode(write_source(piece), special=False).ids) + NUM_SPECIAL - max_tokens
        if num_excess <= 0:
            return piece
        room -= num_excess
    raise TextError(
        f"the answer {case.answer[:40]!r} needs more than data.length = {max_tokens} tokens: train with a larger length"
    )


@lru_cache(maxsize=8)
def encode_offsets(tokenizer: SubwordTokenizer, text: str) -> list[tuple[int, int]]:
    """Return the span of characters of each token of a text."""
    return tokenizer.encode(text, special=False).offsets
