"""Noises on single tokens: mask them, or delete them."""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from mnemic.objectives.noises.arrange import keep_tokens
from mnemic.objectives.noises.contract import NoiseVocabulary, NoisyTexts
from mnemic.objectives.pretraining.masking import MASKINGS, MaskedRows, ReplacementShares, check_shares, mask_rows
from mnemic.recipe import build

TOKEN_MASKING: Mapping[str, Any] = {"kind": "tokens", "rate": 0.15}


class TokenMaskingNoise:
    """Replace tokens by [MASK] (BART; Lewis et al. 2020, section 2.2).

    ``masking`` says which, as in the objective ``masked``. Of them ``mask_share`` become [MASK],
    ``keep_share`` stay, and the rest become random tokens; BART has [MASK] alone, BERT 0.8 and 0.1.
    """

    sets_targets: ClassVar[bool] = False

    def __init__(
        self, *, masking: Mapping[str, Any] = TOKEN_MASKING, mask_share: float = 1.0, keep_share: float = 0.0
    ) -> None:
        self.masking = build(MASKINGS, masking)
        self.shares = ReplacementShares(mask_share, keep_share)
        check_shares(self.shares)

    def __call__(self, texts: NoisyTexts, keys: Tensor, vocabulary: NoiseVocabulary) -> NoisyTexts:
        return texts._replace(tokens=choose_tokens(self.masking, texts, keys, vocabulary, self.shares).inputs)


class TokenDeletionNoise:
    """Delete tokens; which are missing is to be found out, too (BART, section 2.2).

    ``masking`` says which, as in the objective ``masked``.
    """

    sets_targets: ClassVar[bool] = False

    def __init__(self, *, masking: Mapping[str, Any] = TOKEN_MASKING) -> None:
        self.masking = build(MASKINGS, masking)

    def __call__(self, texts: NoisyTexts, keys: Tensor, vocabulary: NoiseVocabulary) -> NoisyTexts:
        return keep_tokens(texts, ~choose_tokens(self.masking, texts, keys, vocabulary, ReplacementShares(1, 0)).mask)


def choose_tokens(
    masking: Any, texts: NoisyTexts, keys: Tensor, vocabulary: NoiseVocabulary, shares: ReplacementShares
) -> MaskedRows:
    """Choose tokens of sources, and replace them by ``shares``."""
    return mask_rows(
        masking, texts.tokens, ~texts.is_ordinary, texts.word_starts, keys,
        mask_id=vocabulary.mask_id, random_ids=vocabulary.ordinary_ids, shares=shares,
    )  # fmt: skip
