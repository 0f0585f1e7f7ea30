"""Predict with trained networks: stories, texts, long texts, knowledge bases, generation."""

from typing import TYPE_CHECKING

from mnemic._lazy import lazy_names

if TYPE_CHECKING:
    from mnemic.predict.knowledge import ask_knowledge_base as ask_knowledge_base
    from mnemic.predict.knowledge import has_knowledge_base as has_knowledge_base
    from mnemic.predict.story import SentenceEvidence as SentenceEvidence
    from mnemic.predict.story import SlotActivity as SlotActivity
    from mnemic.predict.story import StoryAnswer as StoryAnswer
    from mnemic.predict.story import ask_story as ask_story
    from mnemic.predict.story import compute_sentence_weights as compute_sentence_weights

# Loaded on use: what reads texts needs no stories, and a question waits for every import.
_HOMES = {
    "mnemic.predict.knowledge": ["ask_knowledge_base", "has_knowledge_base"],
    "mnemic.predict.story": [
        "SentenceEvidence",
        "SlotActivity",
        "StoryAnswer",
        "ask_story",
        "compute_sentence_weights",
    ],
}
if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
