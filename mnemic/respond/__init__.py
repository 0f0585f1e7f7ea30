"""R of the frame: from what was found to an answer."""

from collections.abc import Callable
from typing import Any

from mnemic.respond.decoded import DecodedWord
from mnemic.respond.joined import JoinedWord
from mnemic.respond.matched import MatchedWord
from mnemic.respond.relation import Relation
from mnemic.respond.several import SeveralWords
from mnemic.respond.word import AnswerWord

RESPONSES: dict[str, Callable[..., Any]] = {
    "decoded": DecodedWord,
    "joined": JoinedWord,
    "matched": MatchedWord,
    "relation": Relation,
    "several": SeveralWords,
    "word": AnswerWord,
}
