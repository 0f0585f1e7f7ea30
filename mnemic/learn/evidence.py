"""Does a network read what proves the answer, and does the answer hang on what it read?

Both questions need the weights of writing and reading alone, so they can be put to any memory.

Shapes: b batch, n sentences, m questions of a story (1), s slots, k hops, h heads.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from mnemic.data.stories.tensors import Stories
from mnemic.learn.evaluate import AT_ONCE, by_task
from mnemic.network import Inputs, Output

LEAST = -1e30  # below everything that can be read or rolled


class Faithfulness(NamedTuple):
    """How often the answer changes when a sentence is taken out, in percent, task by task."""

    most_read: dict[int, float]
    other: dict[int, float]  # one of the other sentences, as the dice fall


class Look(NamedTuple):
    """A batch of questions and what a network made of them."""

    rows: Tensor  # b, which questions of the set
    inputs: Inputs
    output: Output


def supporting(network: nn.Module, stories: Stories) -> dict[int, float]:
    """How often the most-read sentence is one of those that prove the answer, in percent a task.

    A question counts even if nothing that proves its answer is still in memory.
    """
    hits = []
    for rows, inputs, output in looks(network, stories):
        chosen = most_read(output, inputs.story)  # b 1
        hits.append(stories.facts[rows].gather(1, chosen).squeeze(1))
    return by_task(torch.cat(hits), stories.task)


@torch.no_grad()
def faithfulness(network: nn.Module, stories: Stories, dice: torch.Generator) -> Faithfulness:
    """How often the answer changes without the most-read sentence, and without a random other one.

    A sentence is taken out as if it had never been said. A question with a single sentence in
    memory has no other one and is left out. ``dice`` are on the CPU, whatever the stories are on.
    """
    asked: list[Tensor] = []
    most: list[Tensor] = []
    other: list[Tensor] = []
    for _, inputs, output in looks(network, stories):
        chosen = most_read(output, inputs.story).squeeze(1)  # b
        rest = held(output, inputs.story).scatter(1, chosen.unsqueeze(1), False)  # b n
        rolled = torch.rand(rest.shape, generator=dice).to(rest.device)
        random = rolled.masked_fill(~rest, LEAST).argmax(1)  # b
        asked.append(rest.any(1))
        for found, sentence in ((most, chosen), (other, random)):
            found.append(answers(output) != answers(network(without(inputs, sentence))))
    kept = torch.cat(asked)
    return Faithfulness(*(by_task(torch.cat(p)[kept], stories.task[kept]) for p in (most, other)))


def read_shares(output: Output) -> Tensor:
    """How much was read of each sentence, at the hop that read most of it: b m n.

    Where a hop looked, its heads taken together, times what was written there.
    """
    read = output.reading.weights.mean(2)  # b k m s
    return (read @ output.written.weights.unsqueeze(1).mT).amax(1)


def most_read(output: Output, story: Tensor) -> Tensor:
    """The sentence that was read most (b m), of those of ``story`` (b n) that are in memory."""
    return read_shares(output).masked_fill(~held(output, story).unsqueeze(1), LEAST).argmax(2)


def held(output: Output, story: Tensor) -> Tensor:
    """Which sentences of the story something is left of in memory (b n)."""
    return (story >= 0) & (output.written.weights != 0).any(2)


def without(inputs: Inputs, sentence: Tensor) -> Inputs:
    """The same stories, each without one of its sentences (b)."""
    return inputs._replace(story=inputs.story.scatter(1, sentence.unsqueeze(1), -1))


def answers(output: Output) -> Tensor:
    """The answers' word ids (b)."""
    return output.scores.squeeze(1).argmax(1)


@torch.no_grad()
def looks(network: nn.Module, stories: Stories) -> Iterator[Look]:
    """All questions of a set, batch by batch; the network's mode is put back at the end."""
    was = network.training
    network.eval()
    for rows in torch.arange(len(stories), device=stories.device).split(AT_ONCE):
        inputs = stories.batch(rows, compact=stories.device.type != "cuda").inputs
        yield Look(rows, inputs, network(inputs))
    network.train(was)
