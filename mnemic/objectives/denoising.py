"""Rebuild texts from noisy ones: the objective of sequence-to-sequence pre-training.

Shapes: b batch, n tokens of a source, m tokens that the decoder says.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from mnemic.data.seq2seq.batches import Seq2SeqBatch
from mnemic.models import IGNORE, WindowBatch
from mnemic.objectives.contract import CarriedState, Loss
from mnemic.objectives.next_token import NextTokenLoss
from mnemic.objectives.noises import NoiseVocabulary, apply_noises, build_noises, start_texts

INFILLING: Sequence[Mapping[str, Any]] = ({"kind": "infilling"},)


class DenoisingLoss:
    """Cross-entropy of what a decoder says of a noisy source (BART, MASS, T5).

    ``noises`` are applied one after the other (see ``mnemic.objectives.noises``). The decoder says
    the whole text, or what the first noise decides: sentinels with their spans, a fragment, the
    rest. ``label_smoothing`` is as in ``next-token``.
    """

    replaces = "masked"
    has_noises = True

    def __init__(self, *, noises: Sequence[Mapping[str, Any]] = INFILLING, label_smoothing: float = 0.0) -> None:
        self.noises = build_noises(noises)
        self.loss = NextTokenLoss(label_smoothing=label_smoothing)

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        return self.loss(network, self.corrupt(batch), carried)

    def corrupt(self, batch: Any) -> Seq2SeqBatch:
        """Return the noisy sources of a batch, with what the decoder reads and says."""
        vocabulary = NoiseVocabulary(batch.mask_id, batch.ordinary_ids, batch.sentinel_ids, batch.sentence_end_ids)
        texts = apply_noises(self.noises, start_texts(batch), batch.mask_seeds, vocabulary)
        segments = texts.tokens.new_zeros(texts.tokens.shape)
        inputs = WindowBatch(
            texts.tokens, texts.mask, segments, texts.mask,
            decoder_tokens=texts.targets[:, :-1], decoder_positions=texts.target_positions[:, :-1],
        )  # fmt: skip
        return Seq2SeqBatch(inputs, texts.targets[:, 1:].masked_fill(~texts.target_mask[:, 1:], IGNORE))
