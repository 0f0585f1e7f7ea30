"""Describe documents, evidence and answers as the API shows them."""

from datetime import UTC, datetime
from typing import Any

from mnemic.store.answers import (
    Answer,
    Evidence,
    Hit,
    RankedAnswer,
    ResolvedDate,
    evidence_to_dict,
    format_citation,
    ranked_to_dict,
)
from mnemic.store.contract import Document, HistoryEvent, MemorySlot
from mnemic.store.relational import Store
from mnemic.web.files import PlaceName, ServedFiles
from mnemic.web.memories import ServedMemory
from mnemic.web.schemas.answers import AnswerInfo, DateInfo, EvidenceInfo, HitInfo, RankedInfo
from mnemic.web.schemas.documents import DocumentInfo, EventInfo, MemoryInfo, PassageInfo, SentenceInfo, to_box

PAGED_KINDS = {"pdf", "picture", "pptx"}
CONFIDENCE_WORDS = ((0.9, "almost certain"), (0.7, "likely"), (0.5, "more likely than not"), (0.25, "doubtful"))
LEAST_WORDS = "a guess"
NO_ANSWER_WORDS = "no answer"
WEIGHT_WORDS = ((0.5, "read most"), (0.1, "read closely"), (0.01, "read a little"))
LEAST_WEIGHT_WORDS = "hardly read"


def clean(text: str) -> str:
    """Replace lone surrogates, which file names can have and JSON cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")


def put_in_words(value: float, words: tuple[tuple[float, str], ...], default: str) -> str:
    """Put a probability or a weight in words."""
    return next((text for bound, text in words if value >= bound), default)


def describe_memory(served: ServedMemory, *, is_default: bool) -> MemoryInfo:
    """Describe a memory; one that was not created yet has nothing in it."""
    memory, fields = served.memory, {"documents": 0, "passages": 0, "bytes": 0}
    exists = memory.exists()
    if exists:
        stats = memory.stats()
        fields = {"documents": stats.documents, "passages": stats.passages, "bytes": stats.bytes}
    model = memory.store.get_model() if exists else None
    return MemoryInfo(
        id=served.name,
        name=served.name,
        **fields,
        embedder=model.name if model else None,
        model_is_current=not exists or served.is_model_current(),
        is_default=is_default,
    )


def describe_fields(served: ServedMemory, document: Document) -> dict[str, Any]:
    """Describe a document, all but its versions."""
    store, files = served.memory.store, served.files
    origin = files.describe_document(document)
    record = store.get_file_record(document.places[0]) if document.places else None
    modified = datetime.fromtimestamp(record.modified_ns / 1e9, UTC) if record else None
    return {
        "id": document.id,
        "name": clean(origin.name),
        "title": clean(document.title),
        "kind": document.kind,
        "bytes": record.size if record else document.characters,
        "pages": find_last_page(store, document),
        "passages": document.passages,
        "remembered_at": document.remembered,
        "modified_at": modified.isoformat(timespec="seconds") if modified else None,
        "is_active": document.retired is None,
        "source": origin.source,
        "has_original": files.find_original(store, document) is not None,
        "notes": [clean(note) for note in document.notes],
    }


def describe_document(served: ServedMemory, document: Document, num_versions: int | None = None) -> DocumentInfo:
    """Describe a document."""
    if num_versions is None:
        has_others = document.previous is not None or document.retired is not None
        num_versions = len(served.memory.store.list_versions(document.id)) if has_others else 1
    return DocumentInfo(**describe_fields(served, document), versions=num_versions)


def find_last_page(store: Store, document: Document) -> int | None:
    """Return the page of a document's last passage; None if it has no pages."""
    if document.kind not in PAGED_KINDS:
        return None
    slots = store.read_slots("WHERE document = ? AND number = ?", document.id, document.passages - 1)
    return slots[0].passage.page if slots else None


def describe_event(files: ServedFiles, event: HistoryEvent) -> EventInfo:
    """Describe an event of a document's history."""
    note = clean(files.describe_place(event.path).name) if event.path else ""
    return EventInfo(time=event.at, kind=event.what, note=note, document=event.document)


def describe_passage(slot: MemorySlot) -> PassageInfo:
    """Describe a passage."""
    _, page, sentences, boxes = slot.passage
    return PassageInfo(
        id=slot.id,
        page=page,
        text=clean(slot.passage.text),
        sentences=[SentenceInfo(**sentence._asdict()) for sentence in sentences],
        boxes=[to_box(box) for box in boxes],
    )


class AnswerWriter:
    """Describes answers of one memory; each document is looked up once."""

    def __init__(self, served: ServedMemory) -> None:
        self.store, self.files = served.memory.store, served.files
        self.documents: dict[int, Document | None] = {}

    def get_kind(self, document_id: int) -> str:
        """Return the kind of a document; empty if it was forgotten meanwhile."""
        if document_id not in self.documents:
            self.documents[document_id] = self.store.get_document(document_id)
        document = self.documents[document_id]
        return document.kind if document else ""

    def describe_name(self, document_id: int, name: str) -> PlaceName:
        """Name a document of an answer, and say where it is from."""
        if self.get_kind(document_id) == "note":
            return PlaceName(name, "note")
        return self.files.describe_place(name)

    def describe_evidence(self, evidence: Evidence) -> EvidenceInfo:
        """Describe a sentence that was read."""
        name, source = self.describe_name(evidence.document, evidence.name)
        fields = evidence_to_dict(evidence) | {"name": clean(name), "sentence": clean(evidence.sentence)}
        return EvidenceInfo(
            **fields,
            passage=evidence.slot,
            kind=self.get_kind(evidence.document),
            source=source,
            place=clean(format_citation(name, evidence.page, evidence.line)),
            confidence_words=put_in_words(max(evidence.weights, default=0.0), WEIGHT_WORDS, LEAST_WEIGHT_WORDS),
        )

    def describe_answer(self, answer: Answer, seconds: float) -> AnswerInfo:
        """Describe an answer with its evidence."""
        evidence = [self.describe_evidence(row) for row in answer.evidence]
        best = evidence[0] if answer.has_answer else None
        words = put_in_words(answer.score, CONFIDENCE_WORDS, LEAST_WORDS) if best else NO_ANSWER_WORDS
        return AnswerInfo(
            question=clean(answer.question),
            answer=clean(answer.text) or None,
            line=answer.line or None,
            box=answer.box,
            score=answer.score,
            confidence_words=words,
            evidence=evidence,
            start=answer.start,
            end=answer.end,
            ranked=[self.describe_ranked(candidate) for candidate in answer.ranked],
            items=[self.describe_ranked(item) for item in answer.items],
            date=self.describe_date(answer.date) if answer.date else None,
            kind=answer.kind,
            hops=answer.hops,
            looked=answer.looked,
            read=answer.read,
            notes=[clean(note) for note in answer.notes],
            place=format_citation(best.name, best.page, answer.line) if best else "",
            seconds=round(seconds, 4),
        )

    def describe_ranked(self, candidate: RankedAnswer) -> RankedInfo:
        """Describe one of several answers, or an item of a list."""
        fields = ranked_to_dict(candidate) | {"evidence": self.describe_evidence(candidate.evidence)}
        words = put_in_words(candidate.score, CONFIDENCE_WORDS, LEAST_WORDS)
        return RankedInfo(**fields | {"answer": clean(candidate.text)}, confidence_words=words)

    def describe_date(self, date: ResolvedDate) -> DateInfo:
        """Describe the date of a relative time, and what it is counted from."""
        anchor = date.anchor
        return DateInfo(
            words=clean(date.words),
            start=date.start,
            end=date.end,
            iso=date.iso,
            text=date.text,
            source=date.source,
            anchor=clean(anchor.text) if anchor else None,
            anchor_start=anchor.start if anchor else None,
            anchor_end=anchor.end if anchor else None,
            anchor_evidence=self.describe_evidence(anchor.evidence) if anchor else None,
        )

    def describe_hit(self, hit: Hit) -> HitInfo:
        """Describe a passage that a search found."""
        name, source = self.describe_name(hit.document, hit.name)
        line = hit.sentences[0].line
        return HitInfo(
            passage=hit.slot,
            document=hit.document,
            name=clean(name),
            kind=self.get_kind(hit.document),
            source=source,
            place=clean(format_citation(name, hit.page, line)),
            page=hit.page,
            line=line,
            text=clean(hit.text),
            sentences=[SentenceInfo(**sentence._asdict()) for sentence in hit.sentences],
            weight=hit.weight,
            score=hit.score,
            box=hit.box,
        )
