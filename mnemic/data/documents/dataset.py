"""Data source of generated documents: dialogues, lists, cards, tables and facts, with questions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from mnemic.data.contract import Layout, Names, Split, check_count
from mnemic.data.documents.examples import generate_questions
from mnemic.data.documents.generate import DOCUMENT_TYPES
from mnemic.data.text_tasks.batches import TextDataset
from mnemic.data.text_tasks.encode_windows import encode_questions
from mnemic.data.text_tasks.examples import QuestionExample
from mnemic.data.text_tasks.splits import WORDPIECE, TextSource
from mnemic.recipe import ConfigError, join_words
from mnemic.text import Tokenizer, WindowOptions


@dataclass(frozen=True, kw_only=True)
class GeneratedDocuments(TextSource):
    """Questions about ``count`` generated documents of some ``forms``; no files needed.

    Validation and test have a tenth as many documents, with other names and wordings. A question
    for several items is there once per item in training.
    """

    layout: ClassVar[Layout] = "windows"
    response: ClassVar[str] = "spans"
    objectives: ClassVar[Names] = ("spans",)
    reads_segments: ClassVar[bool] = True
    input_description: ClassVar[str] = "answers questions about texts"
    input_fields: ClassVar[tuple[Names, ...]] = (("question", "text"),)
    suggestions: ClassVar[Names] = ("evaluate {run}", 'predict --model {run} --question "Who …?" FILE')
    file_kind: ClassVar[str] = "spans"
    shared_keys: ClassVar[Names] = ("tokenizer", "length", "overlap")
    count: int = 2000
    forms: Sequence[str] = tuple(DOCUMENT_TYPES)
    seed: int = 0
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: WORDPIECE)
    length: int = 384
    overlap: int = 128

    def __post_init__(self) -> None:
        check_count("count", self.count)
        self.window_options.check()
        if not self.forms or not {*self.forms} <= {*DOCUMENT_TYPES}:
            raise ConfigError(f"data.forms lists some of {join_words(DOCUMENT_TYPES)}, not {list(self.forms)}")

    @property
    def window_options(self) -> WindowOptions:
        """Return how texts are cut into windows."""
        return WindowOptions(self.length, self.overlap, "windows")

    def read_split(self, split: Split) -> list[QuestionExample]:
        """Generate the questions of one split."""
        count = self.count if split == "train" else max(self.count // 10, len(self.forms))
        examples = generate_questions(split, count, seed=self.seed, forms=self.forms)
        return [single for e in examples for single in e.split_answers()] if split == "train" else examples

    def list_texts(self, examples: Sequence[QuestionExample]) -> Iterable[str]:
        """List all texts and questions of the examples, each once."""
        return dict.fromkeys(text for example in examples for text in (example.text, example.question))

    def encode(self, examples: Sequence[QuestionExample], tokenizer: Tokenizer, labels: Sequence[str]) -> TextDataset:
        """Encode questions with their texts."""
        return encode_questions(examples, tokenizer, self.window_options)
