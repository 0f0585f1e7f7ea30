"""Momentum contrast: a queue of keys from a slowly moving copy of the network.

Shapes: w windows, n pairs of views, m hard negatives, q keys of the queue, d width.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from mnemic.models import WindowBatch
from mnemic.models.contract import unwrap_network
from mnemic.objectives.contract import CarriedState, Loss
from mnemic.objectives.contrast import info_nce, is_too_similar
from mnemic.objectives.contrast_views import check_similarity, compute_vectors, gather_rows_of_processes, slice_windows
from mnemic.recipe import ConfigError

EMPTY = -1  # the text number of a slot of the queue that has no key yet
MOMENTUM_PREFIX = "momentum."  # of the carried weights


class MoCoLoss:
    """Contrast each pair of views with keys of earlier batches (He et al. 2020).

    Keys, the vectors of second views, come from a network whose weights are a moving average:
    ``momentum`` times the old ones plus the rest of the trained ones. It is a copy at the start,
    and has no gradient. The last ``queue`` keys are the negatives; those of a batch enter after its
    loss, in place of the oldest. Slots that are empty or hold an equal text are left out, so the
    first batch has no negatives but hard ones, and no loss without these. Queue and weights are
    carried from batch to batch; a finished network knows nothing of them. Processes that train
    together fill one queue.
    """

    contrasts_batch = True

    def __init__(
        self,
        *,
        momentum: float = 0.995,
        queue: int = 4096,
        temperature: float = 0.05,
        max_cosine: float = 1.0,
        shards: int = 1,
        batch: int = 1,
    ) -> None:
        check_similarity("moco", temperature, max_cosine)
        if not 0 <= momentum < 1:
            raise ConfigError(f"objective.momentum is a number from 0 to below 1, not {momentum}")
        if queue < batch or queue % batch:
            raise ConfigError(
                f"objective.queue = {queue} does not hold whole batches of {batch} (train.batch): make it a multiple, "
                f"say {max(queue // batch, 1) * batch}"
            )
        self.momentum, self.queue, self.temperature = momentum, queue, temperature
        self.max_cosine, self.num_shards = max_cosine, shards

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        weights = update_momentum_weights(network, carried, self.momentum)
        count = len(batch.text_ids)
        rows = torch.arange(len(batch.inputs.tokens))
        queries = compute_vectors(network, slice_windows(batch.inputs, rows[:count]), self.num_shards)
        keys = compute_keys(network, weights, slice_windows(batch.inputs, rows[count:]), self.num_shards)
        with torch.autocast(queries.device.type, enabled=False):
            queries = normalize_vectors(queries)
            keys, negatives = normalize_vectors(keys).split([count, len(batch.negative_ids)])
            queue = start_queue(self.queue, keys) if carried is None else carried
            loss = self.contrast(queries, keys, torch.cat([queue["queue"], negatives]),
                                 batch.text_ids, torch.cat([queue["queue_ids"], batch.negative_ids]))  # fmt: skip
        queue = enqueue(queue, gather_rows_of_processes(keys), gather_rows_of_processes(batch.text_ids))
        return loss._replace(carried=queue | {f"{MOMENTUM_PREFIX}{name}": weight for name, weight in weights.items()})

    def contrast(
        self, queries: Tensor, keys: Tensor, negatives: Tensor, text_ids: Tensor, negative_ids: Tensor
    ) -> Loss:
        """Compute the loss of each query's key (n d) against negatives (q + m d)."""
        cosines = torch.cat([(queries * keys).sum(1, keepdim=True), queries @ negatives.mT], 1)
        hidden = (negative_ids == EMPTY) | (negative_ids == text_ids.unsqueeze(1))
        hidden = torch.cat([torch.zeros_like(hidden[:, :1]), hidden], 1) | is_too_similar(cosines, self.max_cosine)
        return info_nce(cosines, torch.zeros_like(text_ids), temperature=self.temperature, hidden=hidden)


@torch.no_grad()
def update_momentum_weights(network: nn.Module, carried: CarriedState | None, momentum: float) -> CarriedState:
    """Move the momentum weights towards those of the network; copy them at the start."""
    weights = dict(plain_network(network).named_parameters())
    if carried is None:
        return {name: weight.detach().clone() for name, weight in weights.items()}
    return {
        name: momentum * carried[f"{MOMENTUM_PREFIX}{name}"] + (1 - momentum) * weight
        for name, weight in weights.items()
    }


@torch.no_grad()
def compute_keys(network: nn.Module, weights: CarriedState, inputs: WindowBatch, num_shards: int) -> Tensor:
    """Compute the vectors of windows with other weights, shard by shard: w d."""
    shards = torch.arange(len(inputs.tokens)).chunk(num_shards)
    plain = plain_network(network)
    vectors = [functional_call(plain, weights, (slice_windows(inputs, rows),)).logits for rows in shards]
    return torch.cat(vectors)


def plain_network(network: nn.Module) -> nn.Module:
    """Return the network without the wrappers of compilation and of distributed training."""
    plain: nn.Module = unwrap_network(getattr(network, "_orig_mod", network))
    return plain


def normalize_vectors(vectors: Tensor) -> Tensor:
    """Scale vectors to length 1, in float32 at least."""
    return nn.functional.normalize(vectors.to(torch.promote_types(vectors.dtype, torch.float32)), dim=1)


def start_queue(size: int, keys: Tensor) -> CarriedState:
    """Make an empty queue of keys like these (n d)."""
    return {
        "queue": keys.new_zeros(size, keys.shape[1]),
        "queue_ids": torch.full((size,), EMPTY, device=keys.device),
        "queue_next": torch.zeros((), dtype=torch.long, device=keys.device),
    }


def enqueue(queue: CarriedState, keys: Tensor, text_ids: Tensor) -> CarriedState:
    """Replace the oldest keys of a queue by new ones; return the new queue."""
    slots = (queue["queue_next"] + torch.arange(len(keys), device=keys.device)) % len(queue["queue"])
    return {
        "queue": queue["queue"].index_copy(0, slots, keys),
        "queue_ids": queue["queue_ids"].index_copy(0, slots, text_ids),
        "queue_next": (queue["queue_next"] + len(keys)) % len(queue["queue"]),
    }
