"""Run a decoder step by step for several beams, without work on padding.

Shapes: b sources, w beams, s positions of a source, t real tokens of all sources, n slots, d width,
h heads, c channels of one head.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.attention import KeyValues
from mnemic.encode.stacks.decoder import DecoderStack

MAX_PADDING = 1.25  # the longest source of a group is at most so many times as long as the shortest


class SourceGroup(NamedTuple):
    """Sources of similar length, whose keys and values are padded to the longest."""

    key_values: tuple[KeyValues, ...]  # one per layer: g h s c
    mask: Tensor | None  # g 1 1 s, 0 at real tokens and -inf elsewhere; None if no token is padding

    def select(self, rows: Tensor) -> "SourceGroup":
        """Select some sources by their numbers in the group."""
        key_values = tuple(KeyValues(*(values[rows] for values in layer)) for layer in self.key_values)
        return SourceGroup(key_values, None if self.mask is None else self.mask[rows])

    @property
    def num_sources(self) -> int:
        """The number of sources."""
        return self.key_values[0].keys.shape[0]


class IncrementalDecoder:
    """Run a ``DecoderStack`` over sources, one token of each beam at a time.

    The states are those of the stack with its cache; what differs is the work. Keys and values of a
    new token are written into slots that are allocated once. A beam that goes on from another one
    copies nothing: it sees the slots of its own past, and a mask says which. All beams share the
    keys and values of their source, which are computed from real tokens alone. Sources are sorted
    by length, so that those of similar length share a call: ``order`` has their numbers.
    """

    def __init__(self, stack: DecoderStack, source: Tensor, source_mask: Tensor, max_slots: int) -> None:
        self.stack, self.max_slots = stack, max_slots
        lengths = source_mask.sum(1)
        self.order = lengths.argsort(stable=True)  # b
        ordered_mask = source_mask[self.order]
        self.groups = list(group_sources(stack, source[self.order][ordered_mask], lengths[self.order].tolist()))
        self.weights = [join_projections(block.attention.project) for block in stack.blocks]
        self.slots: list[KeyValues] = []  # one per layer: b h n c
        self.slot_steps: list[int] = []  # n, the step of each slot
        self.num_steps = 0
        self.visible: Tensor | None = None  # b w n, the slots of each beam's past; None: all

    def advance(self, x: Tensor, parents: Tensor | None) -> Tensor:
        """Run all layers on one token of each beam, b w d → b w d.

        ``parents`` (b w) are the beams of the step before that these go on from.
        """
        self.extend_visible(x, parents)
        self.slot_steps += [self.num_steps] * x.shape[1]
        self.num_steps += 1
        mask = None if self.visible is None else to_additive_mask(self.visible.unsqueeze(1), x.dtype)  # b 1 w n
        for number, block in enumerate(self.stack.blocks):
            x = self.run_block(number, block, x, mask)
        return self.stack.norm(x)

    def run_block(self, number: int, block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
        """Run one layer, b w d → b w d."""
        project, last = block.attention.project, len(self.slot_steps)
        joined = nn.functional.linear(block.around_attention.pre_norm(x), *self.weights[number])
        query, keys, values = joined.unflatten(-1, (3, project.heads, -1)).permute(2, 0, 3, 1, 4)  # b h w c
        if len(self.slots) <= number:
            sizes = (*keys.shape[:2], self.max_slots, keys.shape[-1])
            self.slots.append(KeyValues(keys.new_empty(sizes), values.new_empty(sizes)))
        past = self.slots[number]
        past.keys[:, :, last - x.shape[1] : last], past.values[:, :, last - x.shape[1] : last] = keys, values
        past = KeyValues(past.keys[:, :, :last], past.values[:, :, :last])
        bias = block.attention.step_bias(self.num_steps)  # h m
        if bias is not None:
            steps = torch.tensor(self.slot_steps, device=x.device)
            bias = bias.to(x.dtype)[:, steps].unsqueeze(1)  # h 1 n
            mask = bias.unsqueeze(0) if mask is None else mask + bias
        mask = None if mask is None else mask.to(query.dtype)
        mixed = nn.functional.scaled_dot_product_attention(query, *past, attn_mask=mask, scale=block.attention.scale)
        x = block.around_attention.add_and_norm(x, project.merge_heads(mixed))
        update = self.attend_to_sources(number, block.cross, block.around_cross.pre_norm(x))
        x = block.around_cross.add_and_norm(x, update)
        return block.around_feed.add_and_norm(x, block.feed(block.around_feed.pre_norm(x)))

    def attend_to_sources(self, number: int, cross: Any, x: Tensor) -> Tensor:
        """Attend from each beam to its source, b w d → b w d."""
        query, mixed = cross.project.project_query(x), []  # b h w c
        for rows, group in zip(query.split([group.num_sources for group in self.groups]), self.groups):
            mixed.append(
                nn.functional.scaled_dot_product_attention(
                    rows, *group.key_values[number], attn_mask=group.mask, scale=cross.scale
                )
            )
        return cross.project.merge_heads(torch.cat(mixed))

    def extend_visible(self, x: Tensor, parents: Tensor | None) -> None:
        """Let each beam see the slots of its parent and its own new one."""
        batch, num_beams = x.shape[:2]
        num_slots = len(self.slot_steps)
        if self.visible is None and num_beams == 1:
            return
        past = x.new_ones(batch, 1, num_slots, dtype=torch.bool) if self.visible is None else self.visible
        if parents is not None:
            past = past.gather(1, parents.unsqueeze(-1).expand(-1, -1, num_slots))
        new = torch.eye(num_beams, dtype=torch.bool, device=x.device).expand(batch, -1, -1)
        self.visible = torch.cat([past.expand(-1, num_beams, -1), new], -1)

    def select(self, rows: Tensor) -> None:
        """Go on with some sources only, by their sorted numbers, in order."""
        first, groups = 0, []
        for group in self.groups:
            in_group = rows[(rows >= first) & (rows < first + group.num_sources)] - first
            first += group.num_sources
            if len(in_group):
                groups.append(group.select(in_group))
        self.groups, self.order = groups, self.order[rows]
        self.slots = [KeyValues(*(values[rows] for values in layer)) for layer in self.slots]
        self.visible = None if self.visible is None else self.visible[rows]


def can_decode_in_slots(stack: nn.Module) -> bool:
    """Whether ``IncrementalDecoder`` can run a stack: a Transformer's, over a source."""
    if not isinstance(stack, DecoderStack) or not stack.cross or stack.training:
        return False
    kinds = (kind for block in stack.blocks for kind in (block.attention, block.cross))
    # Weights that are rounded for inference are of another class: they are not joined.
    return all(getattr(kind, "decodes_in_slots", False) and type(kind.project.query) is nn.Linear for kind in kinds)


def group_sources(stack: DecoderStack, tokens: Tensor, lengths: Sequence[int]) -> Iterator[SourceGroup]:
    """Compute the keys and values of sources, sorted by length, in groups.

    ``tokens`` (t d) are the states of their real tokens, one source after the other.
    """
    layers = [
        nn.functional.linear(tokens, *join_projections(block.cross.project, "key", "value")).unflatten(
            -1, (2, block.cross.project.heads, -1)
        )
        for block in stack.blocks
    ]  # t 2 h c
    first = 0
    for group_lengths in split_lengths(lengths):
        num_tokens, longest = sum(group_lengths), group_lengths[-1]
        pieces = [layer[first : first + num_tokens] for layer in layers]
        first += num_tokens
        if num_tokens == longest * len(group_lengths):  # no padding
            padded = [piece.unflatten(0, (len(group_lengths), longest)) for piece in pieces]
            mask = None
        else:
            is_real = torch.arange(longest, device=tokens.device) < torch.tensor(
                group_lengths, device=tokens.device
            ).unsqueeze(1)
            padded = [piece.new_zeros(*is_real.shape, *piece.shape[1:]) for piece in pieces]
            for rows, piece in zip(padded, pieces):
                rows[is_real] = piece
            mask = to_additive_mask(is_real[:, None, None], layers[0].dtype)
        key_values = (rows.permute(2, 0, 3, 1, 4).contiguous() for rows in padded)  # 2 g h s c
        yield SourceGroup(tuple(KeyValues(keys, values) for keys, values in key_values), mask)


def split_lengths(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Split sorted lengths into runs of similar ones.

    >>> list(split_lengths([8, 9, 10, 12, 30]))
    [[8, 9, 10], [12], [30]]
    """
    group: list[int] = []
    for length in lengths:
        if group and length > MAX_PADDING * group[0]:
            yield group
            group = []
        group.append(length)
    if group:
        yield group


def join_projections(project: Any, *names: str) -> tuple[Tensor, Tensor | None]:
    """Join the weights of projections, so that one product computes all of them."""
    linears = [getattr(project, name) for name in names or ("query", "key", "value")]
    bias = None if linears[0].bias is None else torch.cat([linear.bias for linear in linears])
    return torch.cat([linear.weight for linear in linears]), bias


def to_additive_mask(visible: Tensor, dtype: torch.dtype) -> Tensor:
    """Return 0 where visible and -inf elsewhere: what attention adds to scores."""
    return torch.zeros(visible.shape, dtype=dtype, device=visible.device).masked_fill(~visible, float("-inf"))
