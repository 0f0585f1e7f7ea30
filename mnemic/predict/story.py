"""Ask a trained network about a story; the answer carries its evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from mnemic.checkpoint.folder import Checkpoint
from mnemic.data.babi.batches import tensors
from mnemic.data.babi.dataset import StoryFolder
from mnemic.data.babi.format import Example, StoryError
from mnemic.models import Output
from mnemic.respond import FROM_MEMORY
from mnemic.text import Words

OTHERS = 3  # how many answers are shown in all
LISTED = 8  # unknown words, or sentences, that are named


@dataclass(frozen=True)
class Evidence:
    """A sentence that was read, and how much at each hop."""

    sentence: int  # which one of the story, from 0
    text: str
    weights: tuple[float, ...]  # one a hop

    @property
    def most(self) -> float:
        return max(self.weights)


@dataclass(frozen=True)
class Slots:
    """What the slots of a rewriting memory did: when each one opened, and which were read."""

    names: tuple[str, ...]  # the words that are keys, or numbers from 1 on
    gates: tuple[tuple[float, ...], ...]  # a row a sentence in memory, a number a slot
    read: tuple[float, ...]  # how much was read of each slot

    @property
    def most(self) -> int:
        """The slot that was read most."""
        return max(range(len(self.read)), key=lambda slot: self.read[slot])


@dataclass(frozen=True)
class Answer:
    """A word with its probability, the next best ones, and everything it was read from."""

    text: str
    probability: float
    ranked: tuple[tuple[str, float], ...]  # the best answers with their probabilities
    evidence: tuple[Evidence, ...]  # every sentence in memory, in the order it was told
    kept: int  # sentences in memory
    told: int  # sentences of the story
    notes: tuple[str, ...]  # what the asker should know: unknown words, sentences left out
    memory: str = "memn2n"  # its kind
    taken: tuple[float, ...] = ()  # how much of what it found each hop took, where a gate says
    slots: Slots | None = None  # of a memory that rewrites
    item: str = "sentence"  # what the evidence is a list of

    @property
    def left_out(self) -> str:
        """Which of what was told is not in memory, in words; nothing where all is."""
        return left_out([one.sentence for one in self.evidence], self.told)

    def best_evidence(self, count: int = 5) -> tuple[Evidence, ...]:
        """The sentences that were read most, most read first."""
        return tuple(sorted(self.evidence, key=lambda one: -one.most)[:count])


@torch.no_grad()
def ask_story(checkpoint: Checkpoint, sentences: Sequence[str], question: str) -> Answer:
    """Answer a question about ``sentences`` with one word."""
    if not sentences:
        raise StoryError("the story has no sentences; tell at least one before asking")
    if not question.strip():
        raise StoryError("the question is empty; ask for example 'Where is the milk?'")
    words = checkpoint.tokenizer
    model = checkpoint.recipe["model"]
    if model["respond"]["kind"] in FROM_MEMORY:
        raise StoryError("this network reads long texts: use its remember, and ask what it returns")
    if "memory" not in model or "carry" in model:
        raise StoryError(
            "this network reads texts: use `mnemic read`, or its classify, tag, answer or embed"
        )
    assert isinstance(words, Words)
    example = Example(tuple(sentences), question, "", (), 0)
    unseen = checkpoint.sizes.get("unseen", 0)
    batch = tensors([example], words, unseen=unseen).batch(torch.tensor([0]))
    output = checkpoint.network.eval()(batch.inputs)
    ranked = best_words(output, words)
    evidence = tuple(
        Evidence(number, sentences[number], tuple(weights))
        for number, weights in read_of(output).items()
    )
    kept = [one.sentence for one in evidence]
    longest = checkpoint.sizes["longest"] - 1
    said = notes(words, sentences, question, kept, longest=longest, unseen=unseen)
    said += length_note(len(kept), checkpoint.recipe["data"])
    return Answer(
        *ranked[0],
        ranked,
        evidence,
        len(kept),
        len(sentences),
        said,
        memory=checkpoint.recipe["model"]["memory"]["kind"],
        taken=taken_of(output),
        slots=slots_of(output, key_words(checkpoint)),
    )


def best_words(output: Output, words: Words) -> tuple[tuple[str, float], ...]:
    """The best answers with their probabilities; padding and "unknown" are no words to say."""
    chances = output.scores[0, 0].softmax(-1)
    chances[[words.pad, words.unknown]] = 0.0
    best = chances.topk(min(OTHERS, len(words) - 2))
    return tuple(
        (words.decode([i]), p) for p, i in zip(best.values.tolist(), best.indices.tolist())
    )


def length_note(kept: int, data: Mapping[str, Any]) -> tuple[str, ...]:
    """That more sentences are in memory than training ever told, where there are."""
    most = data.get("sentences", StoryFolder.sentences)
    if kept <= most:
        return ()
    return (f"{kept} sentences are in memory, and training told at most {most}; do not trust it",)


def read_of(output: Output) -> dict[int, list[float]]:
    """How much each hop read of each sentence that entered the memory and was not pushed out.

    Where a hop looked, times how much of the sentence is there: from slots back to sentences.
    """
    read = output.reading.weights[0, : used(output), :, 0].mean(1)  # k s
    shares = output.written.weights[0] @ read.mT  # n k
    return {number: shares[number].tolist() for number in entered(output)}


def used(output: Output) -> int:
    """How many hops there were: where a reading can stop, the one that stopped it is the last."""
    read = output.reading.weights[0, :, :, 0].sum((1, 2)) > 0  # k
    last = int(read.sum()) + 1  # what has stopped does not go on
    return len(read) if output.reading.nothing is None else min(last, len(read))


def entered(output: Output) -> list[int]:
    """The sentences that were written and not pushed out, even if others wrote over them."""
    return output.written.entered[0].any(1).nonzero().flatten().tolist()


def taken_of(output: Output) -> tuple[float, ...]:
    """How much of what it found each hop took; nothing where no gate decides that."""
    gates = output.reading.gates
    return () if gates is None else tuple(gates[0, :, 0].tolist())


def slots_of(output: Output, names: Sequence[str]) -> Slots | None:
    """When the slots opened, and how much was read of each; None for a memory that appends."""
    gates = output.written.gates
    if gates is None:
        return None
    read = output.reading.weights[0, :, :, 0].mean((0, 1))  # s
    told = gates[0, entered(output)]  # n s
    spelled = names or [str(number + 1) for number in range(len(read))]
    return Slots(tuple(spelled), tuple(map(tuple, told.tolist())), tuple(read.tolist()))


def key_words(checkpoint: Checkpoint) -> list[str]:
    """The words that a memory's keys are tied to; none where keys are free."""
    given = checkpoint.recipe["model"]["memory"].get("tied", ())
    tied = checkpoint.sizes.get("tied_words", given)
    return [checkpoint.tokenizer.decode([word]) for word in tied]


def notes(
    words: Words,
    sentences: Sequence[str],
    question: str,
    kept: Sequence[int],
    *,
    longest: int,
    unseen: int = 0,
) -> tuple[str, ...]:
    """What is not an error, but must be said; ``longest`` text of training had so many words.

    ``kept`` are the sentences that are in memory.
    """
    said, entering = [], kept or range(len(sentences))
    fate = "which is new in" if unseen else "left out of"
    told = {"story": " ".join(sentences[number] for number in entering), "question": question}
    for name, text in told.items():
        unknown = words.unknown_words(text)
        if all(number == words.unknown for number in words.encode(text).ids):
            listed = f" ({few(unknown)})" if unknown else ""
            said.append(f"the model knows no word of the {name}{listed}; this is a guess")
        elif unknown:
            said.append(f"the model does not know {few(unknown)}, {fate} the {name}")
    if long := sum(len(words.encode(text).ids) > longest for text in (*sentences, question)):
        said.append(f"texts longer than any in training ({longest} words): {long}; do not trust it")
    if gone := left_out(kept, len(sentences)):
        said.append(f"the memory holds {len(kept)} sentences; {gone}")
    return tuple(said)


def left_out(kept: Sequence[int], told: int) -> str:
    """Which sentences of ``told`` are not in memory, in words; nothing where all are."""
    gone = told - len(kept)
    if not gone:
        return ""
    if not kept:
        return f"none of {told} could be kept"
    if list(kept) == list(range(gone, told)):
        return f"the first {gone} of {told} were left out"
    numbers = [str(number + 1) for number in range(told) if number not in kept]
    more = f" and {gone - LISTED} more" if gone > LISTED else ""
    return f"{gone} of {told} were left out: number {', '.join(numbers[:LISTED])}{more}"


def few(words: Sequence[str]) -> str:
    """The first words of a list, and how many more there are."""
    more = f" and {len(words) - LISTED} more words" if len(words) > LISTED else ""
    return ", ".join(repr(word) for word in words[:LISTED]) + more
