"""The Transformer encoder: embeddings and a stack of bidirectional layers.

Shapes: b batch, n tokens, m context positions, t real tokens, d width.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.encode.embeddings import DEFAULT_EMBEDDINGS
from mnemic.encode.packed import MAX_TOKENS_CPU, PackedMask, find_true_positions, group_by_length, has_varlen_kernel
from mnemic.encode.stacks import STACKS, StackContext, extend_context, real_token_mask
from mnemic.encode.token_encoder import TokenEncoder
from mnemic.recipe import build

DEFAULT_STACK: Mapping[str, Any] = {"kind": "encoder"}


class TransformerEncoder(TokenEncoder):
    """A bidirectional Transformer encoder (Vaswani et al. 2017), as in BERT.

    On a CPU a padded batch is packed internally, so that nothing is computed on padding. A GPU
    would have to synchronize to learn the lengths: there ``encode_ragged`` packs the texts
    beforehand, or the caller states with ``max_tokens`` how many tokens are real.

    ``memory_length`` is the number of earlier states per layer that a segment of a document attends
    to, as in ``CausalEncoder``; within the segment every token sees every token.
    """

    takes_max_tokens = True
    has_layers = True

    def __init__(
        self,
        width: int,
        vocab: int,
        *,
        embeddings: Mapping[str, Any] = DEFAULT_EMBEDDINGS,
        stack: Mapping[str, Any] = DEFAULT_STACK,
        memory_length: int = 0,
    ) -> None:
        super().__init__(width, vocab, embeddings)
        self.stack: Any = build(STACKS, stack, width=width)
        self.memory_length = memory_length
        self.check_memory_length("encoder")
        self.segments = 0 if self.embeddings.segments is None else len(self.embeddings.segments)

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor | PackedMask,
        context: StackContext | None = None,
        *,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
        max_tokens: int = 0,
    ) -> Tensor:
        """Encode tokens b n → b n d, zeros at padding.

        ``mask`` is b n, or b n n where it depends on the query, or a ``PackedMask`` where
        ``tokens`` is one row of packed texts, which need their own ``positions``. Every token sees
        ``context``. At most ``max_tokens`` tokens are not padding; 0 if unknown. vmap, which cannot
        pack, uses an attention that does not support it.
        """
        if isinstance(mask, PackedMask) and mask.lengths and not self.stack.supports_packing:
            return self.encode_unpacked(tokens, mask, segments, positions)
        if isinstance(mask, PackedMask) or context is not None or mask.dim() != 2 or not self.stack.supports_packing:
            return self.encode_batch(tokens, mask, segments, positions, context)
        if max_tokens and has_varlen_kernel(mask.device, self.stack.max_attention_dropout):
            return self.encode_within_capacity(tokens, mask, segments, positions, max_tokens)
        if mask.device.type == "cpu" and bool(mask.any()):
            return self.encode_packed(tokens, mask, segments, positions)
        return self.encode_batch(tokens, mask, segments, positions)

    def iterate_layers(
        self,
        tokens: Tensor,
        mask: Tensor | PackedMask,
        *,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Iterator[Tensor]:
        """Yield the embeddings of a batch, then the states of each layer.

        ``tokens``, ``mask`` b n → depth + 1 times b n d, before the last norm; what is at padding
        means nothing. A packed row, with its ``positions``, gives rows 1 t d.
        """
        x = self.embeddings(tokens, real_token_mask(mask), segments=segments, positions=positions)
        yield from self.stack.iterate_layers(x, mask)

    def encode_segment(
        self, tokens: Tensor, mask: Tensor, context: StackContext | None = None
    ) -> tuple[Tensor, StackContext]:
        """Encode the next segment of documents; return states and the next context.

        ``tokens``, ``mask``: b n → b n d. Gradients reach the weights that project the context, and
        nothing of earlier segments.
        """
        *layer_inputs, last = self.stack.iterate_layers(self.embeddings(tokens, mask), mask, context)
        states = self.stack.norm(last) * mask.unsqueeze(-1)
        return states, extend_context(context, layer_inputs, mask, self.memory_length)

    def iterate_scores(self, tokens: Tensor, mask: Tensor, context: StackContext) -> Iterator[Tensor]:
        """Yield each layer's attention scores of the context and the segment, b h n m+n."""
        yield from self.stack.iterate_scores(self.embeddings(tokens, mask), mask, context)

    def encode_batch(
        self,
        tokens: Tensor,
        mask: Tensor | PackedMask,
        segments: Tensor | None,
        positions: Tensor | None,
        context: StackContext | None = None,
    ) -> Tensor:
        """Encode a batch as it is, padding included.

        On a CPU a packed row gets a few filler tokens.
        """
        num_filler = 0
        if isinstance(mask, PackedMask) and (num_filler := mask.count_filler_tokens()):
            mask = PackedMask.from_lengths([*mask.lengths, num_filler], tokens.device)
            tokens = nn.functional.pad(tokens, (0, num_filler))
            segments = None if segments is None else nn.functional.pad(segments, (0, num_filler))
            positions = None if positions is None else nn.functional.pad(positions, (0, num_filler))
        x = self.embeddings(tokens, real_token_mask(mask), segments=segments, positions=positions)
        states = self.stack(x, mask, context)
        return states[:, : states.shape[1] - num_filler]

    def encode_unpacked(
        self, tokens: Tensor, packed: PackedMask, segments: Tensor | None, positions: Tensor | None
    ) -> Tensor:
        """Encode a row of packed texts as a padded batch, for stacks that cannot pack."""
        lengths = torch.tensor(packed.lengths, device=tokens.device)
        mask = torch.arange(packed.max_seqlen, device=tokens.device) < lengths.unsqueeze(1)  # b n

        def pad_texts(values: Tensor) -> Tensor:
            return values.new_zeros(mask.shape).masked_scatter(mask, values[0])

        states = self.encode_batch(
            pad_texts(tokens),
            mask,
            None if segments is None else pad_texts(segments),
            None if positions is None else pad_texts(positions),
        )
        return states[mask].unsqueeze(0)  # 1 t d

    def encode_packed(self, tokens: Tensor, mask: Tensor, segments: Tensor | None, positions: Tensor | None) -> Tensor:
        """Encode the real tokens of a padded batch in packed rows, then restore the padding."""
        lengths = mask.sum(1).tolist()
        rows, columns, outputs = [], [], []
        for group in group_by_length(lengths, MAX_TOKENS_CPU):
            text_ids = torch.tensor(group)
            row, column = mask[text_ids].nonzero(as_tuple=True)  # t
            row = text_ids[row]
            packed = PackedMask.from_lengths([lengths[number] for number in group], tokens.device)
            packed_segments = None if segments is None else segments[row, column].unsqueeze(0)
            packed_positions = column if positions is None else positions[row, column]
            packed_tokens = tokens[row, column].unsqueeze(0)  # 1 t
            rows.append(row)
            columns.append(column)
            outputs.append(self.encode_batch(packed_tokens, packed, packed_segments, packed_positions.unsqueeze(0))[0])
        states = torch.cat(outputs)  # t d
        padded = states.new_zeros(*tokens.shape, self.width)
        return padded.index_put((torch.cat(rows), torch.cat(columns)), states)

    def encode_within_capacity(
        self, tokens: Tensor, mask: Tensor, segments: Tensor | None, positions: Tensor | None, capacity: int
    ) -> Tensor:
        """Encode the real tokens of a padded batch in one packed row of ``capacity`` tokens.

        As ``encode_packed``, but without a GPU synchronization. Tokens beyond the capacity would be
        lost.
        """
        token_indices = find_true_positions(mask, capacity)  # t
        valid_indices = token_indices.clamp(max=mask.numel() - 1)
        column = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)

        def pack_row(values: Tensor) -> Tensor:
            return values.flatten().index_select(0, valid_indices).unsqueeze(0)  # 1 t

        states = self.encode_batch(
            pack_row(tokens),
            PackedMask.from_mask(mask, capacity),
            None if segments is None else pack_row(segments),
            pack_row(column if positions is None else positions),
        )
        padded = states.new_zeros(mask.numel() + 1, self.width)  # the last row takes unused capacity
        return padded.index_copy(0, token_indices, states[0])[:-1].unflatten(0, mask.shape)
