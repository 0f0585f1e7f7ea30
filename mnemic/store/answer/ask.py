"""Answer a question from a memory: retrieve in hops, read passages, collect evidence."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from mnemic.store.answer.confidence import FITTED, MIN_CONFIDENCE, AnswerSpan, Reader, SpanFeatures, compute_features
from mnemic.store.answers import Answer, Evidence, RankedAnswer
from mnemic.store.contract import MemorySlot, Store, StoreError
from mnemic.store.retrieve.embedders import Embedder
from mnemic.store.retrieve.hybrid import Hop, choose_bm25_weight, compute_mean_std, read_hop, softmax
from mnemic.store.retrieve.query_words import extract_words
from mnemic.text.chinese import han_fraction
from mnemic.text.sentences import MIN_HAN_FRACTION

DEFAULT_HOPS = 1
DEFAULT_PASSAGES = 5  # passages per hop that are read sentence by sentence
MAX_ANSWERS = 5  # answers that are returned


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
        new_sentences = score_sentences(store, embedder if needs_vectors else None, hop, options)
        hops.append(hop._replace(clue=clue))
        sentences_by_slot |= new_sentences
        if not new_sentences:
            break
        clue = max(chain.from_iterable(new_sentences.values()), key=lambda sentence: sentence.score).text
    return hops, sentences_by_slot


def is_chinese(text: str) -> bool:
    """Return whether enough of a text's characters are Chinese."""
    return han_fraction(text) >= MIN_HAN_FRACTION


def score_sentences(
    store: Store, embedder: Embedder | None, hop: Hop, options: AskOptions
) -> dict[int, list[SlotSpan]]:
    """Score the sentences of the best slots: the slot's score plus the sentence's own."""
    slots = store.get_slots(hop.top_slots(options.passages))
    sentences = [
        SlotSpan(slot, sentence.start, sentence.end, hop.scores[slot.id])
        for slot in slots
        for sentence in slot.passage.sentences
    ]
    texts = [sentence.text for sentence in sentences]
    bm25_weight = choose_bm25_weight(embedder, options.bm25_weight)
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


def standardize(scores: Sequence[float]) -> list[float]:
    """Standardize scores to mean 0 and standard deviation 1."""
    mean, std = compute_mean_std(scores, len(scores))
    return [(score - mean) / max(std, 1e-9) for score in scores]


def weigh_sentences(sentences: Sequence[SlotSpan]) -> list[SlotSpan]:
    """Return the best sentences as answers (without a reader), with softmax scores."""
    probabilities = softmax(dict(enumerate(sentence.score for sentence in sentences)))
    return [sentence._replace(score=probabilities[rank]) for rank, sentence in enumerate(sentences[:MAX_ANSWERS])]


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


def make_evidence(store: Store, sentences: Sequence[SlotSpan], hops: Sequence[Hop]) -> list[Evidence]:
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
                name=document.name,
                page=slot.passage.page,
                **source._asdict(),
                passage=slot.passage.text,
                weights=tuple(hop.weights.get(slot.id, 0.0) for hop in hops),
                score=sentence.score,
            )
        )
    return evidence


def rank_answer(answer: SlotSpan, sentences: Sequence[SlotSpan], evidence: Sequence[Evidence]) -> RankedAnswer:
    """Make an answer of the ranking, with the sentence that it quotes."""
    best = max(range(len(sentences)), key=lambda position: answer.score_evidence(sentences[position]))
    return RankedAnswer(start=answer.start, end=answer.end, score=answer.score, evidence=evidence[best])
