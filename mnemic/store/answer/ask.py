"""Ask a memory: read it in hops, let a reader answer from what was found, show the evidence."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mnemic.store.answer.confidence import LEAST, USUAL, Features, Reader, Span, features
from mnemic.store.answers import Answer, Evidence, Kind, Ranked
from mnemic.store.contract import Document, Slot, Store, StoreError
from mnemic.store.retrieve.embedders import Embedder
from mnemic.store.retrieve.hybrid import Hop, read, share, softmax, spread
from mnemic.store.retrieve.query_words import words_of
from mnemic.text.chinese import share_of_han
from mnemic.text.documents import Sentence
from mnemic.text.sentences import CHINESE_FROM

HOPS = 1
READ = 5  # passages that are read sentence by sentence, each hop
RANKED = 5  # answers that are told, at most


class Asking(NamedTuple):
    """How a memory is read; nothing here changes what it holds."""

    hops: int = HOPS
    passages: int = READ
    lexical: float | None = None
    confidence: float = LEAST

    def check(self) -> "Asking":
        if self.hops < 1 or self.passages < 1:
            raise StoreError(f"hops and passages are at least 1, not {self.hops}, {self.passages}")
        for name, value in (("lexical share", self.lexical), ("confidence", self.confidence)):
            if value is not None and not 0 <= value <= 1:
                raise StoreError(f"the {name} is between 0 and 1, not {value}")
        return self


class Found(NamedTuple):
    """A sentence of a slot, scored."""

    slot: Slot
    sentence: Sentence
    score: float

    @property
    def text(self) -> str:
        return self.slot.passage.text[self.sentence.start : self.sentence.end]


class Quoted(NamedTuple):
    """An answer, as a stretch of a slot's passage."""

    slot: Slot
    start: int
    end: int
    score: float

    @property
    def text(self) -> str:
        return self.slot.passage.text[self.start : self.end]

    def nearness(self, one: Found) -> tuple[bool, bool, float]:
        """What makes a sentence evidence: it is quoted, it is from the same slot, it fits."""
        own = one.slot.id == self.slot.id
        return own, own and one.sentence.start <= self.start < one.sentence.end, one.score


def check_question(question: str) -> None:
    if not question.strip():
        raise StoreError("the question is empty; ask for example 'Who wrote it?'")


def ask(
    store: Store,
    embedder: Embedder | None,
    reader: Reader | None,
    question: str,
    how: Asking,
) -> Answer:
    """Answer with a stretch of one passage, and show every sentence that came into question."""
    check_question(question)
    notes = []
    if is_chinese(question):
        if embedder is not None:
            notes.append("the question is Chinese: the memory was read by its words alone")
        embedder = None
    reads = None if is_chinese(question) else reader
    hops, found = in_hops(store, embedder, question, how.check(), choose=reads is None)
    last = hops[-1].best(how.passages) or [slot for hop in hops for slot in hop.best(how.passages)]
    ranked = sorted((one for own in found.values() for one in own), key=lambda one: -one.score)
    latest = [one for one in ranked if one.slot.id in last]
    offers = offered(reads, question, found, hops)
    if offers is None and reader is not None and latest:
        notes.append("the reader knows no Chinese: the answer is the sentence that fits best")
    quotes = sentences_of(latest) if offers is None else spans_of(offers)
    sure = bool(quotes) and (offers is None or quotes[0].score >= how.confidence)
    kind: Kind = "sentence" if offers is None else "span"
    return shown(store, Said(question, kind, quotes, sure, tuple(notes)), ranked, hops)


def in_hops(
    store: Store, embedder: Embedder | None, question: str, how: Asking, *, choose: bool
) -> tuple[list[Hop], dict[int, list[Found]]]:
    """What each hop read, and the sentences of the slots that were read, slot by slot.

    A hop asks with the best sentence of the one before, its clue. Unless one is to be chosen
    (``choose``) as the answer, those of the last hop are ranked by their words alone, which takes
    no time.
    """
    hops: list[Hop] = []
    found: dict[int, list[Found]] = {}
    clue = ""
    for number in range(how.hops):
        query = f"{question} {clue}".strip()
        hop = read(store, embedder, query, lexical=how.lexical, besides=list(found))
        closely = choose or number + 1 < how.hops
        fresh = sentences_read(store, embedder if closely else None, hop, how)
        hops.append(hop._replace(clue=clue))
        found |= fresh
        if not fresh:
            break
        clue = max((one for own in fresh.values() for one in own), key=lambda one: one.score).text
    return hops, found


def is_chinese(text: str) -> bool:
    return share_of_han(text) >= CHINESE_FROM


def sentences_read(
    store: Store, embedder: Embedder | None, hop: Hop, how: Asking
) -> dict[int, list[Found]]:
    """The sentences of the best slots: the slot's score, and how well each fits by itself."""
    slots = store.slots(hop.best(how.passages))
    pairs = [(slot, sentence) for slot in slots for sentence in slot.passage.sentences]
    texts = [slot.passage.text[one.start : one.end] for slot, one in pairs]
    words = share(embedder, how.lexical)
    fit = [words * score for score in standard(shared(hop.query, texts))]
    if embedder is not None and texts:
        vectors = embedder.embed([hop.query, *texts])
        near = standard((vectors[1:] @ vectors[0]).tolist())
        fit = [own + (1 - words) * other for own, other in zip(fit, near)]
    found: dict[int, list[Found]] = {slot.id: [] for slot in slots}
    for (slot, sentence), own in zip(pairs, fit):
        found[slot.id].append(Found(slot, sentence, hop.scores[slot.id] + own))
    return found


def shared(query: str, texts: Sequence[str]) -> list[float]:
    """The share of a query's words that each text has."""
    wanted = set(words_of(query))
    return [len(wanted.intersection(words_of(text))) / max(len(wanted), 1) for text in texts]


def standard(scores: Sequence[float]) -> list[float]:
    """Scores in deviations from their mean."""
    mean, deviation = spread(scores, len(scores))
    return [(score - mean) / max(deviation, 1e-9) for score in scores]


def sentences_of(found: Sequence[Found]) -> list[Quoted]:
    """Without a reader: the sentences that fit best, each with its share of all."""
    shares = softmax(dict(enumerate(one.score for one in found)))
    return [
        Quoted(one.slot, one.sentence.start, one.sentence.end, shares[number])
        for number, one in enumerate(found[:RANKED])
    ]


class Offer(NamedTuple):
    """What a reader found in a slot, and what is known of it."""

    slot: Slot
    span: Span
    known: Features


def offered(
    reader: Reader | None, question: str, found: Mapping[int, Sequence[Found]], hops: Sequence[Hop]
) -> list[Offer] | None:
    """What a reader finds in each slot; None: there is nothing that it can read.

    A slot that a later hop brought in is read behind the clue that led there: what it says of a
    thing that the question does not name can only be understood with it.
    """
    if reader is None:
        return None
    slots, clues, scores = [], [], []
    for own in (sentences[0].slot for sentences in found.values() if sentences):
        hop = next(hop for hop in reversed(hops) if own.id in hop.scores)
        if not is_chinese(own.passage.text):
            slots.append(own)
            clues.append(f"{hop.clue} " if hop.clue else "")
            scores.append(hop.scores[own.id] - max(hop.scores.values()))
    if not slots:
        return None
    texts = [clue + slot.passage.text for clue, slot in zip(clues, slots)]
    spans = [behind(span, len(clue)) for span, clue in zip(reader.answer(question, texts), clues)]
    known = features(scores, shared(question, texts), spans)
    return [Offer(*own) for own in zip(slots, spans, known)]


def behind(span: Span, clue: int) -> Span:
    """A span of a text as one of what stands behind its first ``clue`` characters, if it does."""
    if span.start >= clue:
        return span._replace(start=span.start - clue, end=span.end - clue)
    return Span(0, 0, 0.0, 1.0)


def spans_of(offers: Sequence[Offer]) -> list[Quoted]:
    """What a reader found, best first, with its confidence.

    The same words in several slots are one answer, as likely as all of them together.
    """
    chances = USUAL.of([own.known for own in offers])
    quotes = [
        Quoted(own.slot, own.span.start, own.span.end, chance)
        for own, chance in zip(offers, chances)
        if own.span.end > own.span.start
    ]
    together: dict[str, Quoted] = {}
    for one in sorted(quotes, key=lambda own: -own.score):
        words = same_words(one.text)
        first = together.get(words)
        together[words] = first._replace(score=first.score + one.score) if first else one
    return sorted(together.values(), key=lambda own: -own.score)[:RANKED]


def same_words(text: str) -> str:
    """The same for answers that differ in capitals and blanks alone."""
    return " ".join(text.casefold().split())


class Said(NamedTuple):
    """All answers to a question, best first, and whether the best one is sure enough."""

    question: str
    kind: Kind
    quotes: Sequence[Quoted]
    sure: bool
    notes: tuple[str, ...]


def shown(store: Store, said: Said, found: Sequence[Found], hops: Sequence[Hop]) -> Answer:
    """The answers with their evidence: first what the best one quotes, then the rest."""
    best = said.quotes[0] if said.sure else None
    if best is not None:
        found = sorted(found, key=best.nearness, reverse=True)
    documents = {one.slot.document: store.document(one.slot.document) for one in found}

    def evidence(one: Found) -> Evidence:
        return as_evidence(one, documents[one.slot.document], hops)

    ranked = []
    for own in said.quotes:
        near = evidence(max(found, key=own.nearness))
        ranked.append(Ranked(start=own.start, end=own.end, score=own.score, evidence=near))
    return Answer(
        question=said.question,
        text=best.text if best else "",
        score=best.score if best else 0.0,
        evidence=tuple(map(evidence, found)),
        start=best.start if best else 0,
        end=best.end if best else 0,
        ranked=tuple(ranked),
        kind=said.kind,
        hops=len(hops),
        looked=hops[0].looked,
        read=len({one.slot.id for one in found}),
        notes=said.notes,
    )


def as_evidence(one: Found, document: Document | None, hops: Sequence[Hop]) -> Evidence:
    assert document is not None, "a slot that is read has a document"
    return Evidence(
        document=document.id,
        name=document.name,
        page=one.slot.passage.page,
        line=one.sentence.line,
        first=one.sentence.first,
        last=one.sentence.last,
        passage=one.slot.passage.text,
        start=one.sentence.start,
        end=one.sentence.end,
        weights=tuple(hop.weights.get(one.slot.id, 0.0) for hop in hops),
        score=one.score,
    )
