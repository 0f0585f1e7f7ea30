"""What a noise changes: the source of a text, at times the target.

A noise is a pure function ``noise(texts, keys, vocabulary) → texts``. All that is random depends
on the ``keys`` of the rows alone, so that neither padding nor the rest of a batch changes a row.
Special tokens (``is_fixed``) are never changed or moved. A noise with ``sets_targets`` also decides
what the decoder says; without one it says the whole text.

Shapes: b batch, n tokens of a source, m tokens that the decoder says, v vocabulary.
"""

from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

INSERTED = -1  # the origin of a token that is not of the text


class NoiseVocabulary(NamedTuple):
    """The tokens that noises need to know."""

    mask_id: Tensor
    ordinary_ids: Tensor  # v, to draw random tokens from
    sentinel_ids: Tensor  # those that stand for spans, in order; none if the tokenizer has none
    sentence_end_ids: Tensor  # full stops and the like


class NoisyTexts(NamedTuple):
    """The sources of a batch of texts, and what the decoder says of them."""

    tokens: Tensor  # b n
    mask: Tensor  # b n, True = a real token
    is_fixed: Tensor  # b n, True = a special token, which no noise changes
    word_starts: Tensor  # b n, True where a word starts
    origins: Tensor  # b n, the position in the text of each token; INSERTED = it is none of the text
    targets: Tensor  # b m, ids; the first is not predicted, but what the decoder begins with
    target_mask: Tensor  # b m, True = a real token
    target_positions: Tensor  # b m, where the decoder stands when it reads each token

    @property
    def is_ordinary(self) -> Tensor:
        """Mark the tokens that a noise may change, b n."""
        return self.mask & ~self.is_fixed


class Noise(Protocol):
    """A change of texts, by random numbers that the keys of rows decide."""

    @property
    def sets_targets(self) -> bool: ...  # it decides what the decoder says

    def __call__(self, texts: NoisyTexts, keys: Tensor, vocabulary: NoiseVocabulary) -> NoisyTexts: ...


def start_texts(batch: Any) -> NoisyTexts:
    """Return the texts of a batch of a corpus without noise."""
    columns = torch.arange(batch.tokens.shape[1], device=batch.tokens.device).expand_as(batch.tokens)
    return NoisyTexts(
        tokens=batch.tokens,
        mask=batch.mask,
        is_fixed=batch.unmaskable & batch.mask,
        word_starts=batch.word_starts,
        origins=columns,
        targets=batch.tokens,
        target_mask=batch.mask,
        target_positions=columns,
    )
