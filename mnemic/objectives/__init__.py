"""Training objectives: losses, and the masking of tokens, as functions of a network's output."""

from collections.abc import Callable
from typing import Any

from mnemic.objectives.answer import AnswerAndStepsLoss, AnswerLoss
from mnemic.objectives.answers import AnswersLoss
from mnemic.objectives.bert_mass import BertMassLoss, NextWordLoss
from mnemic.objectives.both_directions import BothDirectionsLoss
from mnemic.objectives.captions import CaptionLoss, SampledCaptionLoss
from mnemic.objectives.class_and_next_token import ClassAndNextTokenLoss
from mnemic.objectives.contract import CarriedState as CarriedState
from mnemic.objectives.contract import Loss as Loss
from mnemic.objectives.contrast_views import ContrastLoss
from mnemic.objectives.denoising import DenoisingLoss
from mnemic.objectives.distillation.layers import LayersLoss
from mnemic.objectives.distillation.soft_labels import DistilLoss
from mnemic.objectives.distillation.soft_ranking import RankingDistilLoss
from mnemic.objectives.facts import AnswerAndFactsLoss, AnswerAndGatesLoss
from mnemic.objectives.moco import MoCoLoss
from mnemic.objectives.multi_task import MultiTaskLoss
from mnemic.objectives.next_token import NextTokenLoss
from mnemic.objectives.pictures.alignment import AlignmentLoss
from mnemic.objectives.pictures.tasks import TaskLoss
from mnemic.objectives.pretraining.infoword import InfoWordLoss
from mnemic.objectives.pretraining.masked import PretrainingLoss
from mnemic.objectives.pretraining.next_subword import NextSubwordLoss
from mnemic.objectives.pretraining.notes import NotesLoss
from mnemic.objectives.pretraining.permuted import PermutedLoss
from mnemic.objectives.pretraining.replaced import ReplacedTokenLoss
from mnemic.objectives.pretraining.restored import RestoredTokenLoss
from mnemic.objectives.ranking import RankingLoss
from mnemic.objectives.retrieve_and_read import RetrieveAndReadLoss
from mnemic.objectives.text_tasks import ClassLoss, NumberLoss, SpanLoss, TagLoss

OBJECTIVES: dict[str, Callable[..., Any]] = {
    "alignment": AlignmentLoss,
    "answer": AnswerLoss,
    "answers": AnswersLoss,
    "answer+facts": AnswerAndFactsLoss,
    "answer+gates": AnswerAndGatesLoss,
    "answer+steps": AnswerAndStepsLoss,
    "bert-mass": BertMassLoss,
    "both-directions": BothDirectionsLoss,
    "captions": CaptionLoss,
    "classes": ClassLoss,
    "classes+next-token": ClassAndNextTokenLoss,
    "contrast": ContrastLoss,
    "denoising": DenoisingLoss,
    "distil": DistilLoss,
    "distil-ranking": RankingDistilLoss,
    "infoword": InfoWordLoss,
    "layers": LayersLoss,
    "masked": PretrainingLoss,
    "moco": MoCoLoss,
    "next-subword": NextSubwordLoss,
    "next-token": NextTokenLoss,
    "notes": NotesLoss,
    "numbers": NumberLoss,
    "permuted": PermutedLoss,
    "ranking": RankingLoss,
    "replaced": ReplacedTokenLoss,
    "restored": RestoredTokenLoss,
    "retrieve-and-read": RetrieveAndReadLoss,
    "sampled-captions": SampledCaptionLoss,
    "segment-next-token": NextWordLoss,
    "multi-task": MultiTaskLoss,
    "spans": SpanLoss,
    "tags": TagLoss,
    "tasks": TaskLoss,
}
