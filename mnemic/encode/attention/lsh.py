"""LSH attention (Reformer): each position attends to those in its hash bucket.

Shapes: b batch, n queries, m context positions, d width, h heads, r rounds, k chunks, p positions
of a chunk, w positions of a window, c channels of one head.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.attention.angular_hash import HashBits, count_bits, count_columns, hash_directions
from mnemic.encode.masks import CausalMask, expand_to_four_axes
from mnemic.recipe import ConfigError, check_repeats

SELF_PENALTY = -1e5  # of a position's score with itself: it counts only if nothing else is visible
SEED_LIMIT = 2**62
FAR = 1 << 29  # a code that is next to no other


class ContextStates(NamedTuple):
    """The states of a context: LSH attention sorts all of them anew for each query."""

    states: Tensor  # b m d


class LSHAttention(nn.Module):
    """Attention within the buckets of a locality-sensitive hash (Kitaev et al. 2020, section 2).

    Queries and keys share one projection, and keys have length 1. ``rounds`` random rotations put
    each position into one of about 2 m / ``chunk`` buckets (``buckets``, a power of two, for
    another number); positions are sorted by bucket, then by place, and cut into chunks. A position
    attends to those of its bucket in its chunk and the chunks beside it, so the cost is m · chunk ·
    rounds, never m². A pair that several rounds find counts once. A position attends to itself only
    if it sees nothing else.

    ``across_buckets`` lets it attend to other buckets of these chunks, and ``count_repeats`` counts
    a pair in every round that finds it: both as in the authors' code and in `transformers`.

    Rotations are random in training, from a number of the global generator; in evaluation they are
    the same for all texts, and depend on ``seed`` and the layer alone.

    Where we differ:

    - A causal position sees the last ``chunk`` positions of its bucket, not what its chunk and the
      one before hold: where chunks begin depends on later positions. ``across_buckets`` has the
      paper's chunks, and that flaw.
    - The number of buckets depends on the real tokens of each text, not on padding. A text of at
      most one chunk has a single bucket, and so exact attention. A decoder that goes on token by
      token needs a fixed ``buckets``, or more of them would change earlier states.
    - Rounds are independent. In the authors' code the first chunk of a round sees the last chunk
      of the round before.
    """

    supports_context = supports_causal = True
    draws_buckets = True

    def __init__(
        self,
        width: int,
        *,
        heads: int = 4,
        dropout: float = 0.0,
        chunk: int = 64,
        rounds: int = 4,
        buckets: int = 0,
        across_buckets: bool = False,
        count_repeats: bool = False,
        seed: int = 0,
        layer: int = 0,
    ) -> None:
        super().__init__()
        if heads < 1 or width % heads:
            raise ConfigError(f"width {width} does not divide into {heads} heads")
        check_repeats(rounds=rounds)
        if min(chunk, rounds) < 1:
            raise ConfigError(f"lsh.chunk and lsh.rounds are at least 1, not {chunk} and {rounds}")
        if buckets < 0 or buckets & (buckets - 1):
            raise ConfigError(f"lsh.buckets is a power of two, or 0 for a number that fits the text, not {buckets}")
        self.heads, self.dropout = heads, dropout
        self.chunk, self.rounds, self.buckets = chunk, rounds, buckets
        self.across_buckets, self.count_repeats = across_buckets, count_repeats
        self.seed, self.layer = seed, layer
        self.query, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(3))

    def forward(self, x: Tensor, context: Tensor, mask: Tensor | CausalMask) -> Tensor:
        """Attend from ``x``, the end of ``context``, to the context.

        ``x`` b n d, ``context`` b m d, ``mask`` the same for all queries and heads → b n d.
        """
        return self.attend_with_buckets(x, context, mask)[0]

    def project_key_values(self, context: Tensor) -> ContextStates:
        """Return the states themselves: all of them decide which key meets which query."""
        return ContextStates(context)

    def attend(self, x: Tensor, key_values: ContextStates, mask: Tensor | CausalMask) -> Tensor:
        """Attend from ``x`` to states that were seen before; ``x`` is their end."""
        return self(x, key_values.states, mask)

    def attend_with_buckets(
        self, x: Tensor, context: Tensor, mask: Tensor | CausalMask, buckets: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Attend as ``forward`` does; return the states and the buckets, b h r m.

        With ``buckets`` of an earlier call nothing is hashed: a layer that is computed twice gives
        the same states.
        """
        is_causal, start = isinstance(mask, CausalMask), context.shape[1] - x.shape[1]
        # Drawn also if the buckets are there, so that dropout begins at the same random number.
        seed = int(torch.randint(SEED_LIMIT, ())) if self.training else self.seed
        is_real = mask.keys if isinstance(mask, CausalMask) else expand_to_four_axes(mask)[:, 0, 0]
        is_real = is_real.expand(context.shape[:2])  # b m
        shared = self.split_heads(self.query(context))  # b h m c
        query = shared if x is context else torch.cat([shared[:, :, :start], self.split_heads(self.query(x))], 2)
        if buckets is None:
            buckets = self.hash_positions(shared.detach(), is_real, seed)
        mixed = self.attend_sorted(query, normalize_keys(shared), self.split_heads(self.value(context)), buckets,
                                   is_real, is_causal)  # fmt: skip
        states = self.out(mixed[:, :, start:].transpose(1, 2).flatten(2))  # b n d
        return states * is_real[:, start:].unsqueeze(-1), buckets

    def split_heads(self, x: Tensor) -> Tensor:
        """Split the channels into heads."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # b m d -> b h m c

    # Buckets -----------------------------------------------------------------------------------

    @torch.no_grad()
    def hash_positions(self, shared: Tensor, is_real: Tensor, seed: int) -> Tensor:
        """Find each position's bucket per round, b h r m; padding has its own."""
        length = shared.shape[2]
        bits = count_bits(is_real.sum(1), length, self.chunk)
        if self.buckets:
            number = self.buckets.bit_length() - 1
            bits = HashBits(torch.full_like(bits.per_text, number), number, bits.undivided)
        with torch.autocast(shared.device.type, enabled=False):
            if bits.largest:
                vectors = shared.to(torch.promote_types(shared.dtype, torch.float32))
                buckets = hash_directions(vectors, self.draw_rotations(bits, vectors, seed), bits)
            else:  # one bucket: all rounds would be the same
                buckets = torch.zeros(*shared.shape[:2], 1, length, dtype=torch.long, device=shared.device)
        buckets = buckets.masked_fill(~is_real[:, None, None], 1 << bits.largest)
        return buckets.to(torch.int16 if bits.largest < 15 else torch.int32)

    def draw_rotations(self, bits: HashBits, vectors: Tensor, seed: int) -> tuple[Tensor, ...]:
        """Draw the rotations f r h c of each hash, by seed and layer.

        Column by column: more columns, for longer texts, leave the first ones as they are.
        """
        shape, rotations = (self.rounds, self.heads, vectors.shape[-1]), []
        for number, num_columns in enumerate(count_columns(bits)):
            generator = torch.Generator().manual_seed(seed + 1_000_003 * (2 * self.layer + number))
            columns = [torch.randn(shape, generator=generator) for _ in range(num_columns)]
            rotations.append(torch.stack(columns).to(vectors.device))
        return tuple(rotations)

    # Attention in sorted order -----------------------------------------------------------------

    def attend_sorted(
        self, query: Tensor, keys: Tensor, values: Tensor, buckets: Tensor, is_real: Tensor, is_causal: bool
    ) -> Tensor:
        """Attend within the windows of each round and combine the rounds, b h m c."""
        length = query.shape[2]
        chunk = max(min(self.chunk, length), 1)
        num_filler = -length % chunk if length else chunk
        query, keys, values = (nn.functional.pad(x, (0, 0, 0, num_filler)).unsqueeze(2) for x in (query, keys, values))
        buckets = nn.functional.pad(buckets, (0, num_filler), value=torch.iinfo(buckets.dtype).max)
        is_real = nn.functional.pad(is_real, (0, num_filler))

        order, ranks = sort_positions(buckets)  # b h r m
        query, keys, values = (
            PermuteRows.apply(x, order, ranks).unflatten(3, (-1, chunk)) for x in (query, keys, values)
        )  # b h r k p c
        bias = self.compute_bias(buckets, is_real, order, ranks, chunk, is_causal)  # b h r k p w
        scores = query @ make_windows(keys, is_causal).mT
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32)) + bias
        weights = scores.softmax(-1)
        # The log of the sum that the softmax divided by, without another exponential of all scores.
        largest = scores.detach().argmax(-1, keepdim=True)  # b h r k p 1
        totals = scores.gather(-1, largest) - weights.gather(-1, largest).log()
        weights = nn.functional.dropout(weights, self.dropout, self.training).to(values.dtype)
        mixed = weights @ make_windows(values, is_causal)  # b h r k p c

        mixed, totals = (PermuteRows.apply(x.flatten(3, 4), ranks, order) for x in (mixed, totals))  # b h r m c|1
        return (mixed * totals.softmax(2).to(mixed.dtype)).sum(2)[:, :, :length]

    @torch.no_grad()
    def compute_bias(
        self, buckets: Tensor, is_real: Tensor, order: Tensor, ranks: Tensor, chunk: int, is_causal: bool
    ) -> Tensor:
        """Compute the bias of scores, b h r k p w: -inf where hidden.

        Each position has a code in each round, and sees those whose codes are at a distance from
        ``low`` to ``high``. Codes of different buckets are further apart.
        """
        low, high = (1, chunk) if is_causal and not self.across_buckets else (0 if is_causal else -1, 1)
        codes = (ranks // chunk if self.across_buckets or not is_causal else ranks).int()
        if not self.across_buckets:
            codes = codes + buckets.int() * (high + 1)
        codes = codes.masked_fill(~is_real[:, None, None], FAR)

        def find_pairs(codes: Tensor) -> Tensor:
            sorted_codes = codes.gather(-1, order).unflatten(-1, (-1, chunk))  # b h r k p
            distance = sorted_codes.unsqueeze(-1) - make_windows(sorted_codes, is_causal, -FAR).unsqueeze(-2)
            return (distance >= low) & (distance <= high)  # b h r k p w

        is_visible = find_pairs(codes)
        if is_causal and self.across_buckets:
            positions = order.unflatten(-1, (-1, chunk))
            is_visible &= positions.unsqueeze(-1) > make_windows(positions, is_causal).unsqueeze(-2)
        bias = torch.zeros(is_visible.shape, device=order.device)
        if not self.count_repeats and order.shape[2] > 1:
            for round_codes in codes.split(1, 2):
                bias += find_pairs(round_codes.expand_as(codes))
            bias = bias.clamp_(min=1).log_().neg_()
        column = torch.arange(bias.shape[-1], device=order.device) - (chunk if bias.shape[-1] > chunk else 0)
        is_self = column == torch.arange(chunk, device=order.device).unsqueeze(1)  # p w
        return bias.masked_fill_(~is_visible, float("-inf")).masked_fill_(is_self, SELF_PENALTY)


def normalize_keys(shared: Tensor) -> Tensor:
    """Scale vectors to length 1; a vector of zeros stays finite."""
    mean_square = shared.to(torch.promote_types(shared.dtype, torch.float32)).square().mean(-1, keepdim=True)
    return shared * ((mean_square + 1e-6) * shared.shape[-1]).rsqrt().to(shared.dtype)


def sort_positions(buckets: Tensor) -> tuple[Tensor, Tensor]:
    """Sort positions by bucket, then by position: their order, and the rank of each."""
    order = buckets.sort(dim=-1, stable=True).indices
    position = torch.arange(order.shape[-1], device=order.device)
    return order, torch.empty_like(order).scatter_(-1, order, position.expand_as(order))


def make_windows(x: Tensor, is_causal: bool, fill: int = 0) -> Tensor:
    """Join each chunk with the one before and, unless causal, the one after.

    ``x`` b h r k p … → b h r k w …; beyond the ends there is ``fill``. A single chunk stays alone.
    """
    if x.shape[3] == 1:
        return x
    trailing = (0, 0) * (x.dim() - 4)
    padded = nn.functional.pad(x, (*trailing, 1, 0 if is_causal else 1), value=fill)
    return torch.cat([padded[:, :, :, start : start + x.shape[3]] for start in range(2 if is_causal else 3)], 4)


class PermuteRows(torch.autograd.Function):
    """Permute rows of ``x`` (b h r n c) by ``order`` (b h r n).

    ``inverse`` permutes them back, which is the gradient: unlike that of `torch.gather` it adds
    nothing up, and is the same in every run on a GPU.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(inverse)
        ctx.is_shared = x.shape[2] < order.shape[2]
        return select_rows(x, order)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (inverse,) = ctx.saved_tensors
        gradient = select_rows(gradient, inverse)
        return gradient.sum(2, keepdim=True) if ctx.is_shared else gradient, None, None


def select_rows(x: Tensor, order: Tensor) -> Tensor:
    """Select rows of ``x`` b h r|1 n c by ``order`` b h r n."""
    starts = torch.arange(0, x[..., 0].numel(), x.shape[3], device=x.device).view(*x.shape[:3], 1)
    return x.reshape(-1, x.shape[-1]).index_select(0, (order + starts).flatten()).view(*order.shape, x.shape[-1])
