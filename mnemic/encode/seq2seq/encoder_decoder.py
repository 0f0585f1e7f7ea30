"""The encoder–decoder as a body for heads: a text is read twice.

Shapes: b batch, n tokens, t tokens of all texts, d width.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from mnemic.encode.embeddings import DEFAULT_EMBEDDINGS, Embeddings, Notes
from mnemic.encode.packed import PackedMask
from mnemic.encode.stacks import DECODERS, FactorizationOrder, StackContext
from mnemic.encode.transformer import DEFAULT_STACK, TransformerEncoder
from mnemic.recipe import ConfigError, build

DEFAULT_DECODER: Mapping[str, Any] = {"kind": "transformer"}


class EncoderDecoder(TransformerEncoder):
    """Read a text by the encoder, then again by the decoder, whose states heads see.

    Lewis et al. 2020, sections 3.1 and 3.2 (BART): the class of a text is read off the decoder's
    state of the last token (``model.respond.pool = "last"``), which has seen all of both; the ends
    of an answer off the states of all tokens. The decoder reads the token before each, and at the
    first one the last: the end of the text, with which BART's decoder begins, too. With ``tied``
    both embed by the same word vectors. A network of this kind may start from one that was trained
    to answer with texts. Tokens see no context of earlier states.
    """

    takes_notes = False
    has_layers = False  # those of the encoder alone say little

    def __init__(
        self,
        width: int,
        vocab: int,
        *,
        embeddings: Mapping[str, Any] = DEFAULT_EMBEDDINGS,
        stack: Mapping[str, Any] = DEFAULT_STACK,
        decoder_embeddings: Mapping[str, Any] = DEFAULT_EMBEDDINGS,
        decoder: Mapping[str, Any] = DEFAULT_DECODER,
        tied: bool = True,
    ) -> None:
        super().__init__(width, vocab, embeddings=embeddings, stack=stack)
        self.decoder_embeddings: Any = build({"sum": Embeddings}, decoder_embeddings, width=width, vocab=vocab)
        if tied:  # one weight
            self.decoder_embeddings.tokens = self.embeddings.tokens
        self.decoder: Any = build(DECODERS, decoder, width=width, cross=True)

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor | PackedMask,
        context: StackContext | None = None,
        *,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
        max_tokens: int = 0,
        order: FactorizationOrder | None = None,
        notes: Notes | None = None,
        task_ids: Tensor | None = None,
    ) -> Tensor:
        """Read tokens b n twice → b n d, zeros at padding.

        ``mask`` is b n, with padding last, or a ``PackedMask``; the rest is as in
        ``TransformerEncoder``, but for what other kinds are for.
        """
        is_plain = context is None and order is None and notes is None and task_ids is None
        if not is_plain or (isinstance(mask, Tensor) and mask.dim() != 2):
            raise ConfigError("an encoder-decoder takes tokens and a mask b n alone: use the kind 'transformer'")
        states = super().forward(tokens, mask, segments=segments, positions=positions, max_tokens=max_tokens)
        if isinstance(mask, PackedMask):
            lengths = torch.tensor(mask.lengths, device=tokens.device)
            real = torch.arange(mask.max_seqlen, device=tokens.device) < lengths.unsqueeze(1)  # b n
            padded_states = states.new_zeros(*real.shape, self.width).masked_scatter(real.unsqueeze(-1), states[0])
            padded_tokens = tokens.new_zeros(real.shape).masked_scatter(real, tokens[0])
            return self.read_again(padded_tokens, real, padded_states)[real].unsqueeze(0)  # 1 t d
        return self.read_again(tokens, mask, states)

    def read_again(self, tokens: Tensor, mask: Tensor, states: Tensor) -> Tensor:
        """Read tokens (b n) left to right, with the encoder's states as the source."""
        previous = shift_tokens_right(tokens, mask)
        x = self.decoder_embeddings(previous, mask)
        return self.decoder(x, mask, self.decoder.empty_cache(x, states, mask)).states


def shift_tokens_right(tokens: Tensor, mask: Tensor) -> Tensor:
    """Return the token before each, at the first one the last: b n.

    >>> tokens = torch.tensor([[5, 6, 7, 0]])
    >>> shift_tokens_right(tokens, tokens > 0).tolist()
    [[7, 5, 6, 7]]
    """
    if not tokens.shape[1]:
        return tokens
    last = tokens.gather(1, (mask.sum(1, keepdim=True) - 1).clamp(min=0))
    return torch.cat([last, tokens[:, :-1]], 1)
