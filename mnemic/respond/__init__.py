"""Responses (R of the frame): heads and decoders that turn states into answers."""

from typing import Any

from mnemic.respond.both_directions import BothDirectionsHead
from mnemic.respond.classes import ClassHead, MultiTaskHeads
from mnemic.respond.next_token import NextTokenHead
from mnemic.respond.pictures.alignment import AlignmentHead
from mnemic.respond.pictures.caption import CaptionDecoder
from mnemic.respond.pictures.log_bilinear import BiasedLogBilinear, FactoredLogBilinear, LogBilinear
from mnemic.respond.pictures.tasks import TaskDecoder
from mnemic.respond.predictor import Predictor
from mnemic.respond.pretraining.masked import PretrainingHeads
from mnemic.respond.pretraining.permuted import PermutedHead
from mnemic.respond.pretraining.replaced import ReplacedTokenHead
from mnemic.respond.pretraining.restored import RestoredTokenHead
from mnemic.respond.quote import QuoteResponse
from mnemic.respond.relation import RelationHead
from mnemic.respond.sequence import SequenceDecoder
from mnemic.respond.spans import SpanHead
from mnemic.respond.tags import TagHead
from mnemic.respond.vector import VectorHead
from mnemic.respond.word import WordHead
from mnemic.respond.word_decoder import GRUWordHead
from mnemic.respond.word_joint import JointWordHead
from mnemic.respond.word_match import MatchWordHead
from mnemic.respond.words import MultiWordHead

RESPONSES: dict[str, type[Any]] = {
    "alignment": AlignmentHead,
    "both-directions": BothDirectionsHead,
    "caption": CaptionDecoder,
    "classes": ClassHead,
    "word-decoder": GRUWordHead,
    "word-joint": JointWordHead,
    "lbl": LogBilinear,
    "masked": PretrainingHeads,
    "word-match": MatchWordHead,
    "mlbl-b": BiasedLogBilinear,
    "mlbl-f": FactoredLogBilinear,
    "next-token": NextTokenHead,
    "permuted": PermutedHead,
    "predictor": Predictor,
    "quote": QuoteResponse,
    "relation": RelationHead,
    "replaced": ReplacedTokenHead,
    "restored": RestoredTokenHead,
    "seq2seq": SequenceDecoder,
    "words": MultiWordHead,
    "multi-task": MultiTaskHeads,
    "spans": SpanHead,
    "tags": TagHead,
    "tasks": TaskDecoder,
    "vector": VectorHead,
    "word": WordHead,
}
