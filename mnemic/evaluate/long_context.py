"""How often a network that carries a memory is wrong about long documents.

An answer is right if all its words are, said one after another: then each was right after the right
ones before it, so that scoring them all at once tells. A sentence is found if the slot that is read
most holds it.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.data.long_context.batches import WORDS, Batch, LongSet
from mnemic.evaluate.error_rate import by_task
from mnemic.models.inputs import IGNORE, Recalled, Segments
from mnemic.models.segment_model import Carrier
from mnemic.objectives.bert_mass import BertMassLoss, fact_units, gold_slots, next_words

TOKENS = 65_536  # of a batch: memory, not results, depends on it


def recall_errors(network: nn.Module, documents: LongSet) -> dict[int, float]:
    """The error of each task in percent; of documents, of their masked or next words (task 0)."""
    rows = range(len(documents))
    at_once = max(TOKENS // (documents.length * (documents.segments + 1)), 1)
    if documents.asks in WORDS:
        return {0: word_error(network, documents, at_once)}
    judge = wrong if documents.asks == "question" else missed
    found = [
        judge(network, documents, rows[first : first + at_once])
        for first in range(0, len(rows), at_once)
    ]
    return by_task(torch.cat(found), documents.task)


def wrong(network: nn.Module, documents: LongSet, rows: Sequence[int], at_once: int = 64) -> Tensor:
    """True where an answer is not right, for documents of any length, read piece by piece."""
    return wrong_of_each([network], documents, rows, at_once)[0]


@torch.no_grad()
def wrong_of_each(
    networks: Sequence[nn.Module], documents: LongSet, rows: Sequence[int], at_once: int = 64
) -> list[Tensor]:
    """``wrong`` of several networks that read the same documents, which are made only once."""
    readers, was = [carrier_of(own) for own in networks], [own.training for own in networks]
    states: list[Any] = [None] * len(readers)
    for reader in readers:
        reader.eval()
    for batch in documents.stream(rows, at_once):
        for number, reader in enumerate(readers):
            encoded = reader.encoded(batch.inputs)
            if states[number] is None:
                states[number] = reader.empty(len(rows), encoded.units[:, 0])
            states[number], _, _ = reader.carry(states[number], encoded)
    said = [reader.answer(own, batch.inputs) for reader, own in zip(readers, states)]
    for own, training in zip(networks, was):
        own.train(training)
    return [~right(own, batch.answers).cpu() for own in said]


@torch.no_grad()
def missed(network: nn.Module, documents: LongSet, rows: Sequence[int]) -> Tensor:
    """True where the slot that a question read most is not of the sentence that answers it."""
    was = network.training
    network.eval()
    batch = documents.batch(torch.tensor(rows))
    output = network(batch.inputs, lessons="written")
    facts = fact_units(output.lessons, batch.facts, batch.inputs)
    seen = torch.cat([lesson.seen for lesson in output.lessons], 1)
    gold = gold_slots(output, facts, seen, batch.chain).sum(-1)  # b a
    best = output.reading.weights.mean((1, 2, 3)).argmax(-1, keepdim=True)  # b 1
    network.train(was)
    return (gold.gather(1, best) < 0.5).squeeze(1).cpu()


def right(said: Recalled, answers: Tensor) -> Tensor:
    """Whether all words of each answer are the likeliest, b."""
    best = torch.cat([said.scores, said.rest], 1).argmax(-1)  # b w
    return ((best == answers) | (answers == IGNORE)).all(1)


@torch.no_grad()
def word_error(network: nn.Module, documents: LongSet, at_once: int) -> float:
    """Percent of the asked words of documents that are not the likeliest."""
    was = network.training
    network.eval()
    missed = asked = 0
    for batch in in_batches(documents, at_once):
        inputs, words = asked_words(batch, documents)
        said = network(inputs).words.argmax(-1)
        missed, asked = missed + int((said != words).sum()), asked + len(words)
    network.train(was)
    return 100 * missed / max(asked, 1)


def asked_words(batch: Batch, documents: LongSet) -> tuple[Segments, Tensor]:
    """What a network reads where words of documents are asked for, and these words."""
    return next_words(batch) if documents.asks == "next" else BertMassLoss(mlm=1.0).hidden(batch)


def in_batches(documents: LongSet, at_once: int) -> Iterator[Batch]:
    for rows in torch.arange(len(documents)).split(at_once):
        yield documents.batch(rows)


def carrier_of(network: nn.Module) -> Carrier:
    bare = network.module if isinstance(network, nn.parallel.DistributedDataParallel) else network
    assert isinstance(bare, Carrier)
    return bare
