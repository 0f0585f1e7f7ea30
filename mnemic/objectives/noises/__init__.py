"""Noises of sequence-to-sequence pre-training, the table of their kinds, and their composition."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from mnemic.objectives.noises.contract import INSERTED as INSERTED
from mnemic.objectives.noises.contract import Noise, NoiseVocabulary, NoisyTexts
from mnemic.objectives.noises.contract import start_texts as start_texts
from mnemic.objectives.noises.infilling import InfillingNoise
from mnemic.objectives.noises.order import RotationNoise, SentencePermutationNoise
from mnemic.objectives.noises.pieces import CausalNoise, FragmentNoise, PrefixNoise
from mnemic.objectives.noises.sentinels import SentinelNoise
from mnemic.objectives.noises.tokens import TokenDeletionNoise, TokenMaskingNoise
from mnemic.objectives.uniforms import make_uniforms, mix_bits
from mnemic.recipe import ConfigError, build

NOISE_KEY = 0x6E6F697365  # so that noises are independent of masks
Specs = Sequence[Mapping[str, Any]]


class OneOfNoise:
    """Apply one of several lists of noises to each text, drawn by ``shares``.

    UniLM's mixture of views (Dong et al. 2019, arXiv:1905.03197) for an encoder and a decoder.
    ``choices`` are lists of noises, as ``objective.noises`` is; the decoder says the whole text
    where none of a list says otherwise.
    """

    def __init__(self, *, choices: Sequence[Specs] = (), shares: Sequence[float] = ()) -> None:
        if not choices or len(choices) != len(shares):
            raise ConfigError(f"one-of has choices and as many shares, not {len(choices)} and {len(shares)}")
        if min(shares) < 0 or not sum(shares):
            raise ConfigError(f"the shares of one-of are from 0 on, one of them above 0, not {list(shares)}")
        self.choices = [build_noises(specs) for specs in choices]
        self.shares = torch.tensor(list(shares), dtype=torch.float64)
        self.sets_targets = any(noise.sets_targets for noises in self.choices for noise in noises)

    def __call__(self, texts: NoisyTexts, keys: Tensor, vocabulary: NoiseVocabulary) -> NoisyTexts:
        bounds = (self.shares.cumsum(0) / self.shares.sum())[:-1].to(keys.device)
        numbers = torch.bucketize(make_uniforms(keys, 1, 1)[0, :, 0].double(), bounds, right=True)  # b
        results = [apply_noises(noises, texts, keys, vocabulary) for noises in self.choices]
        return NoisyTexts(*(select_rows(values, numbers) for values in zip(*results)))


NOISES: dict[str, Callable[..., Noise]] = {
    "token-masking": TokenMaskingNoise,
    "token-deletion": TokenDeletionNoise,
    "infilling": InfillingNoise,
    "sentence-permutation": SentencePermutationNoise,
    "rotation": RotationNoise,
    "sentinels": SentinelNoise,
    "fragment": FragmentNoise,
    "prefix": PrefixNoise,
    "causal": CausalNoise,
    "one-of": OneOfNoise,
}


def build_noises(specs: Specs) -> list[Noise]:
    """Build the noises of a list; what the decoder says is decided first, and once."""
    noises = [build(NOISES, spec) for spec in specs]
    if late := [spec["kind"] for spec, noise in list(zip(specs, noises))[1:] if noise.sets_targets]:
        raise ConfigError(
            f"noise {late[0]!r} decides what the decoder says, from a text that no noise has changed: put it first, "
            "and have one such noise at most"
        )
    return noises


def apply_noises(noises: Sequence[Noise], texts: NoisyTexts, keys: Tensor, vocabulary: NoiseVocabulary) -> NoisyTexts:
    """Apply noises one after the other, each with random numbers of its own."""
    for number, noise in enumerate(noises):
        texts = noise(texts, mix_bits(mix_bits(keys ^ NOISE_KEY) + number), vocabulary)
    return texts


def select_rows(values: Sequence[Tensor], numbers: Tensor) -> Tensor:
    """Select each row from the tensor (b n) whose number it has, padded with 0."""
    width = max(value.shape[1] for value in values)
    padded = [torch.nn.functional.pad(value, (0, width - value.shape[1])) for value in values]
    return torch.stack(padded)[numbers, torch.arange(len(numbers), device=numbers.device)]
