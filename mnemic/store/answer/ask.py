"""Answer a question from a memory: retrieve in hops, read passages, collect evidence."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mnemic.store.answer.confidence import FITTED, MIN_CONFIDENCE, AnswerSpan, Reader, SpanFeatures, compute_features
from mnemic.store.answers import Answer, AnswerKind, Evidence, RankedAnswer
from mnemic.store.contract import Document, MemorySlot, Store, StoreError
from mnemic.store.retrieve.embedders import Embedder
from mnemic.store.retrieve.hybrid import Hop, choose_bm25_weight, compute_mean_std, read_hop, softmax
from mnemic.store.retrieve.query_words import extract_words
from mnemic.text.chinese import han_fraction
from mnemic.text.documents import Sentence
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


class ScoredSentence(NamedTuple):
    """A sentence of a slot with its score."""

    slot: MemorySlot
    sentence: Sentence
    score: float

    @property
    def text(self) -> str:
        return self.slot.passage.text[self.sentence.start : self.sentence.end]


class AnswerQuote(NamedTuple):
    """An answer as a span of a slot's passage."""

    slot: MemorySlot
    start: int
    end: int
    score: float

    @property
    def text(self) -> str:
        return self.slot.passage.text[self.start : self.end]

    def score_evidence(self, sentence: ScoredSentence) -> tuple[bool, bool, float]:
        """Return a sort key of evidence: same slot, contains the answer, score."""
        same_slot = sentence.slot.id == self.slot.id
        return (same_slot, same_slot and sentence.sentence.start <= self.start < sentence.sentence.end, sentence.score)


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
    if is_chinese(question):
        if embedder is not None:
            notes.append("the question is Chinese: the memory was read by its words alone")
        embedder = None
    active_reader = None if is_chinese(question) else reader
    hops, sentences_by_slot = retrieve_in_hops(
        store, embedder, question, options.check(), rank_last_hop=active_reader is None
    )
    last_slot_ids = hops[-1].top_slots(options.passages) or [
        slot_id for hop in hops for slot_id in hop.top_slots(options.passages)
    ]
    ranked = sorted(
        (sentence for slot_sentences in sentences_by_slot.values() for sentence in slot_sentences),
        key=lambda sentence: -sentence.score,
    )
    last_sentences = [sentence for sentence in ranked if sentence.slot.id in last_slot_ids]
    candidates = read_passages(active_reader, question, sentences_by_slot, hops)
    if candidates is None and reader is not None and last_sentences:
        notes.append("the reader knows no Chinese: the answer is the sentence that fits best")
    quotes = quote_sentences(last_sentences) if candidates is None else merge_spans(candidates)
    is_confident = bool(quotes) and (candidates is None or quotes[0].score >= options.confidence)
    kind: AnswerKind = "sentence" if candidates is None else "span"
    return build_answer(store, RankedQuotes(question, kind, quotes, is_confident, tuple(notes)), ranked, hops)


def retrieve_in_hops(
    store: Store, embedder: Embedder | None, question: str, options: AskOptions, *, rank_last_hop: bool
) -> tuple[list[Hop], dict[int, list[ScoredSentence]]]:
    """Retrieve slots hop by hop; return the hops and the scored sentences per slot.

    The query of a later hop is the question with the best sentence of the hop before, its clue.
    The sentences of the last hop are scored with vectors only if ``rank_last_hop``: that is needed
    where one of them becomes the answer, and by words alone it takes no time.
    """
    hops: list[Hop] = []
    sentences_by_slot: dict[int, list[ScoredSentence]] = {}
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
        clue = max(
            (sentence for slot_sentences in new_sentences.values() for sentence in slot_sentences),
            key=lambda sentence: sentence.score,
        ).text
    return hops, sentences_by_slot


def is_chinese(text: str) -> bool:
    """Return whether enough of a text's characters are Chinese."""
    return han_fraction(text) >= MIN_HAN_FRACTION


def score_sentences(
    store: Store, embedder: Embedder | None, hop: Hop, options: AskOptions
) -> dict[int, list[ScoredSentence]]:
    """Score the sentences of the best slots: the slot's score plus the sentence's own."""
    slots = store.get_slots(hop.top_slots(options.passages))
    pairs = [(slot, sentence) for slot in slots for sentence in slot.passage.sentences]
    texts = [slot.passage.text[sentence.start : sentence.end] for slot, sentence in pairs]
    bm25_weight = choose_bm25_weight(embedder, options.bm25_weight)
    scores = [bm25_weight * score for score in standardize(compute_word_overlap(hop.query, texts))]
    if embedder is not None and texts:
        vectors = embedder.embed([hop.query, *texts])
        cosines = standardize((vectors[1:] @ vectors[0]).tolist())
        scores = [score + (1 - bm25_weight) * cosine for score, cosine in zip(scores, cosines)]
    sentences_by_slot: dict[int, list[ScoredSentence]] = {slot.id: [] for slot in slots}
    for (slot, sentence), score in zip(pairs, scores):
        sentences_by_slot[slot.id].append(ScoredSentence(slot, sentence, hop.scores[slot.id] + score))
    return sentences_by_slot


def compute_word_overlap(query: str, texts: Sequence[str]) -> list[float]:
    """Return the fraction of a query's words that each text contains."""
    query_words = set(extract_words(query))
    return [len(query_words.intersection(extract_words(text))) / max(len(query_words), 1) for text in texts]


def standardize(scores: Sequence[float]) -> list[float]:
    """Standardize scores to mean 0 and standard deviation 1."""
    mean, std = compute_mean_std(scores, len(scores))
    return [(score - mean) / max(std, 1e-9) for score in scores]


def quote_sentences(sentences: Sequence[ScoredSentence]) -> list[AnswerQuote]:
    """Quote the best sentences as answers (without a reader), with softmax scores."""
    probabilities = softmax(dict(enumerate(sentence.score for sentence in sentences)))
    return [
        AnswerQuote(sentence.slot, sentence.sentence.start, sentence.sentence.end, probabilities[rank])
        for rank, sentence in enumerate(sentences[:MAX_ANSWERS])
    ]


class SpanCandidate(NamedTuple):
    """The span that a reader found in a slot, with its features."""

    slot: MemorySlot
    span: AnswerSpan
    features: SpanFeatures


def read_passages(
    reader: Reader | None, question: str, sentences_by_slot: Mapping[int, Sequence[ScoredSentence]], hops: Sequence[Hop]
) -> list[SpanCandidate] | None:
    """Let a reader find a span per slot; None if it can read nothing.

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
    return [SpanCandidate(*fields) for fields in zip(slots, spans, features)]


def shift_span(span: AnswerSpan, offset: int) -> AnswerSpan:
    """Move a span ``offset`` characters to the left; no answer if it starts before."""
    if span.start >= offset:
        return span._replace(start=span.start - offset, end=span.end - offset)
    return AnswerSpan(0, 0, 0.0, 1.0)


def merge_spans(candidates: Sequence[SpanCandidate]) -> list[AnswerQuote]:
    """Merge equal answers of several slots; return the best with their confidence.

    The probability of an answer is the sum over the slots that have the same words.
    """
    probabilities = FITTED.predict_probabilities([candidate.features for candidate in candidates])
    quotes = [
        AnswerQuote(candidate.slot, candidate.span.start, candidate.span.end, probability)
        for candidate, probability in zip(candidates, probabilities)
        if candidate.span.end > candidate.span.start
    ]
    merged: dict[str, AnswerQuote] = {}
    for quote in sorted(quotes, key=lambda quote: -quote.score):
        key = normalize_answer(quote.text)
        first = merged.get(key)
        merged[key] = first._replace(score=first.score + quote.score) if first else quote
    return sorted(merged.values(), key=lambda quote: -quote.score)[:MAX_ANSWERS]


def normalize_answer(text: str) -> str:
    """Normalize case and white space, to compare answers."""
    return " ".join(text.casefold().split())


class RankedQuotes(NamedTuple):
    """All answers to a question, best first, and whether the best one is confident."""

    question: str
    kind: AnswerKind
    quotes: Sequence[AnswerQuote]
    is_confident: bool
    notes: tuple[str, ...]


def build_answer(
    store: Store, result: RankedQuotes, sentences: Sequence[ScoredSentence], hops: Sequence[Hop]
) -> Answer:
    """Build the ``Answer`` with its evidence, first the sentence that it quotes."""
    best = result.quotes[0] if result.is_confident else None
    if best is not None:
        sentences = sorted(sentences, key=best.score_evidence, reverse=True)
    documents = {sentence.slot.document: store.get_document(sentence.slot.document) for sentence in sentences}

    def evidence(sentence: ScoredSentence) -> Evidence:
        return make_evidence(sentence, documents[sentence.slot.document], hops)

    ranked = []
    for quote in result.quotes:
        quote_evidence = evidence(max(sentences, key=quote.score_evidence))
        ranked.append(RankedAnswer(start=quote.start, end=quote.end, score=quote.score, evidence=quote_evidence))
    return Answer(
        question=result.question,
        text=best.text if best else "",
        score=best.score if best else 0.0,
        evidence=tuple(map(evidence, sentences)),
        start=best.start if best else 0,
        end=best.end if best else 0,
        ranked=tuple(ranked),
        kind=result.kind,
        hops=len(hops),
        looked=hops[0].num_slots,
        read=len({sentence.slot.id for sentence in sentences}),
        notes=result.notes,
    )


def make_evidence(sentence: ScoredSentence, document: Document | None, hops: Sequence[Hop]) -> Evidence:
    """Make the evidence of a sentence, with its weight in each hop."""
    assert document is not None, "an active slot has a document"
    return Evidence(
        document=document.id,
        name=document.name,
        page=sentence.slot.passage.page,
        line=sentence.sentence.line,
        first=sentence.sentence.first,
        last=sentence.sentence.last,
        passage=sentence.slot.passage.text,
        start=sentence.sentence.start,
        end=sentence.sentence.end,
        weights=tuple(hop.weights.get(sentence.slot.id, 0.0) for hop in hops),
        score=sentence.score,
    )
