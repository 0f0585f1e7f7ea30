"""Predict with trained networks: stories, texts, long texts, knowledge bases, generation."""

from mnemic.predict.knowledge import ask_knowledge_base as ask_knowledge_base
from mnemic.predict.knowledge import has_knowledge_base as has_knowledge_base
from mnemic.predict.story import SentenceEvidence as SentenceEvidence
from mnemic.predict.story import SlotActivity as SlotActivity
from mnemic.predict.story import StoryAnswer as StoryAnswer
from mnemic.predict.story import ask_story as ask_story
from mnemic.predict.story import compute_sentence_weights as compute_sentence_weights
