"""Decoder of the encoder–decoder Transformer: answer with a text, token by token.

Shapes: b batch, n tokens of the source, m tokens of the answer, d width, v vocabulary.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.encode.embeddings import Embeddings
from mnemic.encode.seq2seq.sessions import DecodingSession, SlotSession, StepSession
from mnemic.encode.stacks import DECODERS, KeyValueCache
from mnemic.encode.stacks.decoding import IncrementalDecoder, can_decode_in_slots
from mnemic.recipe import build
from mnemic.respond.contract import Response
from mnemic.respond.generate import SearchOptions
from mnemic.respond.next_token import check_tied_width

DEFAULT_EMBEDDINGS: Mapping[str, Any] = {
    "kind": "sum", "positions": {"kind": "sinusoidal"}, "scale": True, "norm": False,
}  # fmt: skip
DEFAULT_DECODER: Mapping[str, Any] = {"kind": "transformer"}


class SequenceDecoder(Response):
    """A Transformer decoder with cross-attention (Vaswani et al. 2017, figure 1).

    In training it gets the right answer, shifted by one token (teacher forcing). To generate, call
    ``start_decoding`` with a source and ``step`` once per token, as ``generate.greedy_search`` and
    ``beam_search`` do: nothing is computed twice, and the logits are those of ``forward``. With
    ``tied`` the encoder's word vectors also embed and score the answer (section 3.4);
    ``separate_output`` gives the scores a table of their own (T5 1.1), and ``bias`` a bias.
    """

    source = "text"
    methods = ("generate",)
    replaces = "masked"  # it rebuilds the texts of a corpus
    corpus_metrics = "denoising"

    def __init__(
        self,
        width: int,
        vocab: int,
        max_length: int,
        words: nn.Parameter | None = None,
        *,
        tied: bool = True,
        separate_output: bool = False,
        bias: bool = True,
        embeddings: Mapping[str, Any] = DEFAULT_EMBEDDINGS,
        decoder: Mapping[str, Any] = DEFAULT_DECODER,
    ) -> None:
        super().__init__()
        self.max_length = max_length  # tokens of an answer
        check_tied_width(words, width, tied)
        self.embeddings: Any = build({"sum": Embeddings}, embeddings, width=width, vocab=vocab)
        if tied and words is not None:
            self.embeddings.tokens = words
        self.decoder: Any = build(DECODERS, decoder, width=width, cross=True)
        self.output = nn.Parameter(torch.randn(vocab, width) * width**-0.5) if separate_output else None
        self.bias = nn.Parameter(torch.zeros(vocab)) if bias else None

    def forward(
        self, query: None, reading: None, states: Tensor, mask: Tensor, decoder_tokens: Tensor,
        decoder_positions: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """Score the token after each of ``decoder_tokens`` (b m): b m v.

        ``states`` b n d and ``mask`` b n are the source. ``decoder_tokens`` need no mask: no token
        sees later ones, where padding would be. ``decoder_positions`` (b m) are theirs in their
        text, if they are a piece of one.
        """
        return self.score_tokens(decoder_tokens, self.start_decoding(states, mask), decoder_positions)[0]

    def dummy_inputs(self, tokens: Tensor) -> dict[str, Any]:
        """Return answers as long as their sources."""
        return {"decoder_tokens": tokens}

    def start_decoding(self, states: Tensor, mask: Tensor) -> KeyValueCache:
        """Make a key-value cache for a source (b n d, mask b n)."""
        return self.decoder.empty_cache(states, states, mask)

    def step(self, last_tokens: Tensor, cache: KeyValueCache) -> tuple[Tensor, KeyValueCache]:
        """Score the next tokens (b v) after ``last_tokens`` (b); return the cache too."""
        logits, cache = self.score_tokens(last_tokens.unsqueeze(1), cache)
        return logits.squeeze(1), cache

    def start_session(self, states: Tensor, mask: Tensor, options: SearchOptions) -> DecodingSession:
        """Start to generate from sources (b n d, mask b n), with the least work.

        The decoder is in eval mode.
        """
        if not can_decode_in_slots(self.decoder):
            return StepSession(self.step, self.start_decoding(states, mask))
        max_slots = 1 + (options.max_tokens - 1) * options.num_beams
        return SlotSession(self.embed_at, IncrementalDecoder(self.decoder, states, mask, max_slots), self.score_states)

    def embed_at(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Embed tokens (b w) at their positions (b w): b w d."""
        return self.embeddings(tokens, torch.ones_like(tokens, dtype=torch.bool), positions=positions)

    def score_tokens(
        self, tokens: Tensor, cache: KeyValueCache, positions: Tensor | None = None
    ) -> tuple[Tensor, KeyValueCache]:
        """Score the token after each of ``tokens`` (b m), continuing from the cache."""
        mask = torch.ones_like(tokens, dtype=torch.bool)
        x = self.embeddings(tokens, mask, start=cache.mask.shape[1], positions=positions)
        output = self.decoder(x, mask, cache)
        return self.score_states(output.states), output.cache

    def score_states(self, states: Tensor) -> Tensor:
        """Score the vocabulary from the decoder's states: … d → … v."""
        table = self.embeddings.tokens if self.output is None else self.output
        return nn.functional.linear(states, table, self.bias)
