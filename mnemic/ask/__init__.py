"""Ask a trained network; the answer carries its evidence: about a story, or a knowledge base.

``remember`` reads a text of any length into a memory, which ``recollect`` answers from.
"""

from mnemic.ask.base import ask_base, knows_base
from mnemic.ask.recollection import Recollection, Remembered, load_memory, recollect, remember
from mnemic.ask.story import Answer, Evidence, Slots, ask_story, read_of

__all__ = [
    "Answer",
    "Evidence",
    "Recollection",
    "Remembered",
    "Slots",
    "ask_base",
    "ask_story",
    "knows_base",
    "load_memory",
    "read_of",
    "recollect",
    "remember",
]
