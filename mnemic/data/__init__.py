"""Loaders and generators of what networks learn from, one literal table of data sets."""

from collections.abc import Callable
from typing import Any

from mnemic.data.babi.dataset import GeneratedStories, StoryFolder
from mnemic.data.corpora.dataset import CorpusFiles
from mnemic.data.knowledge.dataset import GeneratedKnowledge, KnowledgeFolder
from mnemic.data.language_modeling.dataset import WordFiles
from mnemic.data.long_context.articles import LongArticles
from mnemic.data.long_context.dataset import Documents, LongRecall, LongStories
from mnemic.data.seq2seq.dataset import GeneratedDates, SequenceFiles
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
    "words": WordFiles,
    "sequences": SequenceFiles,
    "dates": GeneratedDates,
    "long-stories": LongStories,
    "long-recall": LongRecall,
    "long-articles": LongArticles,
    "documents": Documents,
}

# Kinds that are read in segments.
LONG = ("long-stories", "long-recall", "long-articles", "documents")

# Kinds that are read in windows, without a memory.
TEXTS = ("classes", "pairs", "spans", "tags", "reading", "corpus")

# Those whose windows can also be read in turn, with a memory: model.carry.
IN_TURN = ("classes", "spans", "tags")

# All kinds that can be read without a memory, each with the kind of response that it needs.
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
