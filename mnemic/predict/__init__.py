"""Ask a trained network; the answer carries its evidence: about a story, or a knowledge base."""

from mnemic.predict.knowledge import ask_base, knows_base
from mnemic.predict.story import Answer, Evidence, Slots, ask_story, read_of

__all__ = [
    "Answer",
    "Evidence",
    "Slots",
    "ask_base",
    "ask_story",
    "knows_base",
    "read_of",
]
