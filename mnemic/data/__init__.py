"""Loaders and generators of what networks learn from, one literal table of data sets."""

from collections.abc import Callable
from typing import Any

from mnemic.data.knowledge.dataset import GeneratedKnowledge, KnowledgeFolder
from mnemic.data.stories.dataset import GeneratedStories, StoryFolder

DATASETS: dict[str, Callable[..., Any]] = {
    "stories": StoryFolder,
    "generated": GeneratedStories,
    "knowledge": KnowledgeFolder,
    "generated-knowledge": GeneratedKnowledge,
}
