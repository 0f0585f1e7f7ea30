"""Answer a question from a memory: retrieve in hops, read passages; ``rank`` orders answers."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from mnemic.store.answer.confidence import MIN_CONFIDENCE, AnswerSpan, Reader, SpanFeatures, compute_features
from mnemic.store.answer.rank import (
    SlotSpan,
    compute_word_overlap,
    make_evidence,
    merge_answers,
    rank_answer,
    score_sentences,
    weigh_sentences,
)
from mnemic.store.answers import Answer
from mnemic.store.contract import StoreError
from mnemic.store.relational import Store
from mnemic.store.retrieve.embedders import Embedder
from mnemic.store.retrieve.hybrid import Hop, read_hop
from mnemic.text.chinese import han_fraction
from mnemic.text.sentences import MIN_HAN_FRACTION

DEFAULT_HOPS = 1
DEFAULT_PASSAGES = 5  # passages per hop that are read sentence by sentence


class AskOptions(NamedTuple):
    """Options of a question: hops, passages per hop, BM25 weight, minimal confidence."""

    hops: int = DEFAULT_HOPS
    passages: int = DEFAULT_PASSAGES
    bm25_weight: float | None = None
    confidence: float = MIN_CONFIDENCE

    def check(self) -> "AskOptions":
        """Return the options, or raise ``StoreError`` if one is out of range."""
        if self.hops < 1 or self.passages < 1:
            raise StoreError(f"hops and passages are at least 1, not {self.hops}, {self.passages}")
        for name, value in (("lexical share", self.bm25_weight), ("confidence", self.confidence)):
            if value is not None and not 0 <= value <= 1:
                raise StoreError(f"the {name} is between 0 and 1, not {value}")
        return self


def check_question(question: str) -> None:
    """Raise ``StoreError`` if a question is empty."""
    if not question.strip():
        raise StoreError("the question is empty; ask for example 'Who wrote it?'")


def answer_question(
    store: Store, embedder: Embedder | None, reader: Reader | None, question: str, options: AskOptions
) -> Answer:
    """Answer a question with a span of a passage, and all sentences as evidence."""
    check_question(question)
    notes = []
    if is_chinese(question) and embedder is not None:
        notes.append("the question is Chinese: the memory was read by its words alone")
    active_embedder, active_reader = (None, None) if is_chinese(question) else (embedder, reader)
    hops, sentences_by_slot = retrieve_in_hops(
        store, active_embedder, question, options.check(), rank_last_hop=active_reader is None
    )
    sentences = sorted(chain.from_iterable(sentences_by_slot.values()), key=lambda sentence: -sentence.score)
    candidates = read_passages(active_reader, question, sentences_by_slot, hops)
    if candidates is not None:
        answers = merge_answers(candidates)
        best = answers[0] if answers and answers[0].score >= options.confidence else None
    else:
        last_slots = hops[-1].top_slots(options.passages) or sentences_by_slot
        answers = weigh_sentences([sentence for sentence in sentences if sentence.slot.id in last_slots])
        best = answers[0] if answers else None
        if best and reader is not None:
            notes.append("the reader knows no Chinese: the answer is the sentence that fits best")
    if best:
        sentences.sort(key=best.score_evidence, reverse=True)
    evidence = make_evidence(store, sentences, hops)
    return Answer(
        question=question,
        text=best.text if best else "",
        score=best.score if best else 0.0,
        evidence=tuple(evidence),
        start=best.start if best else 0,
        end=best.end if best else 0,
        ranked=tuple(rank_answer(answer, sentences, evidence) for answer in answers),
        kind="sentence" if candidates is None else "span",
        hops=len(hops),
        looked=hops[0].num_slots,
        read=len({sentence.slot.id for sentence in sentences}),
        notes=tuple(notes),
    )


def retrieve_in_hops(
    store: Store, embedder: Embedder | None, question: str, options: AskOptions, *, rank_last_hop: bool
) -> tuple[list[Hop], dict[int, list[SlotSpan]]]:
    """Retrieve slots hop by hop; return the hops and the scored sentences per slot.

    The query of a later hop is the question with the best sentence of the hop before, its clue.
    The sentences of the last hop are scored with vectors only if ``rank_last_hop``: that is needed
    where one of them becomes the answer, and by words alone it takes no time.
    """
    hops: list[Hop] = []
    sentences_by_slot: dict[int, list[SlotSpan]] = {}
    clue = ""
    for number in range(options.hops):
        query = f"{question} {clue}".strip()
        hop = read_hop(store, embedder, query, bm25_weight=options.bm25_weight, excluded=list(sentences_by_slot))
        needs_vectors = rank_last_hop or number + 1 < options.hops
        sentence_embedder = embedder if needs_vectors else None
        new_sentences = score_sentences(store, sentence_embedder, hop, options.passages, options.bm25_weight)
        hops.append(hop._replace(clue=clue))
        sentences_by_slot |= new_sentences
        if not new_sentences:
            break
        clue = max(chain.from_iterable(new_sentences.values()), key=lambda sentence: sentence.score).text
    return hops, sentences_by_slot


def is_chinese(text: str) -> bool:
    """Return whether enough of a text's characters are Chinese."""
    return han_fraction(text) >= MIN_HAN_FRACTION


def read_passages(
    reader: Reader | None, question: str, sentences_by_slot: Mapping[int, Sequence[SlotSpan]], hops: Sequence[Hop]
) -> list[tuple[SlotSpan, SpanFeatures]] | None:
    """Find a span per slot with a reader, and its features; None: nothing to read.

    A slot of a later hop is read with the hop's clue in front: it may speak of something that the
    question does not name, and only the clue connects the two.
    """
    if reader is None:
        return None
    slots, clues, scores = [], [], []
    for slot in (sentences[0].slot for sentences in sentences_by_slot.values() if sentences):
        hop = next(hop for hop in reversed(hops) if slot.id in hop.scores)
        if not is_chinese(slot.passage.text):
            slots.append(slot)
            clues.append(f"{hop.clue} " if hop.clue else "")
            scores.append(hop.scores[slot.id] - max(hop.scores.values()))
    if not slots:
        return None
    texts = [clue + slot.passage.text for clue, slot in zip(clues, slots)]
    spans = [shift_span(span, len(clue)) for span, clue in zip(reader.answer(question, texts), clues)]
    features = compute_features(scores, compute_word_overlap(question, texts), spans)
    candidates = [SlotSpan(slot, span.start, span.end, span.probability) for slot, span in zip(slots, spans)]
    return list(zip(candidates, features))


def shift_span(span: AnswerSpan, offset: int) -> AnswerSpan:
    """Move a span ``offset`` characters to the left; no answer if it starts before."""
    if span.start >= offset:
        return span._replace(start=span.start - offset, end=span.end - offset)
    return AnswerSpan(0, 0, 0.0, 1.0)
