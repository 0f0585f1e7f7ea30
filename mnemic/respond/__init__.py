"""R of the frame: from what was found to an answer."""

from collections.abc import Callable
from typing import Any

from mnemic.respond.classes import Classes
from mnemic.respond.next_token import NextWord
from mnemic.respond.predictor import Predictor
from mnemic.respond.pretraining import PretrainingHeads
from mnemic.respond.quote import Quotes
from mnemic.respond.relation import Relation
from mnemic.respond.sequence import SpokenSequence
from mnemic.respond.spans import Spans
from mnemic.respond.tags import Tags
from mnemic.respond.word import AnswerWord
from mnemic.respond.word_decoder import DecodedWord
from mnemic.respond.word_joint import JoinedWord
from mnemic.respond.word_match import MatchedWord
from mnemic.respond.words import SeveralWords

RESPONSES: dict[str, Callable[..., Any]] = {
    "classes": Classes,
    "decoded": DecodedWord,
    "joined": JoinedWord,
    "masked": PretrainingHeads,
    "matched": MatchedWord,
    "next": NextWord,
    "predictor": Predictor,
    "quotes": Quotes,
    "relation": Relation,
    "sequence": SpokenSequence,
    "several": SeveralWords,
    "spans": Spans,
    "tags": Tags,
    "word": AnswerWord,
}

# Kinds that answer from the states of a text alone, in networks without a memory.
WITHOUT_MEMORY = ("classes", "masked", "next", "sequence", "spans", "tags")
# Kinds that answer from a memory that was carried through a text, with nothing of the text at hand.
FROM_MEMORY = ("predictor", "quotes")
