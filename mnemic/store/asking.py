"""Ask a memory: read it in hops, let a reader answer from what was found, show the evidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from mnemic.store.contract import Document, Slot, Store, StoreError
from mnemic.store.embed import Embedder
from mnemic.store.lexical import words_of
from mnemic.store.reading import Hop, read, share, softmax, spread
from mnemic.text.chinese import share_of_han
from mnemic.text.documents import Sentence
from mnemic.text.sentences import CHINESE_FROM

HOPS = 1
READ = 5  # passages that are read sentence by sentence, each hop
NONE = 0.5  # from this probability of no answer on, there is none


class Span(NamedTuple):
    """A stretch of a passage that answers, and how sure the reader is."""

    start: int
    end: int
    score: float  # the probability of this span
    none: float  # the probability that the passage has no answer


class Reader(Protocol):
    """R of the frame: a question and passages → the best span of each."""

    def answer(self, question: str, passages: Sequence[str]) -> list[Span]: ...


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A sentence that was read, where it stands, and how much each hop read of its passage."""

    document: int  # the id that `forget` and `update` take
    name: str  # of the document: its path, or its title
    page: int | None
    line: int  # of the original; 0: it has no lines
    first: int  # character offsets in the original
    last: int
    passage: str
    start: int  # of the sentence, in the passage
    end: int
    weights: tuple[float, ...]  # one a hop
    score: float

    @property
    def sentence(self) -> str:
        """The exact words."""
        return self.passage[self.start : self.end]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the memory says to a question; without a reader, the sentence that fits best."""

    question: str
    text: str  # verbatim; empty: no answer
    score: float  # how sure the reader is; without one, the sentence's share of all that were read
    evidence: tuple[Evidence, ...]  # best first; the answer is a quotation of the first
    start: int  # of the answer, in the passage of the first evidence
    end: int
    hops: int
    looked: int  # passages in memory, all of which were looked at
    read: int  # passages that were read sentence by sentence
    notes: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        return bool(self.text)


class Asking(NamedTuple):
    """How a memory is read; nothing here changes what it holds."""

    hops: int = HOPS
    passages: int = READ
    lexical: float | None = None
    none: float = NONE

    def check(self) -> "Asking":
        if self.hops < 1 or self.passages < 1:
            raise StoreError(f"hops and passages are at least 1, not {self.hops}, {self.passages}")
        if self.lexical is not None and not 0 <= self.lexical <= 1:
            raise StoreError(f"the lexical share is between 0 and 1, not {self.lexical}")
        return self


class Found(NamedTuple):
    """A sentence of a slot, scored."""

    slot: Slot
    sentence: Sentence
    score: float

    @property
    def text(self) -> str:
        return self.slot.passage.text[self.sentence.start : self.sentence.end]


def ask(
    store: Store,
    embedder: Embedder | None,
    reader: Reader | None,
    question: str,
    how: Asking,
) -> Answer:
    """Answer with a stretch of one passage, and show every sentence that came into question."""
    if not question.strip():
        raise StoreError("the question is empty; ask for example 'Who wrote it?'")
    notes = []
    if embedder is not None and share_of_han(question) >= CHINESE_FROM:
        embedder = None
        notes.append("the question is Chinese: the memory was read by its words alone")
    hops: list[Hop] = []
    found: dict[int, list[Found]] = {}  # slot → its sentences
    query = question
    for _ in range(how.check().hops):
        hop = read(store, embedder, query, lexical=how.lexical, besides=list(found))
        fresh = sentences_read(store, embedder, hop, how)
        hops.append(hop)
        found |= fresh
        if not fresh:
            break
        best = max((one for own in fresh.values() for one in own), key=lambda one: one.score)
        query = f"{question} {best.text}"
    last = hops[-1].best(how.passages) or [slot for hop in hops for slot in hop.best(how.passages)]
    ranked = sorted((one for own in found.values() for one in own), key=lambda one: -one.score)
    answer = quoted(reader, question, [one for one in ranked if one.slot.id in last], how, hops)
    return shown(store, question, answer, ranked, hops, tuple(notes))


def sentences_read(
    store: Store, embedder: Embedder | None, hop: Hop, how: Asking
) -> dict[int, list[Found]]:
    """The sentences of the best slots: the slot's score, and how well each fits by itself."""
    slots = store.slots(hop.best(how.passages))
    pairs = [(slot, sentence) for slot in slots for sentence in slot.passage.sentences]
    texts = [slot.passage.text[one.start : one.end] for slot, one in pairs]
    wanted = set(words_of(hop.query))
    shared = [len(wanted.intersection(words_of(text))) / max(len(wanted), 1) for text in texts]
    words = share(embedder, how.lexical)
    fit = [words * score for score in standard(shared)]
    if embedder is not None and texts:
        vectors = embedder.embed([hop.query, *texts])
        near = standard((vectors[1:] @ vectors[0]).tolist())
        fit = [own + (1 - words) * other for own, other in zip(fit, near)]
    found: dict[int, list[Found]] = {slot.id: [] for slot in slots}
    for (slot, sentence), own in zip(pairs, fit):
        found[slot.id].append(Found(slot, sentence, hop.scores[slot.id] + own))
    return found


def standard(scores: Sequence[float]) -> list[float]:
    """Scores in deviations from their mean."""
    mean, deviation = spread(scores, len(scores))
    return [(score - mean) / max(deviation, 1e-9) for score in scores]


class Quoted(NamedTuple):
    """An answer, as a stretch of a slot's passage."""

    slot: int
    start: int
    end: int
    score: float

    def nearness(self, one: Found) -> tuple[bool, bool, float]:
        """What makes a sentence evidence: it is quoted, it is from the same slot, it fits."""
        own = one.slot.id == self.slot
        return own, own and one.sentence.start <= self.start < one.sentence.end, one.score


def quoted(
    reader: Reader | None, question: str, ranked: Sequence[Found], how: Asking, hops: Sequence[Hop]
) -> Quoted | None:
    """The reader's best span of all slots, weighed by how much each was read; or a sentence."""
    if not ranked:
        return None
    if reader is None:
        shares = softmax(dict(enumerate(one.score for one in ranked)))
        best = ranked[0]
        return Quoted(best.slot.id, best.sentence.start, best.sentence.end, shares[0])
    slots = list({one.slot.id: one.slot for one in ranked}.values())
    spans = reader.answer(question, [slot.passage.text for slot in slots])
    weights = softmax({slot.id: hops[-1].scores.get(slot.id, 0.0) for slot in slots})
    slot, span = max(zip(slots, spans), key=lambda pair: weights[pair[0].id] * pair[1].score)
    if span.none >= how.none or span.end <= span.start:
        return None
    return Quoted(slot.id, span.start, span.end, span.score)


def shown(
    store: Store,
    question: str,
    answer: Quoted | None,
    ranked: Sequence[Found],
    hops: Sequence[Hop],
    notes: tuple[str, ...],
) -> Answer:
    """The answer with its evidence: first what it quotes, then the rest, best first."""
    if answer is not None:
        ranked = sorted(ranked, key=answer.nearness, reverse=True)
    documents = {one.slot.document: store.document(one.slot.document) for one in ranked}
    evidence = tuple(as_evidence(one, documents[one.slot.document], hops) for one in ranked)
    text = ranked[0].slot.passage.text[answer.start : answer.end] if answer else ""
    return Answer(
        question=question,
        text=text,
        score=answer.score if answer else 0.0,
        evidence=evidence,
        start=answer.start if answer else 0,
        end=answer.end if answer else 0,
        hops=len(hops),
        looked=hops[0].looked,
        read=len({one.slot.id for one in ranked}),
        notes=notes,
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
