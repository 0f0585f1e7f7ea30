"""Data sources for contrastive learning: views of documents, and given pairs of texts."""

import dataclasses
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch

from mnemic.data.contract import Data, Layout, LoadedData, Names, Split, check_minimum
from mnemic.data.corpora.document_files import DocumentFiles
from mnemic.data.corpora.read_documents import Corpus
from mnemic.data.text_tasks.batches import TextDataset
from mnemic.data.text_tasks.examples import AnsweredPair, TextError
from mnemic.data.text_tasks.retrieval import compute_spans
from mnemic.data.text_tasks.splits import TOKENIZER_BUILDERS, WORDPIECE, WindowFiles
from mnemic.data.views.batches import ViewDataset, make_text_pool
from mnemic.data.views.draw import VIEWS
from mnemic.data.views.evaluation import make_evaluation_dataset, make_view_test
from mnemic.data.views.groups import number_texts, simplify
from mnemic.data.views.pairs import TextPair, read_negatives, read_pairs
from mnemic.data.views.units import Unit, cut_documents
from mnemic.recipe import build
from mnemic.text import Tokenizer, WindowOptions
from mnemic.text.windows import Truncation

OBJECTIVE_KINDS: Names = ("contrast", "moco")
SUGGESTIONS: Names = ("evaluate {run}", "predict --model {run} --embed FILE")


@dataclass(frozen=True, kw_only=True)
class ViewFiles(DocumentFiles):
    """Plain documents, each pair of views of one text: ``.jsonl`` or ``.txt``, also compressed.

    ``unit`` is what a text is: a document, a line, a sentence, or a passage of whole sentences that
    fits into a window of ``length`` tokens. ``views`` are ``dropout`` (the text twice), ``crops``
    (two spans of it), ``inverse-cloze`` (a sentence, and the text without it) or ``neighbors`` (two
    sentences in a row). Of a view longer than a window another part is read each epoch. Texts
    with too few tokens or sentences for the views are left out.
    """

    layout: ClassVar[Layout] = "windows"
    response: ClassVar[str] = "vector"
    objectives: ClassVar[Names] = OBJECTIVE_KINDS
    files: ClassVar[str] = "plain text"
    alternative: ClassVar[str] = "your own .txt or .jsonl files"
    suggestions: ClassVar[Names] = SUGGESTIONS
    validation: float = 0.05
    unit: Unit = "passages"
    views: Mapping[str, Any] = dataclasses.field(default_factory=lambda: {"kind": "dropout"})
    tokenizer: Mapping[str, Any] = dataclasses.field(default_factory=lambda: WORDPIECE)
    length: int = 128
    overlap: int = 32
    truncation: Truncation = "windows"

    def __post_init__(self) -> None:
        self.window_options.check()
        build(VIEWS, self.views)

    @property
    def window_options(self) -> WindowOptions:
        """Return how texts are cut into windows in use."""
        return WindowOptions(self.length, self.overlap, self.truncation)

    def read_documents(self, paths: Sequence[Path]) -> Iterator[str]:
        """Read whole documents, or lines, which are then divided into splits one by one."""
        documents = Corpus(tuple(paths), self.field).read()
        if self.unit != "lines":
            return documents
        return (line for document in documents for line in document.splitlines() if line.strip())

    def load(self) -> Data:
        """Read the training and validation texts, and train the tokenizer."""
        documents = list(self.read_split("train"))
        tokenizer = build(TOKENIZER_BUILDERS, self.tokenizer, texts=documents)
        sizes = {"vocab": len(tokenizer), "max_length": self.length}
        train = self.make_training_dataset(self.cut(documents, tokenizer), tokenizer)
        return LoadedData(tokenizer, sizes, train, self.dataset("validation", tokenizer))

    def dataset(self, split: Split, tokenizer: Tokenizer, labels: Sequence[str] = ()) -> TextDataset:
        """Return two views of each text of a split, always the same."""
        texts = self.cut(self.read_split(split), tokenizer)
        return make_view_test(texts, build(VIEWS, self.views), tokenizer, self.window_options)

    def cut(self, documents: Iterable[str], tokenizer: Tokenizer) -> list[str]:
        """Cut documents into the texts that are embedded."""
        special = tokenizer.special_tokens()
        max_tokens = self.length - len(special.before) - len(special.after)
        return list(cut_documents(documents, self.unit, tokenizer, max_tokens))

    def make_training_dataset(self, texts: Sequence[str], tokenizer: Tokenizer) -> ViewDataset:
        """Encode the texts that views can be drawn from."""
        pool, views = make_text_pool(texts, tokenizer), build(VIEWS, self.views)
        is_long = pool.spans[:, 1] >= views.min_tokens
        rows = (is_long & (pool.sentence_ranges[:, 1] >= views.min_sentences)).nonzero()
        if not len(rows):
            raise TextError(
                f"no text of {len(texts)} in {self.folder} has {views.min_tokens} tokens and {views.min_sentences} "
                "sentences, which these views need: set data.unit=passages or data.unit=documents"
            )
        groups = number_texts((text,) for text in texts)
        return ViewDataset(
            pool=pool, views=views, texts=rows.expand(-1, 2),
            text_ids=torch.tensor([groups[simplify(text)] for text in texts]),
            negatives=torch.zeros(0, dtype=torch.long), negative_ranges=torch.zeros(len(pool.spans), 2).long(),
            num_negatives=0, max_tokens=self.length,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class MatchFiles(WindowFiles):
    """Pairs of texts that belong together, such as questions and answers: .jsonl, .tsv or .csv.

    ``columns`` names those of the ``first`` and ``second`` text; several are joined by a blank,
    where a row has them. Texts that are equal but for case and blanks are one, and all texts that
    are linked by pairs are no negatives of each other. ``negatives_file`` has mined hard negatives
    (see ``mnemic data negatives``), of which each pair of a batch adds ``hard_negatives``. Linked
    pairs are in one split.
    """

    response: ClassVar[str] = "vector"
    objectives: ClassVar[Names] = OBJECTIVE_KINDS
    files: ClassVar[str] = "pairs of texts"
    alternative: ClassVar[str] = "your own .tsv or .jsonl files"
    suggestions: ClassVar[Names] = SUGGESTIONS
    columns: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    negatives_file: str = ""
    hard_negatives: int = 1
    test_file: str = ""
    overlap: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        check_minimum("hard_negatives", self.hard_negatives, 1)

    def read_file(self, path: Path) -> list[TextPair]:
        """Read the pairs of one file."""
        return read_pairs(path, self.columns)

    def list_groups(self, examples: Sequence[TextPair]) -> Sequence[Hashable]:
        """Number the linked pairs."""
        groups = number_texts(examples)
        return [groups[simplify(example.second)] for example in examples]

    def list_texts(self, examples: Sequence[TextPair]) -> Iterable[str]:
        """List all texts of the pairs, each once."""
        return dict.fromkeys(text for example in examples for text in example)

    def load(self) -> Data:
        """Read the training and validation pairs, and train the tokenizer."""
        pairs = self.read_split("train")
        tokenizer = build(TOKENIZER_BUILDERS, self.tokenizer, texts=list(self.list_texts(pairs)))
        sizes = {"vocab": len(tokenizer), "max_length": self.length}
        train = self.make_training_dataset(pairs, tokenizer)
        return LoadedData(tokenizer, sizes, train, self.dataset("validation", tokenizer))

    def dataset(self, split: Split, tokenizer: Tokenizer, labels: Sequence[str] = ()) -> TextDataset:
        """Return the pairs of a split; second texts are found among those of the split."""
        pairs = self.read_split(split)
        return make_evaluation_dataset(pairs, number_texts(pairs), tokenizer, self.window_options)

    def list_answered_pairs(self) -> list[AnsweredPair]:
        """List the training pairs, to mine hard negatives for them."""
        return [AnsweredPair(*pair) for pair in self.read_split("train")]

    def make_training_dataset(self, pairs: Sequence[TextPair], tokenizer: Tokenizer) -> ViewDataset:
        """Encode the pairs and their hard negatives, each text once."""
        negatives_of = read_negatives(Path(self.negatives_file).expanduser()) if self.negatives_file else {}
        groups = number_texts([*pairs, *((text,) for texts in negatives_of.values() for text in texts)])
        negatives = [
            [text for text in negatives_of.get(pair, ()) if groups[simplify(text)] != groups[simplify(pair.second)]]
            for pair in pairs
        ]
        if negatives_of and not any(negatives):
            raise TextError(
                f"{self.negatives_file} has hard negatives for none of {len(pairs)} training pairs: "
                "mine them for these files with `mnemic data negatives`"
            )
        texts = dict.fromkeys([*self.list_texts(pairs), *(text for row in negatives for text in row)])
        index = {text: number for number, text in enumerate(texts)}
        return ViewDataset(
            pool=make_text_pool(list(texts), tokenizer), views=None,
            texts=torch.tensor([[index[text] for text in pair] for pair in pairs]).view(-1, 2),
            text_ids=torch.tensor([groups[simplify(text)] for text in texts]),
            negatives=torch.tensor([index[text] for row in negatives for text in row], dtype=torch.long),
            negative_ranges=compute_spans(negatives), num_negatives=self.hard_negatives if negatives_of else 0,
            max_tokens=self.length,
        )  # fmt: skip
