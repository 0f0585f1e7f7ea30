"""Loaders and generators of what networks learn from, one literal table of data sets."""

from collections.abc import Callable
from typing import Any

from mnemic.data.corpora.dataset import CorpusFiles
from mnemic.data.knowledge.dataset import GeneratedKnowledge, KnowledgeFolder
from mnemic.data.stories.dataset import GeneratedStories, StoryFolder
from mnemic.data.texts.articles import ArticleFiles
from mnemic.data.texts.dataset import ClassFiles, PairFiles, SpanFiles, TagFiles

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
}

# Kinds that are read in windows, without a memory.
TEXTS = ("classes", "pairs", "spans", "tags", "reading", "corpus")
