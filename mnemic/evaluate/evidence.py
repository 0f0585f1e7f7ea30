"""Does a network read what proves the answer, and does the answer hang on what it read?

Both questions need the weights of writing and reading alone, so they can be put to any memory.

Shapes: b batch, n sentences, m questions of a story (1), s slots, k hops, h heads.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.data.babi.batches import Stories
from mnemic.evaluate.error_rate import AT_ONCE, by_task
from mnemic.models import Inputs, Output
from mnemic.models.ensemble import Many

LEAST = -1e30  # below everything that can be read or rolled


class Faithfulness(NamedTuple):
    """How often the answer changes when a sentence is taken out, in percent, task by task."""

    most_read: dict[int, float]
    other: dict[int, float]  # one of the other sentences, as the dice fall


class Trial(NamedTuple):
    """What became of each question (b): with all sentences, and with one of them taken out."""

    proves: Tensor  # the most-read sentence proves the answer
    most_read: Tensor  # the answer changes without it
    other: Tensor  # the answer changes without another one
    asked: Tensor  # there was another one


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


def faithfulness(network: nn.Module, stories: Stories, dice: torch.Generator) -> Faithfulness:
    """How often the answer changes without the most-read sentence, and without a random other one.

    A sentence is taken out as if it had never been said. A question with a single sentence in
    memory has no other one and is left out. ``dice`` are on the CPU, whatever the stories are on.
    """
    tried = trials(network, stories, dice)
    task = stories.task[tried.asked]
    changed = (by_task(own[tried.asked], task) for own in (tried.most_read, tried.other))
    return Faithfulness(*changed)


@torch.no_grad()
def trials(network: nn.Module, stories: Stories, dice: torch.Generator) -> Trial:
    """Every question of a set, tried; of many runs (`Many`) each for itself: runs q."""
    was, found = network.training, []
    network.eval()
    for rows in torch.arange(len(stories), device=stories.device).split(AT_ONCE):
        each = rows.expand(network.runs, -1) if isinstance(network, Many) else rows
        inputs = stories.batch(each, compact=stories.device.type != "cuda").inputs
        rolled = torch.rand(inputs.story.shape[-2:], generator=dice).to(stories.device)
        given = (inputs, stories.facts[each], rolled.expand(inputs.story.shape))
        if isinstance(network, Many):
            found.append(network.each(tried, *given))
        else:
            found.append(tried(network, *given))
    network.train(was)
    return Trial(*(torch.cat(parts, -1) for parts in zip(*found)))


def tried(network: Any, inputs: Inputs, facts: Tensor, rolled: Tensor) -> Trial:
    """A batch with all its sentences, without the most-read one, and without a random other one.

    ``facts`` (b n) are the sentences that prove the answer, ``rolled`` (b n) the dice.
    """
    output = network(inputs)
    chosen = most_read(output, inputs.story)  # b 1
    rest = held(output, inputs.story).scatter(1, chosen, False)  # b n
    random = rolled.masked_fill(~rest, LEAST).argmax(1)  # b
    most, other = (
        answers(output) != answers(network(without(inputs, sentence)))
        for sentence in (chosen.squeeze(1), random)
    )
    return Trial(facts.gather(1, chosen).squeeze(1), most, other, rest.any(1))


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
    return (story >= 0) & (output.written.entered != 0).any(2)


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
