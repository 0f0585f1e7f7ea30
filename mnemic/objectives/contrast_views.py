"""Contrastive loss of two views of each text, in bounded memory.

Shapes: w windows, n pairs of views, m hard negatives, k keys of the batch, d width.
"""

from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils._pytree import tree_map
from torch.utils.checkpoint import checkpoint

from mnemic.models import WindowBatch
from mnemic.objectives.contract import CarriedState, Loss
from mnemic.objectives.contrast import info_nce, is_too_similar, join_ids, nt_xent, stack_candidates
from mnemic.recipe import ConfigError


class ContrastLoss:
    """Contrast both views of each text with the views of all others.

    ``loss``: "nt-xent" (Chen et al. 2020, SimCLR), where both views look for each other among all
    views, or "info-nce" (Gao et al. 2021, SimCSE; Karpukhin et al. 2020), where the first looks for
    the second among second views. Hard negatives are more candidates in both. Equal texts are no
    negatives of each other, nor are views with a cosine above ``max_cosine``, if it is below 1.
    Processes that train together contrast all their pairs; each has its own hard negatives.
    """

    contrasts_batch = True

    def __init__(
        self,
        *,
        loss: Literal["nt-xent", "info-nce"] = "nt-xent",
        temperature: float = 0.05,
        max_cosine: float = 1.0,
        shards: int = 1,
    ) -> None:
        check_similarity("contrast", temperature, max_cosine)
        self.compute_loss = {"nt-xent": nt_xent, "info-nce": one_way_loss}[loss]
        self.temperature, self.max_cosine, self.num_shards = temperature, max_cosine, shards

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        vectors = compute_vectors(network, batch.inputs, self.num_shards)
        count, num_negatives = len(batch.text_ids), len(batch.negative_ids)
        with torch.autocast(vectors.device.type, enabled=False):
            first, second, negatives = vectors.split([count, count, num_negatives])
            return self.compute_loss(
                gather_rows_of_processes(first),
                gather_rows_of_processes(second),
                temperature=self.temperature,
                text_ids=gather_rows_of_processes(batch.text_ids),
                negatives=negatives,
                negative_ids=batch.negative_ids,
                max_cosine=self.max_cosine,
            )._replace(carried=carried)


def one_way_loss(
    first: Tensor,
    second: Tensor,
    *,
    temperature: float,
    text_ids: Tensor,
    negatives: Tensor,
    negative_ids: Tensor,
    max_cosine: float = 1.0,
) -> Loss:
    """Contrast the second view of each text with all second views and the hard negatives."""
    queries, (_, keys) = stack_candidates(first, None)[0], stack_candidates(second, negatives)
    cosines = queries @ keys.mT
    return info_nce(
        cosines,
        torch.arange(len(first), device=first.device),
        temperature=temperature,
        key_ids=join_ids(text_ids, negative_ids),
        hidden=is_too_similar(cosines, max_cosine),
    )


def check_similarity(kind: str, temperature: float, max_cosine: float) -> None:
    """Raise a ConfigError unless temperature and cosine are in their range."""
    if not temperature > 0 or not 0 < max_cosine <= 1:
        values = f"temperature = {temperature}, max_cosine = {max_cosine}"
        raise ConfigError(f"{kind} takes a temperature above 0 and a max_cosine above 0 up to 1, not {values}")


def compute_vectors(network: Any, inputs: WindowBatch, num_shards: int = 1) -> Tensor:
    """Compute the vector of each window, w d, in the memory of one shard.

    A shard's activations are dropped, and computed again when its gradient is: the loss of the
    whole batch needs only the vectors (Gao et al. 2021, arXiv:2101.06983, gradient caching). The
    random state is that of the first time, so that dropout is the same.
    """

    def compute_shard(windows: WindowBatch) -> Tensor:
        return network(windows).logits

    if num_shards == 1:
        return compute_shard(inputs)
    shards = [slice_windows(inputs, rows) for rows in torch.arange(len(inputs.tokens)).chunk(num_shards)]
    return torch.cat([checkpoint(compute_shard, shard, use_reentrant=False) for shard in shards])


def gather_rows_of_processes(rows: Tensor) -> Tensor:
    """Concatenate the rows of all processes; gradients go back to where the rows come from."""
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return rows
    if rows.requires_grad:
        from torch.distributed.nn.functional import all_gather  # imports remote modules, which one process never needs

        return torch.cat(all_gather(rows.contiguous()))
    gathered = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, rows.contiguous())
    return torch.cat(gathered)


def slice_windows(inputs: WindowBatch, rows: Tensor) -> WindowBatch:
    """Select consecutive windows; on a CPU cut their padding, too."""
    start, end = int(rows[0]), int(rows[-1]) + 1
    width = inputs.tokens.shape[1]
    if inputs.tokens.device.type == "cpu":
        width = max(int(inputs.mask[start:end].sum(1).max()), 1)
    return tree_map(lambda leaf: leaf[start:end, :width] if isinstance(leaf, Tensor) else leaf, inputs)
