"""The decoder of UniT: queries of a task read a picture, a text or both.

Shapes: b examples, n regions, m words, s states that are read, q queries, d width, c classes.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import ceil
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.attention import FullAttention
from mnemic.encode.stacks import STACKS
from mnemic.encode.stacks.block import AddNorm, DecoderBlock, FeedForward
from mnemic.recipe import ConfigError, build, check_repeats
from mnemic.respond.contract import Response
from mnemic.respond.pictures.detections import Detections

TASKS = ("detection", "questions", "captions", "reading")  # their numbers
DETECTION = TASKS.index("detection")
DEFAULT_PICTURE_STACK: Mapping[str, Any] = {"kind": "encoder", "norm": "pre", "depth": 2}
FIRST_SIZE = 0.25  # of a box before training, a share of the picture


class TaskLogits(NamedTuple):
    """The answer to one task: classes, or boxes by each layer of the decoder."""

    class_logits: Tensor | None = None  # b c
    layers: tuple[Detections, ...] = ()


class TaskDecoder(Response):
    """Answer every task with one decoder and a small head per task.

    UniT (Hu and Singh 2021, arXiv:2102.10772, section 3). The regions of a picture pass through the
    layers of ``picture_stack``, before which a vector of the task is put; the decoder's queries,
    learned for each task, see each other and read regions, words or both. Detection has ``queries``
    of them and heads of class, box and attribute on each; the other tasks have ``answer_queries``,
    and two layers with GELU on the first. ``shared`` = false gives each task a decoder of its own.

    Where we differ: queries are the first states of the decoder, not added in each of its layers;
    layers are pre-norm.
    """

    source = "picture"
    reads_words = has_tasks = True
    methods = ("detect",)

    def __init__(
        self,
        width: int,
        task_classes: Sequence[int],
        attributes: int,
        *,
        picture_stack: Mapping[str, Any] = DEFAULT_PICTURE_STACK,
        depth: int = 2,
        heads: int = 4,
        queries: int = 16,
        answer_queries: int = 4,
        shared: bool = True,
    ) -> None:
        super().__init__()
        if min(queries, answer_queries) < 1:
            raise ConfigError(f"each task has at least one query, not {queries} and {answer_queries}")
        self.look: Any = build(STACKS, picture_stack, width=width)  # of this name in saved tensors
        self.task_vectors = nn.Parameter(torch.randn(len(TASKS), width) * width**-0.5)
        counts = [queries if task == DETECTION else answer_queries for task in range(len(TASKS))]
        self.queries = nn.ParameterList(torch.randn(count, width) * width**-0.5 for count in counts)
        num_decoders = 1 if shared else len(TASKS)
        self.decoders = nn.ModuleList(QueryDecoder(width, depth=depth, heads=heads) for _ in range(num_decoders))
        self.detect = DetectionHeads(width, task_classes[DETECTION], attributes, queries=queries)
        answered = [task_classes[task] for task in range(len(TASKS)) if task != DETECTION]
        self.answer = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, classes)) for classes in answered
        )

    def forward(self, task: int, regions: Tensor | None, words: Tensor | None, mask: Tensor | None) -> TaskLogits:
        """Answer a task about regions (b n d), words (b m d) or both."""
        states, visible = self.join_states(task, regions, words, mask)  # b s d, b s
        decoder: Any = self.decoders[task % len(self.decoders)]
        queries = self.queries[task].expand(len(states), -1, -1)
        layers = decoder.iterate_layers(queries, states, visible)
        if task == DETECTION:
            return TaskLogits(layers=tuple(self.detect(layer) for layer in layers))
        *_, last = layers
        return TaskLogits(self.answer[task - 1](last[:, 0]).float())

    def join_states(
        self, task: int, regions: Tensor | None, words: Tensor | None, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Concatenate what a task reads, b s d, with its mask b s."""
        states, masks = [], []
        if regions is not None:
            x = torch.cat([self.task_vectors[task].expand(len(regions), 1, -1), regions], 1)  # b 1+n d
            seen = torch.ones_like(x[..., 0], dtype=torch.bool)
            states.append(self.look(x, seen)[:, 1:])
            masks.append(seen[:, 1:])
        if words is not None and mask is not None:
            states.append(words)
            masks.append(mask)
        return torch.cat(states, 1), torch.cat(masks, 1)


class QueryDecoder(nn.Module):
    """Decoder layers whose queries see each other, and a source."""

    def __init__(self, width: int, *, depth: int, heads: int) -> None:
        super().__init__()
        check_repeats(depth=depth)
        make_add_norm = partial(AddNorm, width, norm="pre", epsilon=1e-5, dropout=0.0)
        self.blocks: Any = nn.ModuleList(
            DecoderBlock(
                FullAttention(width, heads=heads),
                FullAttention(width, heads=heads),
                FeedForward(width, 4 * width, "relu"),
                make_add_norm,
            )
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(width)

    def iterate_layers(self, queries: Tensor, source: Tensor, mask: Tensor) -> Iterator[Tensor]:
        """Yield the states of ``queries`` (b q d) after each layer; ``source`` b s d."""
        visible = torch.ones(1, 1, 1, queries.shape[1], dtype=torch.bool, device=queries.device)
        x = queries
        for block in self.blocks:
            nothing = block.attention.project_key_values(x[:, :0])
            keys = block.cross.project_key_values(source)
            x, _ = block(x, visible, nothing, keys, mask[:, None, None])
            yield self.norm(x)


class DetectionHeads(nn.Module):
    """Predict a class, a box and an attribute from the state of a query.

    Where we differ: each query has a learned point, from which its box is moved, as in Deformable
    DETR (Zhu et al. 2021, arXiv:2010.04159): matchings settle in a tenth of the steps or less.
    """

    def __init__(self, width: int, classes: int, attributes: int, *, queries: int) -> None:
        super().__init__()
        self.classes = nn.Linear(width, classes + 1)
        offsets = nn.Linear(width, 4)
        self.box = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), offsets)
        nn.init.zeros_(offsets.weight)
        with torch.no_grad():
            offsets.bias.copy_(torch.tensor([0.5, 0.5, FIRST_SIZE, FIRST_SIZE]).logit())
        self.points = nn.Parameter(spread_points(queries).logit())  # q 2
        self.class_vectors = nn.Embedding(classes, width)
        self.attribute = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, attributes))

    def forward(self, states: Tensor) -> Detections:
        """Predict classes and boxes: b q d."""
        boxes = self.box(states).float() + nn.functional.pad(self.points, (0, 2))
        return Detections(self.classes(states).float(), boxes.sigmoid(), states)

    def score_attributes(self, states: Tensor, classes: Tensor) -> Tensor:
        """Score the attributes of objects, given their class: k d, k → k a."""
        scores: Tensor = self.attribute(torch.cat([states, self.class_vectors(classes)], -1))
        return scores.float()


def spread_points(count: int) -> Tensor:
    """Spread points evenly in a picture, row by row: k 2, from 0 to 1."""
    side = ceil(count**0.5)
    numbers = torch.arange(count)
    return torch.stack([(numbers % side + 0.5) / side, (numbers // side + 0.5) / side], 1)
