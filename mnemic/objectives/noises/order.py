"""Noises on the order of tokens: permute sentences, rotate the text.

Shapes: b batch, n tokens.
"""

from typing import ClassVar

import torch
from torch import Tensor

from mnemic.objectives.noises.arrange import number_ordinary, sort_ordinary
from mnemic.objectives.noises.contract import NoiseVocabulary, NoisyTexts
from mnemic.objectives.uniforms import BITS, make_uniforms


class SentencePermutationNoise:
    """Put the sentences of a text in random order (BART, section 2.2).

    Lewis et al. 2020. As in the authors' code a sentence ends at a full stop, whatever it is for;
    here "?" and "!" end one, too, and so does a special token. All orders are equally likely.
    """

    sets_targets: ClassVar[bool] = False

    def __call__(self, texts: NoisyTexts, keys: Tensor, vocabulary: NoiseVocabulary) -> NoisyTexts:
        uniforms = make_uniforms(keys, texts.tokens.shape[1], 1)[0]
        priorities = (uniforms * 2**BITS).long()
        return sort_ordinary(texts, priorities.gather(1, find_sentence_starts(texts, vocabulary)))


class RotationNoise:
    """Rotate a text so that it begins with a random token (BART, section 2.2).

    All tokens are equally likely; the first one leaves the text as it is.
    """

    sets_targets: ClassVar[bool] = False

    def __call__(self, texts: NoisyTexts, keys: Tensor, vocabulary: NoiseVocabulary) -> NoisyTexts:
        numbers, counts = number_ordinary(texts)
        counts = counts.clamp(min=1)
        first = (make_uniforms(keys, 1, 1)[0, :, 0] * counts).long().minimum(counts - 1)
        return sort_ordinary(texts, (numbers - first.unsqueeze(1)) % counts.unsqueeze(1))


def find_sentence_starts(texts: NoisyTexts, vocabulary: NoiseVocabulary) -> Tensor:
    """Find the column where each token's sentence begins, b n."""
    is_end = torch.isin(texts.tokens, vocabulary.sentence_end_ids) | ~texts.is_ordinary
    follows_end = torch.cat([torch.ones_like(is_end[:, :1]), is_end[:, :-1]], 1)
    follows_ordinary = torch.cat([torch.zeros_like(is_end[:, :1]), texts.is_ordinary[:, :-1]], 1)
    starts = follows_end & ~(is_end & follows_ordinary)  # several full stops end one sentence
    columns = torch.arange(is_end.shape[1], device=is_end.device)
    return torch.where(starts, columns, 0).cummax(1).values
