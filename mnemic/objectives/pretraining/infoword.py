"""InfoWord: a sentence without an n-gram finds that n-gram among those of other sentences.

Shapes: b batch, n tokens, d width.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.data.corpora.word_keys import weigh_tokens
from mnemic.models import IGNORE, WindowBatch
from mnemic.objectives.contract import CarriedState, Loss, sum_weighted
from mnemic.objectives.contrast import info_nce
from mnemic.objectives.contrast_views import gather_rows_of_processes
from mnemic.objectives.pretraining.masked import TOKEN_MASKING, check_weights, mask_batch, masked_token_loss
from mnemic.objectives.pretraining.masking import MASKINGS
from mnemic.objectives.uniforms import make_uniforms
from mnemic.recipe import ConfigError, build

NGRAM_KEY = 0x6E6772616D  # so that n-grams are independent of masks


class HiddenNgrams(NamedTuple):
    """One n-gram of each sequence."""

    starts: Tensor  # b, its first token
    lengths: Tensor  # b, in tokens; 0: the sequence has none


class InfoWordLoss:
    """Contrast sentences without an n-gram with n-grams, and predict masks (Kong et al. 2020).

    arXiv:1910.08350, section 4: the first state of a sentence whose n-gram of 1 to ``max_ngram``
    tokens is hidden by [MASK] is to be nearest to the first state of that n-gram alone, [CLS]
    n-gram [SEP], among those of all sentences. Equal n-grams are no negatives. ``mlm`` and
    ``ngrams`` weight the mean losses. Processes that train together contrast all their n-grams.

    Where we differ: both losses read the same masked sentence, which saves half the work; products
    of states are divided by √d and by ``temperature``.
    """

    replaces = "masked"
    contrasts_batch = True

    def __init__(
        self,
        *,
        mlm: float = 1.0,
        ngrams: float = 1.0,
        max_ngram: int = 5,
        temperature: float = 1.0,
        masking: Mapping[str, Any] = TOKEN_MASKING,
        shards: int = 1,
    ) -> None:
        self.weights = {"mlm": mlm, "ngrams": ngrams}
        check_weights(self.weights)
        if max_ngram < 1 or not temperature > 0:
            raise ConfigError(
                f"infoword takes a max_ngram of at least 1 and a temperature above 0, not {max_ngram} and {temperature}"
            )
        if shards > 1:
            raise ConfigError("objective.kind 'infoword' contrasts all n-grams of a batch: leave out train.accumulate")
        self.max_ngram, self.temperature = max_ngram, temperature
        self.masking = build(MASKINGS, masking)

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        masked, count = mask_batch(batch, self.masking), len(batch.tokens)
        ngrams = draw_ngrams(batch.unmaskable, batch.mask_seeds, self.max_ngram)
        sentences = hide_ngrams(masked.inputs, ngrams, batch.mask_id)
        output = network(append_rows(sentences, cut_ngrams(batch, ngrams), self.max_ngram + 2))
        with torch.autocast(output.states.device.type, enabled=False):
            first_states = output.states[:, 0].float()
            ngram_loss = self.contrast(first_states[:count], first_states[count:], ngrams, key_ngrams(batch, ngrams))
        losses = {"mlm": masked_token_loss(output.logits, masked), "ngrams": ngram_loss}
        return sum_weighted(losses, self.weights)._replace(carried=carried)

    def contrast(self, sentences: Tensor, ngram_states: Tensor, ngrams: HiddenNgrams, keys: Tensor) -> Loss:
        """Let each sentence find its n-gram.

        ``sentences``, ``ngram_states`` b d; equal ``keys`` (b) are equal n-grams.
        """
        sentences, ngram_states, keys, lengths = (
            gather_rows_of_processes(rows) for rows in (sentences, ngram_states, keys, ngrams.lengths)
        )
        columns = torch.arange(len(keys), device=keys.device)
        return info_nce(
            sentences @ ngram_states.mT * sentences.shape[1] ** -0.5,
            torch.where(lengths > 0, columns, IGNORE),
            temperature=self.temperature,
            key_ids=keys,
            hidden=(lengths == 0).expand(len(keys), -1),
        )


def draw_ngrams(unmaskable: Tensor, seeds: Tensor, max_ngram: int) -> HiddenNgrams:
    """Draw one n-gram of each sequence, which has no special token: b n → b each.

    All lengths that fit are equally likely, and then all places.
    """
    num_tokens = unmaskable.shape[1]
    positions = torch.arange(num_tokens, device=unmaskable.device)
    ends = torch.where(unmaskable, positions, num_tokens).flip(1).cummin(1).values.flip(1)  # of the run, b n
    runs = ends - positions
    length_uniforms, place_uniforms = make_uniforms(seeds ^ NGRAM_KEY, 1, 2)[:, :, 0]  # b
    max_lengths = runs.amax(1).clamp(max=max_ngram)
    lengths = torch.minimum((length_uniforms * max_lengths).long() + 1, max_lengths)
    fits = runs >= lengths.clamp(min=1).unsqueeze(1)
    counts = fits.cumsum(1)
    ranks = (place_uniforms * counts[:, -1]).long()
    return HiddenNgrams((counts <= ranks.unsqueeze(1)).sum(1).clamp(max=num_tokens - 1), lengths)


def hide_ngrams(inputs: WindowBatch, ngrams: HiddenNgrams, mask_id: Tensor) -> WindowBatch:
    """Replace the n-grams of sentences by [MASK]."""
    positions = torch.arange(inputs.tokens.shape[1], device=inputs.tokens.device)
    ends = ngrams.starts + ngrams.lengths
    is_hidden = (positions >= ngrams.starts.unsqueeze(1)) & (positions < ends.unsqueeze(1))
    return inputs._replace(tokens=torch.where(is_hidden, mask_id, inputs.tokens))


def cut_ngrams(batch: Any, ngrams: HiddenNgrams) -> WindowBatch:
    """Make a text of each n-gram, between the first and last tokens of its sequence."""
    columns = torch.arange(batch.tokens.shape[1], device=batch.tokens.device)  # n
    positions = (ngrams.starts.unsqueeze(1) + columns - 1).clamp(0, len(columns) - 1)
    positions = positions.masked_fill(columns == 0, 0)
    last = batch.mask.sum(1, keepdim=True) - 1  # b 1
    ends = ngrams.lengths.unsqueeze(1) + 1
    positions = torch.where(columns == ends, last, positions)
    mask = columns <= ends
    tokens = batch.tokens.gather(1, positions)
    return WindowBatch(tokens, mask, torch.zeros_like(tokens), mask)


def key_ngrams(batch: Any, ngrams: HiddenNgrams) -> Tensor:
    """Compute one number per n-gram, b; equal n-grams have equal ones."""
    offsets = torch.arange(batch.tokens.shape[1], device=batch.tokens.device) - ngrams.starts.unsqueeze(1)
    is_part = (offsets >= 0) & (offsets < ngrams.lengths.unsqueeze(1))
    return weigh_tokens(batch.tokens, offsets.clamp(min=0)).masked_fill(~is_part, 0).sum(1)


def append_rows(sentences: WindowBatch, texts: WindowBatch, text_tokens: int) -> WindowBatch:
    """Append texts of at most ``text_tokens`` tokens to sentences, whose positions are asked."""
    max_tokens = sentences.max_tokens and sentences.max_tokens + text_tokens * len(texts.tokens)
    positions = sentences.answer_mask
    num_asked = sentences.tokens.numel()
    # Padding of the positions is what lies beyond the batch, which is now longer.
    positions = torch.where(positions == num_asked, num_asked + texts.tokens.numel(), positions)
    return WindowBatch(
        torch.cat([sentences.tokens, texts.tokens]),
        torch.cat([sentences.mask, texts.mask]),
        torch.cat([sentences.segment_ids, texts.segment_ids]),
        positions,
        max_tokens,
    )
