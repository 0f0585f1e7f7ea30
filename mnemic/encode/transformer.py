"""The Transformer encoder: embeddings and a stack of bidirectional layers.

Shapes: b batch, n tokens, m context positions, t real tokens, d width.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.embeddings import DEFAULT_EMBEDDINGS, Notes
from mnemic.encode.packed import MAX_TOKENS_CPU, PackedMask, find_true_positions, group_by_length, has_varlen_kernel
from mnemic.encode.stacks import STACKS, FactorizationOrder, StackContext, extend_context, real_token_mask
from mnemic.encode.token_encoder import TokenEncoder
from mnemic.recipe import ConfigError, build

DEFAULT_STACK: Mapping[str, Any] = {"kind": "encoder"}


class TokenInputs(NamedTuple):
    """What an encoder knows of each token."""

    tokens: Tensor  # b n
    segments: Tensor | None = None  # b n
    positions: Tensor | None = None  # b n; None: from 0 on
    notes: Notes | None = None
    task_ids: Tensor | None = None  # b n, of its sequence; None: the first task

    def with_positions(self) -> "TokenInputs":
        """Return the same with the position of each token."""
        columns = torch.arange(self.tokens.shape[1], device=self.tokens.device).expand_as(self.tokens)
        return self if self.positions is not None else self._replace(positions=columns)

    def rearrange(self, change: Callable[[Tensor], Tensor]) -> "TokenInputs":
        """Change the shape of all values alike."""
        notes = None if self.notes is None else self.notes._replace(rows=change(self.notes.rows))
        segments, positions, task_ids = (
            None if values is None else change(values) for values in (self.segments, self.positions, self.task_ids)
        )
        return TokenInputs(change(self.tokens), segments, positions, notes, task_ids)


class TransformerEncoder(TokenEncoder):
    """A bidirectional Transformer encoder (Vaswani et al. 2017), as in BERT.

    On a CPU a padded batch is packed internally, so that nothing is computed on padding. A GPU
    would have to synchronize to learn the lengths: there ``encode_ragged`` packs the texts
    beforehand, or the caller states with ``max_tokens`` how many tokens are real.

    ``memory_length`` is the number of earlier states per layer that a segment of a document attends
    to, as in ``CausalEncoder``; within the segment every token sees every token.
    """

    takes_max_tokens = takes_notes = True
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
        self.takes_segments = getattr(self.stack, "takes_segments", False)  # the layers, not the embeddings
        self.segments = getattr(self.stack, "num_segments", self.segments)
        self.num_tasks = 0 if self.embeddings.tasks is None else len(self.embeddings.tasks)

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
        """Encode tokens b n → b n d, zeros at padding.

        ``mask`` is b n, or b n n where it depends on the query, or a ``PackedMask`` where
        ``tokens`` is one row of packed texts, which need their own ``positions``. Every token sees
        ``context``. At most ``max_tokens`` tokens are not padding; 0 if unknown. vmap, which cannot
        pack, uses an attention that does not support it. With an ``order`` the states are those
        of a ``two-stream`` stack's query stream, zeros at tokens that are not asked.
        """
        inputs = TokenInputs(tokens, segments, positions, notes, task_ids)
        if order is not None:
            return self.encode_in_order(inputs, mask, order)
        if isinstance(mask, PackedMask) and mask.lengths and not self.stack.supports_packing:
            return self.encode_unpacked(inputs, mask)
        if isinstance(mask, PackedMask) or context is not None or mask.dim() != 2 or not self.stack.supports_packing:
            return self.encode_batch(inputs, mask, context)
        if max_tokens and has_varlen_kernel(mask.device, self.stack.max_attention_dropout):
            return self.encode_within_capacity(inputs, mask, max_tokens)
        if mask.device.type == "cpu" and bool(mask.any()):
            return self.encode_packed(inputs, mask)
        return self.encode_batch(inputs, mask)

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
        x, stack_kwargs = self.embed(TokenInputs(tokens, segments, positions), mask)
        yield from self.stack.iterate_layers(x, mask, **stack_kwargs)

    def embed(self, inputs: TokenInputs, mask: Tensor | PackedMask) -> tuple[Tensor, dict[str, Any]]:
        """Embed tokens, b n → b n d; return what the layers take beside them, too."""
        segments = None if self.takes_segments else inputs.segments
        kwargs = {"segments": segments, "positions": inputs.positions, "notes": inputs.notes}
        kwargs["task_ids"] = inputs.task_ids
        x = self.embeddings(inputs.tokens, real_token_mask(mask), **kwargs)
        return x, {"segments": inputs.segments} if self.takes_segments else {}

    def encode_in_order(self, inputs: TokenInputs, mask: Tensor | PackedMask, order: FactorizationOrder) -> Tensor:
        """Encode asked tokens from those before them in an order: b n → b n d."""
        if not getattr(self.stack, "reads_in_order", False):
            raise ConfigError(
                "these layers read in no other order than that of the text: set model.encode.stack.kind=two-stream"
            )
        x, stack_kwargs = self.embed(inputs, mask)
        return self.stack.predict(x, mask, order, **stack_kwargs)[0]

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
        self, inputs: TokenInputs, mask: Tensor | PackedMask, context: StackContext | None = None
    ) -> Tensor:
        """Encode a batch as it is, padding included.

        On a CPU a packed row gets a few filler tokens.
        """
        num_filler = 0
        if isinstance(mask, PackedMask) and (num_filler := mask.count_filler_tokens()):
            mask = PackedMask.from_lengths([*mask.lengths, num_filler], inputs.tokens.device)
            inputs = inputs.rearrange(lambda values: nn.functional.pad(values, (0, num_filler)))
        x, stack_kwargs = self.embed(inputs, mask)
        states = self.stack(x, mask, context, **stack_kwargs)
        return states[:, : states.shape[1] - num_filler]

    def encode_unpacked(self, inputs: TokenInputs, packed: PackedMask) -> Tensor:
        """Encode a row of packed texts as a padded batch, for stacks that cannot pack."""
        lengths = torch.tensor(packed.lengths, device=inputs.tokens.device)
        mask = torch.arange(packed.max_seqlen, device=lengths.device) < lengths.unsqueeze(1)  # b n

        def pad_texts(values: Tensor) -> Tensor:
            return values.new_zeros(mask.shape).masked_scatter(mask, values[0])

        return self.encode_batch(inputs.rearrange(pad_texts), mask)[mask].unsqueeze(0)  # 1 t d

    def encode_packed(self, inputs: TokenInputs, mask: Tensor) -> Tensor:
        """Encode the real tokens of a padded batch in packed rows, then restore the padding."""
        lengths, inputs = mask.sum(1).tolist(), inputs.with_positions()
        rows, columns, outputs = [], [], []
        for group in group_by_length(lengths, MAX_TOKENS_CPU):
            text_ids = torch.tensor(group)
            row, column = mask[text_ids].nonzero(as_tuple=True)  # t
            row = text_ids[row]
            packed = PackedMask.from_lengths([lengths[number] for number in group], mask.device)
            packed_inputs = inputs.rearrange(partial(select_tokens, row=row, column=column))
            rows.append(row)
            columns.append(column)
            outputs.append(self.encode_batch(packed_inputs, packed)[0])
        states = torch.cat(outputs)  # t d
        padded = states.new_zeros(*mask.shape, self.width)
        return padded.index_put((torch.cat(rows), torch.cat(columns)), states)

    def encode_within_capacity(self, inputs: TokenInputs, mask: Tensor, capacity: int) -> Tensor:
        """Encode the real tokens of a padded batch in one packed row of ``capacity`` tokens.

        As ``encode_packed``, but without a GPU synchronization. Tokens beyond the capacity would be
        lost.
        """
        token_indices = find_true_positions(mask, capacity)  # t
        valid_indices = token_indices.clamp(max=mask.numel() - 1)

        def pack_row(values: Tensor) -> Tensor:
            return values.flatten().index_select(0, valid_indices).unsqueeze(0)  # 1 t

        packed_inputs = inputs.with_positions().rearrange(pack_row)
        states = self.encode_batch(packed_inputs, PackedMask.from_mask(mask, capacity))
        padded = states.new_zeros(mask.numel() + 1, self.width)  # the last row takes unused capacity
        return padded.index_copy(0, token_indices, states[0])[:-1].unflatten(0, mask.shape)


def select_tokens(values: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """Select some tokens of a batch as one row: b n → 1 t."""
    return values[row, column].unsqueeze(0)
