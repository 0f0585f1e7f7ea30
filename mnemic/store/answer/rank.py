"""Rank sentences and answers by score, merge equal answers, and collect their evidence."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from mnemic.store.answer.confidence import FITTED, SpanFeatures
from mnemic.store.answers import Evidence, RankedAnswer
from mnemic.store.contract import MemorySlot
from mnemic.store.relational import Store
from mnemic.store.retrieve.embedders import Embedder
from mnemic.store.retrieve.filters import NO_FILTERS, Filters
from mnemic.store.retrieve.hybrid import Hop, choose_bm25_weight, compute_mean_std, softmax
from mnemic.store.retrieve.query_words import extract_words

MAX_ANSWERS = 5  # answers that are returned
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"\b(?:[^\W\d_a-z]\w+|\d\w*)")  # a capital letter and more, or a number


class SlotSpan(NamedTuple):
    """A span of a slot's passage with its score: a sentence, or an answer."""

    slot: MemorySlot
    start: int
    end: int
    score: float

    @property
    def text(self) -> str:
        return self.slot.passage.text[self.start : self.end]

    def score_evidence(self, sentence: "SlotSpan") -> tuple[bool, bool, float]:
        """Return a sort key of evidence for this answer: same slot, contains it, score."""
        same_slot = sentence.slot.id == self.slot.id
        return same_slot, same_slot and sentence.start <= self.start < sentence.end, sentence.score


def score_sentences(
    store: Store, embedder: Embedder | None, hop: Hop, top_k: int, bm25_weight: float | None
) -> dict[int, list[SlotSpan]]:
    """Score the sentences of the best ``top_k`` slots: the slot's score plus their own."""
    slots = store.get_slots(hop.top_slots(top_k))
    sentences = [
        SlotSpan(slot, sentence.start, sentence.end, hop.scores[slot.id])
        for slot in slots
        for sentence in slot.passage.sentences
    ]
    texts = [sentence.text for sentence in sentences]
    bm25_weight = choose_bm25_weight(embedder, bm25_weight)
    scores = [bm25_weight * score for score in standardize(compute_word_overlap(hop.query, texts))]
    if embedder is not None and texts:
        vectors = embedder.embed([hop.query, *texts])
        cosines = standardize((vectors[1:] @ vectors[0]).tolist())
        scores = [score + (1 - bm25_weight) * cosine for score, cosine in zip(scores, cosines)]
    sentences_by_slot: dict[int, list[SlotSpan]] = {slot.id: [] for slot in slots}
    for sentence, score in zip(sentences, scores):
        sentences_by_slot[sentence.slot.id].append(sentence._replace(score=sentence.score + score))
    return sentences_by_slot


def compute_word_overlap(query: str, texts: Sequence[str]) -> list[float]:
    """Return the fraction of a query's words that each text contains."""
    query_words = set(extract_words(query))
    return [len(query_words.intersection(extract_words(text))) / max(len(query_words), 1) for text in texts]


def compute_name_overlap(query: str, texts: Sequence[str]) -> list[float]:
    """Return the fraction of a query's names and numbers in each text; 1 without any."""
    names = {name.lower() for name in _NAME.findall(query[:1].lower() + query[1:])}
    words = [set(_WORD.findall(text.lower())) for text in texts]
    return [len(names & text_words) / len(names) if names else 1.0 for text_words in words]


def standardize(scores: Sequence[float]) -> list[float]:
    """Standardize scores to mean 0 and standard deviation 1."""
    mean, std = compute_mean_std(scores, len(scores))
    return [(score - mean) / max(std, 1e-9) for score in scores]


def weigh_sentences(sentences: Sequence[SlotSpan]) -> list[SlotSpan]:
    """Return the best sentences as answers (without a reader), with softmax scores."""
    probabilities = softmax(dict(enumerate(sentence.score for sentence in sentences)))
    return [sentence._replace(score=probabilities[rank]) for rank, sentence in enumerate(sentences[:MAX_ANSWERS])]


def merge_answers(candidates: Sequence[tuple[SlotSpan, SpanFeatures]]) -> list[SlotSpan]:
    """Merge equal answers of several slots; return the best with their confidence.

    The probability of an answer is the sum over the slots that have the same words.
    """
    probabilities = FITTED.predict_probabilities([features for _, features in candidates])
    answers = [answer._replace(score=score) for (answer, _), score in zip(candidates, probabilities) if answer.text]
    merged: dict[str, SlotSpan] = {}
    for answer in sorted(answers, key=lambda answer: -answer.score):
        first = merged.get(normalize_answer(answer.text))
        merged[normalize_answer(answer.text)] = first._replace(score=first.score + answer.score) if first else answer
    return sorted(merged.values(), key=lambda answer: -answer.score)[:MAX_ANSWERS]


def normalize_answer(text: str) -> str:
    """Normalize case and white space, to compare answers."""
    return " ".join(text.casefold().split())


def make_evidence(
    store: Store, sentences: Sequence[SlotSpan], hops: Sequence[Hop], filters: Filters = NO_FILTERS
) -> list[Evidence]:
    """Make the evidence of sentences, with their weights in each hop."""
    documents = {sentence.slot.document: store.get_document(sentence.slot.document) for sentence in sentences}
    evidence = []
    for sentence in sentences:
        slot, document = sentence.slot, documents[sentence.slot.document]
        assert document is not None, "an active slot has a document"
        source = next(source for source in slot.passage.sentences if source.start == sentence.start)
        evidence.append(
            Evidence(
                document=document.id,
                name=filters.choose_name(document),
                page=slot.passage.page,
                **source._asdict(),
                boxes=slot.passage.boxes_of(source),
                passage=slot.passage.text,
                weights=tuple(hop.weights.get(slot.id, 0.0) for hop in hops),
                score=sentence.score,
                slot=slot.id,
            )
        )
    return evidence


def rank_answer(answer: SlotSpan, sentences: Sequence[SlotSpan], evidence: Sequence[Evidence]) -> RankedAnswer:
    """Make an answer of the ranking, with the sentence that it quotes."""
    best = max(range(len(sentences)), key=lambda position: answer.score_evidence(sentences[position]))
    return RankedAnswer(start=answer.start, end=answer.end, score=answer.score, evidence=evidence[best])
