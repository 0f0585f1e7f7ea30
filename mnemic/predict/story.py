"""Answer questions about a story, with the sentences that the answer was read from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from mnemic.checkpoint.folder import Checkpoint
from mnemic.data.babi.batches import encode_examples
from mnemic.data.babi.dataset import StoryFolder
from mnemic.data.babi.format import StoryError, StoryExample
from mnemic.models import ModelOutput
from mnemic.recipe import kind_name
from mnemic.text import WordTokenizer

MAX_ANSWERS = 3  # that are returned, with the best
MAX_LISTED = 8  # unknown words or sentences in a note


@dataclass(frozen=True)
class SentenceEvidence:
    """A sentence in memory, with its read weight at each hop."""

    sentence: int  # its number in the story, from 0
    text: str
    weights: tuple[float, ...]  # one per hop

    @property
    def max_weight(self) -> float:
        """The largest read weight over all hops."""
        return max(self.weights)


@dataclass(frozen=True)
class SlotActivity:
    """Write gates and read weights of a memory's slots."""

    names: tuple[str, ...]  # the words that are keys, or numbers from 1
    gates: tuple[tuple[float, ...], ...]  # one row per sentence in memory, one number per slot
    read: tuple[float, ...]  # read weight of each slot

    @property
    def most_read(self) -> int:
        """The slot with the largest read weight."""
        return max(range(len(self.read)), key=lambda slot: self.read[slot])


@dataclass(frozen=True)
class StoryAnswer:
    """An answer with its probability, the next best answers, and its evidence.

    >>> story = ["Mary took the milk.", "John went to the office.", "Mary went to the garden."]
    >>> answer = mnemic.load("wmn-babi").ask_story(story, "Where is the milk?")
    >>> answer.text, round(answer.probability, 1)
    ('garden', 1.0)
    >>> [source.text for source in answer.best_evidence(2)]
    ['Mary went to the garden.', 'Mary took the milk.']
    """

    text: str
    probability: float
    ranked: tuple[tuple[str, float], ...]  # the best answers with their probabilities
    evidence: tuple[SentenceEvidence, ...]  # every sentence in memory, in story order
    kept: int  # number of sentences in memory
    told: int  # number of sentences in the story
    notes: tuple[str, ...]  # warnings: unknown words, sentences that are not in memory
    memory: str = "memn2n"  # its kind
    taken: tuple[float, ...] = ()  # gate on the read vector at each hop, for a gated memory
    slots: SlotActivity | None = None  # of a memory with a fixed number of slots
    item: str = "sentence"  # what an entry of the evidence is: sentence, fact or window

    @property
    def missing_sentences(self) -> str:
        """A description of the sentences that are not in memory; empty if all are."""
        return describe_missing([source.sentence for source in self.evidence], self.told)

    def best_evidence(self, limit: int = 5) -> tuple[SentenceEvidence, ...]:
        """Return the sentences with the largest read weights, largest first."""
        return tuple(sorted(self.evidence, key=lambda source: -source.max_weight)[:limit])


@torch.no_grad()
def ask_story(checkpoint: Checkpoint, sentences: Sequence[str], question: str) -> StoryAnswer:
    """Answer a question about a story of ``sentences`` with one word.

    >>> model = mnemic.load("entnet-babi")
    >>> story = ["Mary went to the garden.", "John moved to the office."]
    >>> answer = mnemic.ask_story(model, story, "Where is John?")
    >>> answer.text
    'office'
    >>> [source.text for source in answer.evidence if source.max_weight > 0.5]
    ['John moved to the office.']
    """
    if not sentences:
        raise StoryError("the story has no sentences; tell at least one before asking")
    if not question.strip():
        raise StoryError("the question is empty; ask for example 'Where is the milk?'")
    tokenizer, source = checkpoint.tokenizer, checkpoint.network.respond.source
    if source == "carried memory":
        raise StoryError("this network reads long texts: use its remember, and ask what it returns")
    if source == "text":
        raise StoryError("this network reads texts: use `mnemic predict`, or its classify, tag, answer or embed")
    assert isinstance(tokenizer, WordTokenizer)
    example = StoryExample(tuple(sentences), question, "", (), 0)
    num_unseen = checkpoint.sizes.get("unseen", 0)
    batch = encode_examples([example], tokenizer, num_unseen=num_unseen).batch(torch.tensor([0]))
    output = checkpoint.network.eval()(batch.inputs)
    ranked = rank_words(output, tokenizer)
    evidence = collect_evidence(output, sentences)
    stored = [source.sentence for source in evidence]
    max_words = checkpoint.sizes["max_length"] - 1
    messages = collect_notes(tokenizer, sentences, question, stored, max_words=max_words, num_unseen=num_unseen)
    messages += note_untrained_length(len(stored), checkpoint.recipe["data"])
    memory, counts = kind_name(checkpoint.recipe["model"]["memory"]), (len(stored), len(sentences))
    slots = collect_slot_activity(output, decode_tied_keys(checkpoint))
    return StoryAnswer(*ranked[0], ranked, evidence, *counts, messages, memory, hop_gates_of(output), slots)


def collect_evidence(output: ModelOutput, texts: Sequence[str]) -> tuple[SentenceEvidence, ...]:
    """Collect the sentences in memory, with the read weight of each hop."""
    weights_by_sentence = compute_sentence_weights(output)
    return tuple(SentenceEvidence(number, texts[number], tuple(row)) for number, row in weights_by_sentence.items())


def rank_words(output: ModelOutput, tokenizer: WordTokenizer) -> tuple[tuple[str, float], ...]:
    """Rank the most probable words: (word, probability), without padding and unknown."""
    probabilities = output.logits[0, 0].softmax(-1)
    probabilities[[tokenizer.pad, tokenizer.unknown]] = 0.0
    top = probabilities.topk(min(MAX_ANSWERS, len(tokenizer) - 2))
    return tuple(
        (tokenizer.decode([token_id]), probability)
        for probability, token_id in zip(top.values.tolist(), top.indices.tolist())
    )


def note_untrained_length(num_stored: int, data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a note if the memory holds more sentences than any training story had."""
    max_trained = data.get("sentences", StoryFolder.sentences)
    if num_stored <= max_trained:
        return ()
    return (f"{num_stored} sentences are in memory, and training had at most {max_trained}; do not trust it",)


def compute_sentence_weights(output: ModelOutput) -> dict[int, list[float]]:
    """Compute the read weight per hop of each sentence that is still in memory.

    Maps slots back to sentences: the read weights of a hop times the share of each sentence in each
    slot, averaged over heads.
    """
    slot_weights = output.reading.weights[0, : count_hops(output), :, 0].mean(1)  # k s
    sentence_weights = output.written.weights[0] @ slot_weights.mT  # n k
    return {number: sentence_weights[number].tolist() for number in find_stored_sentences(output)}


def count_hops(output: ModelOutput) -> int:
    """Count the hops of a reading; an early stop counts as the last hop."""
    is_hop_used = output.reading.weights[0, :, :, 0].sum((1, 2)) > 0  # k
    num_hops = int(is_hop_used.sum()) + 1  # a stopped reading never resumes
    return len(is_hop_used) if output.reading.nothing is None else min(num_hops, len(is_hop_used))


def find_stored_sentences(output: ModelOutput) -> list[int]:
    """Find the sentences that were written and not evicted, even if partly overwritten."""
    return output.written.slot_writes[0].any(1).nonzero().flatten().tolist()


def hop_gates_of(output: ModelOutput) -> tuple[float, ...]:
    """Return each hop's gate on the read vector; empty without gates."""
    gates = output.reading.gates
    return () if gates is None else tuple(gates[0, :, 0].tolist())


def collect_slot_activity(output: ModelOutput, names: Sequence[str]) -> SlotActivity | None:
    """Collect write gates and read weights of the slots; None for a memory without gates."""
    gates = output.written.gates
    if gates is None:
        return None
    slot_weights = output.reading.weights[0, :, :, 0].mean((0, 1))  # s
    sentence_gates = gates[0, find_stored_sentences(output)]  # n s
    slot_names = names or [str(number + 1) for number in range(len(slot_weights))]
    return SlotActivity(tuple(slot_names), tuple(map(tuple, sentence_gates.tolist())), tuple(slot_weights.tolist()))


def decode_tied_keys(checkpoint: Checkpoint) -> list[str]:
    """Decode the words that a memory's keys are tied to; empty if keys are free."""
    recipe_words = checkpoint.recipe["model"]["memory"].get("tied", ())
    word_ids = checkpoint.sizes.get("tied_words", recipe_words)
    return [checkpoint.tokenizer.decode([word_id]) for word_id in word_ids]


def collect_notes(
    tokenizer: WordTokenizer,
    sentences: Sequence[str],
    question: str,
    stored: Sequence[int],
    *,
    max_words: int,
    num_unseen: int = 0,
) -> tuple[str, ...]:
    """Collect warnings about unknown words, long texts, and sentences missing from memory.

    ``stored`` are the numbers of the sentences in memory. ``max_words`` is the length of the
    longest training text. ``num_unseen`` is the number of ids for words outside the vocabulary.
    """
    messages, visible = [], stored or range(len(sentences))
    fate = "which is new in" if num_unseen else "left out of"
    texts = {"story": " ".join(sentences[number] for number in visible), "question": question}
    for name, text in texts.items():
        unknown = tokenizer.find_unknown_words(text)
        if all(number == tokenizer.unknown for number in tokenizer.encode(text).ids):
            word_list = f" ({quote_words(unknown)})" if unknown else ""
            messages.append(f"the model knows no word of the {name}{word_list}; this is a guess")
        elif unknown:
            messages.append(f"the model does not know {quote_words(unknown)}, {fate} the {name}")
    if num_long := sum(len(tokenizer.encode(text).ids) > max_words for text in (*sentences, question)):
        messages.append(f"texts longer than any in training ({max_words} words): {num_long}; do not trust it")
    if missing := describe_missing(stored, len(sentences)):
        messages.append(f"the memory holds {len(stored)} sentences; {missing}")
    return tuple(messages)


def describe_missing(stored: Sequence[int], total: int) -> str:
    """Describe the sentences of ``total`` that are not in memory; empty if all are ``stored``."""
    num_missing = total - len(stored)
    if not num_missing:
        return ""
    if not stored:
        return f"none of {total} could be kept"
    if list(stored) == list(range(num_missing, total)):
        return f"the first {num_missing} of {total} were left out"
    numbers = [str(number + 1) for number in range(total) if number not in stored]
    more = f" and {num_missing - MAX_LISTED} more" if num_missing > MAX_LISTED else ""
    return f"{num_missing} of {total} were left out: number {', '.join(numbers[:MAX_LISTED])}{more}"


def quote_words(words: Sequence[str]) -> str:
    """Quote the first ``MAX_LISTED`` words of a list, and count the rest."""
    more = f" and {len(words) - MAX_LISTED} more words" if len(words) > MAX_LISTED else ""
    return ", ".join(repr(word) for word in words[:MAX_LISTED]) + more
