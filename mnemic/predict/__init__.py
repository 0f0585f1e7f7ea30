"""Predict with trained networks: stories, texts, long texts, knowledge bases, generation."""

from mnemic.predict.knowledge import ask_knowledge_base, has_knowledge_base
from mnemic.predict.story import SentenceEvidence, SlotActivity, StoryAnswer, ask_story, compute_sentence_weights

__all__ = [
    "SentenceEvidence",
    "SlotActivity",
    "StoryAnswer",
    "ask_knowledge_base",
    "ask_story",
    "compute_sentence_weights",
    "has_knowledge_base",
]
