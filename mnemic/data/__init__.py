"""Data sources: loaders and generators of training data, and the table of their kinds."""

from collections.abc import Callable
from typing import Any

from mnemic.data.babi.dataset import GeneratedStories, StoryFolder
from mnemic.data.corpora.dataset import CorpusFiles
from mnemic.data.knowledge.dataset import GeneratedKnowledge, KnowledgeFolder
from mnemic.data.language_modeling.dataset import LanguageModelFiles
from mnemic.data.long_context.articles import LongArticles
from mnemic.data.long_context.dataset import LongDocuments, LongRecall, LongStories
from mnemic.data.seq2seq.dataset import GeneratedDates, Seq2SeqFiles
from mnemic.data.text_tasks.dataset import ClassFiles, PairFiles, SpanFiles, TagFiles
from mnemic.data.text_tasks.retrieval import ArticleFiles

DATASETS: dict[str, Callable[..., Any]] = {
    "stories": StoryFolder,
    "generated": GeneratedStories,
    "knowledge": KnowledgeFolder,
    "generated-knowledge": GeneratedKnowledge,
    "classes": ClassFiles,
    "pairs": PairFiles,
    "spans": SpanFiles,
    "tags": TagFiles,
    "reading": ArticleFiles,
    "corpus": CorpusFiles,
    "words": LanguageModelFiles,
    "sequences": Seq2SeqFiles,
    "dates": GeneratedDates,
    "long-stories": LongStories,
    "long-recall": LongRecall,
    "long-articles": LongArticles,
    "documents": LongDocuments,
}

# Kinds whose texts are read in segments, with a memory.
SEGMENT_KINDS = ("long-stories", "long-recall", "long-articles", "documents")

# Kinds whose texts are read in windows, without a memory.
WINDOW_KINDS = ("classes", "pairs", "spans", "tags", "reading", "corpus")

# Those whose windows can also be read one after the other, with a memory: model.carry.
SEQUENTIAL_WINDOW_KINDS = ("classes", "spans", "tags")

# The kind of response that each kind needs, of all that can be read without a memory.
RESPONSE_OF = {
    "classes": "classes",
    "pairs": "classes",
    "spans": "spans",
    "tags": "tags",
    "reading": "spans",
    "corpus": "masked",
    "words": "next",
    "sequences": "sequence",
    "dates": "sequence",
}
