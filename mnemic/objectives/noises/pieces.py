"""Noises whose decoder says a fragment of the text, the rest, or all.

Shapes: b batch, n tokens.
"""

from typing import ClassVar

import torch
from torch import Tensor

from mnemic.objectives.noises.arrange import cut_stretch, find_columns, keep_tokens, number_ordinary
from mnemic.objectives.noises.contract import NoiseVocabulary, NoisyTexts
from mnemic.objectives.pretraining.masking import BERT_SHARES, ReplacementShares, check_shares, mask_tokens
from mnemic.objectives.uniforms import make_uniforms
from mnemic.recipe import ConfigError

EDGE_SHARE = 0.2  # of fragments at the start of their text, and at its end


class FragmentNoise:
    """Mask one fragment, which the decoder says at its place (MASS; Song et al. 2019).

    arXiv:1905.02450, section 3.2: a fragment of ``share`` of the tokens; the decoder reads only the
    tokens of the fragment before each, at their positions in the text. Of the fragment
    ``mask_share`` become [MASK] in the source, ``keep_share`` stay, and the rest become random. As
    in the authors' code a fifth of the fragments begin the text, a fifth end it, and the others
    begin anywhere; the token before the fragment is what the decoder begins with.
    """

    sets_targets: ClassVar[bool] = True

    def __init__(
        self, *, share: float = 0.5, mask_share: float = BERT_SHARES.mask, keep_share: float = BERT_SHARES.keep
    ) -> None:
        if not 0 < share <= 1:
            raise ConfigError(f"fragment.share is a share of the tokens above 0 and up to 1, not {share}")
        self.share, self.shares = share, ReplacementShares(mask_share, keep_share)
        check_shares(self.shares)

    def __call__(self, texts: NoisyTexts, keys: Tensor, vocabulary: NoiseVocabulary) -> NoisyTexts:
        numbers, counts = number_ordinary(texts)
        starts, lengths = self.draw_fragments(counts, make_uniforms(keys, 1, 2)[:, :, 0])
        columns = torch.arange(numbers.shape[1], device=numbers.device).expand_as(numbers)
        edges = torch.stack([starts, (starts + lengths - 1).clamp(min=0)], 1)  # b 2
        first, last = find_columns(numbers).gather(1, edges).unbind(1)
        is_inside = (columns >= first.unsqueeze(1)) & (columns <= last.unsqueeze(1))
        tokens, _ = mask_tokens(
            texts.tokens, is_inside & texts.is_ordinary, make_uniforms(keys, numbers.shape[1], 4)[2:],
            mask_id=vocabulary.mask_id, random_ids=vocabulary.ordinary_ids, shares=self.shares,
        )  # fmt: skip
        before = (first - 1).clamp(min=0)
        targets, target_mask = cut_stretch(texts.tokens, before, last - before + 1)
        positions, _ = cut_stretch(columns, before, last - before + 1)
        return texts._replace(tokens=tokens, targets=targets, target_mask=target_mask, target_positions=positions)

    def draw_fragments(self, counts: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        """Draw the first token and the length of fragments, b each, of ``counts`` tokens.

        ``uniforms`` (2 b) decide whether a fragment is at an edge, and where it is else.
        """
        lengths = (self.share * counts.double()).round().long().clamp(min=1).minimum(counts)
        num_starts = counts - lengths + 1
        anywhere = (uniforms[1] * num_starts).long().minimum(num_starts - 1)
        starts = torch.where(uniforms[0] < 2 * EDGE_SHARE, num_starts - 1, anywhere)
        return torch.where(uniforms[0] < EDGE_SHARE, 0, starts).clamp(min=0), lengths


class PrefixNoise:
    """Read the beginning of a text; the decoder says the rest.

    A prefix language model: Raffel et al. 2020, section 3.2.1; UniLM's view ``source-target`` (Dong
    et al. 2019) for an encoder and a decoder. All places to part the text are equally likely, with
    at least one token on either side.
    """

    sets_targets: ClassVar[bool] = True

    def __call__(self, texts: NoisyTexts, keys: Tensor, vocabulary: NoiseVocabulary) -> NoisyTexts:
        numbers, counts = number_ordinary(texts)
        num_splits = (counts - 1).clamp(min=1)
        split_number = 1 + (make_uniforms(keys, 1, 1)[0, :, 0] * num_splits).long().minimum(num_splits - 1)
        split_number = split_number.minimum((counts - 1).clamp(min=0)).unsqueeze(1)
        split = find_columns(numbers).gather(1, split_number).squeeze(1).clamp(min=1)
        columns = torch.arange(numbers.shape[1], device=numbers.device)
        lengths = texts.mask.sum(1)
        keep = (columns < split.unsqueeze(1)) | (columns == lengths.unsqueeze(1) - 1)
        rest, target_mask = cut_stretch(texts.tokens, split - 1, lengths - split + 1)
        targets = torch.cat([texts.tokens[:, :1], rest[:, 1:]], 1)
        positions = torch.arange(targets.shape[1], device=targets.device).expand_as(targets)
        return keep_tokens(texts, keep)._replace(targets=targets, target_mask=target_mask, target_positions=positions)


class CausalNoise:
    """Read nothing but [CLS]; the decoder says the whole text.

    A language model, as GPT: Radford et al. 2018. The decoder then is a causal network that learns
    nothing from its source.
    """

    sets_targets: ClassVar[bool] = True

    def __call__(self, texts: NoisyTexts, keys: Tensor, vocabulary: NoiseVocabulary) -> NoisyTexts:
        columns = torch.arange(texts.tokens.shape[1], device=texts.tokens.device)
        return keep_tokens(texts, (columns == 0).expand_as(texts.mask))
