"""Answer a question from a memory: retrieve in hops, read, choose.

``read`` reads passages, ``rerank`` orders them by what was read, ``rank`` orders answers.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

from mnemic.store.answer.clauses import rank_clauses
from mnemic.store.answer.confidence import MIN_CONFIDENCE, Reader
from mnemic.store.answer.fields import find_values, get_base_name, merge_values
from mnemic.store.answer.focus import focus_on_times
from mnemic.store.answer.lists import find_items, promote_items
from mnemic.store.answer.rank import (
    SlotSpan,
    make_evidence,
    merge_answers,
    rank_answer,
    score_sentences,
    weigh_sentences,
)
from mnemic.store.answer.read import NOTHING_READ, ReadSlots, find_candidates, read_slots
from mnemic.store.answer.rerank import count_reranked, describe_timeout, list_further_slots, plan_reading, rerank_hop
from mnemic.store.answer.surroundings import read_surroundings
from mnemic.store.answer.when import describe_date, resolve_date
from mnemic.store.answers import Answer, OnFound, ignore_found
from mnemic.store.contract import StoreError
from mnemic.store.relational import Store
from mnemic.store.retrieve.embedders import Embedder
from mnemic.store.retrieve.filters import NO_FILTERS, Filters
from mnemic.store.retrieve.hybrid import Hop, read_hop
from mnemic.store.retrieve.languages import select_model
from mnemic.store.retrieve.spelling import correct_spelling

DEFAULT_HOPS = 1
WORDS_NOTE = "the embedder does not know this language: the memory was read by words alone"
CLAUSE_NOTE = "the reader does not know this language: an answer is the clause that fits best"
DEFAULT_PASSAGES = 5  # passages per hop that are read sentence by sentence


class AskOptions(NamedTuple):
    """Options of a question: what is read, how it is ranked, and what is answered.

    ``rerank`` passages of the last hop are read and ranked anew, and the best ``passages`` of them
    are used. None: as few as answer, at most three times as many as are used. 0, or a timeout of
    0: the order of retrieval.
    """

    hops: int = DEFAULT_HOPS
    passages: int = DEFAULT_PASSAGES
    bm25_weight: float | None = None
    confidence: float = MIN_CONFIDENCE
    filters: Filters = NO_FILTERS
    rerank: int | None = None
    rerank_timeout_s: float | None = None

    def check(self) -> "AskOptions":
        """Return the options, or raise ``StoreError`` if one is out of range."""
        if self.hops < 1 or self.passages < 1:
            raise StoreError(f"hops and passages are at least 1, not {self.hops}, {self.passages}")
        for name, number in (("number of passages to rerank", self.rerank), ("time for it", self.rerank_timeout_s)):
            if number is not None and not number >= 0:
                raise StoreError(f"the {name} is at least 0, not {number}")
        for name, value in (("lexical share", self.bm25_weight), ("confidence", self.confidence)):
            if value is not None and not 0 <= value <= 1:
                raise StoreError(f"the {name} is between 0 and 1, not {value}")
        return self


class RetrievedMemory(NamedTuple):
    """What was retrieved from a memory, hop by hop, and what was read of it."""

    hops: list[Hop]
    sentences_by_slot: dict[int, list[SlotSpan]]
    names: dict[int, str]  # of the documents
    read: ReadSlots

    def select_last(self, sentences: Sequence[SlotSpan], top_k: int) -> list[SlotSpan]:
        """Select the sentences of the last hop's best slots; all without any."""
        last_slots = self.hops[-1].top_slots(top_k) or self.sentences_by_slot
        return [sentence for sentence in sentences if sentence.slot.id in last_slots]


def check_question(question: str, noun: str = "question", example: str = "Who wrote it?") -> None:
    """Raise ``StoreError`` if a question, or what ``noun`` says, is empty."""
    if not question.strip():
        raise StoreError(f"the {noun} is empty; give for example {example!r}")


def answer_question(
    store: Store,
    embedder: Embedder | None,
    reader: Reader | None,
    question: str,
    options: AskOptions,
    on_found: OnFound = ignore_found,
) -> Answer:
    """Answer a question with a span of a passage, and all sentences as evidence."""
    check_question(question)
    notes = []
    active_embedder, active_reader = select_model(embedder, question), select_model(reader, question)
    if active_embedder is not embedder:
        notes.append(WORDS_NOTE)
    query = correct_spelling(store, question)
    if query != question:
        notes.append(f"read as: {query}")
    hops, sentences_by_slot = retrieve_in_hops(
        store, active_embedder, query, options.check(), rank_last_hop=active_reader is None
    )
    if options.filters != NO_FILTERS and not hops[0].num_slots:
        notes.append(f"no document fits: {options.filters}; leave one out")
    if on_found is not ignore_found:
        on_found(make_evidence(store, sort_sentences(sentences_by_slot), hops, options.filters))
    memory = read_memory(store, active_reader, query, hops, sentences_by_slot, options)
    hops, sentences = memory.hops, sort_sentences(memory.sentences_by_slot)
    if memory.read.num_unread:
        notes.append(describe_timeout(memory.read.num_unread, options.rerank_timeout_s or 0.0))
    items: list[SlotSpan] = []
    if memory.read.inputs:
        answers, items = choose_spans(store, active_reader, query, memory)
    elif reader:
        answers = rank_clauses(query, memory.select_last(sentences, options.passages), hops[-1].scores)
        notes += [CLAUSE_NOTE] if sentences else []
    else:
        answers = weigh_sentences(memory.select_last(sentences, options.passages))
    best = answers[0] if answers and answers[0].score >= (options.confidence if reader else 0.0) else None
    if best:
        sentences.sort(key=best.score_evidence, reverse=True)
    evidence = make_evidence(store, sentences, hops, options.filters)
    date = resolve_date(store, query, best, hops, options.filters)
    return Answer(
        question=question,
        text=best.text if best else "",
        score=best.score if best else 0.0,
        evidence=tuple(evidence),
        start=best.start if best else 0,
        end=best.end if best else 0,
        ranked=tuple(rank_answer(answer, sentences, evidence) for answer in answers),
        kind="sentence" if reader is None else "span",
        hops=len(hops),
        looked=hops[0].num_slots,
        read=len({sentence.slot.id for sentence in sentences}),
        notes=(*notes, *describe_date(date)),
        date=date,
        items=tuple(rank_answer(item, sentences, evidence) for item in items if best),
    )


def sort_sentences(sentences_by_slot: Mapping[int, Sequence[SlotSpan]]) -> list[SlotSpan]:
    """Sort all sentences of slots, the best first."""
    return sorted(chain.from_iterable(sentences_by_slot.values()), key=lambda sentence: -sentence.score)


def choose_spans(
    store: Store, reader: Reader | None, question: str, memory: RetrievedMemory
) -> tuple[list[SlotSpan], list[SlotSpan]]:
    """Choose answers among a reader's spans, and the items of a list."""
    spans = find_candidates(question, memory.read)
    candidates = focus_on_times(question, spans, partial(read_surroundings, store)) or []
    slots_by_id = {candidate.slot.id: candidate.slot for candidate, _ in candidates}
    values = find_values(question, slots_by_id.values(), memory.names)
    answers = merge_values(merge_answers(candidates), values)
    slots = [sentences[0].slot for sentences in memory.sentences_by_slot.values() if sentences]
    items = find_items(question, answers, slots, memory.names, reader)
    return promote_items(items, answers), items


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
    clue, document_ids = "", store.find_documents(options.filters)
    for number in range(options.hops):
        query = f"{question} {clue}".strip()
        hop = read_hop(
            store,
            embedder,
            query,
            bm25_weight=options.bm25_weight,
            excluded=list(sentences_by_slot),
            document_ids=document_ids,
        )
        needs_vectors = rank_last_hop or number + 1 < options.hops
        sentence_embedder = embedder if needs_vectors else None
        new_sentences = score_sentences(store, sentence_embedder, hop, options.passages, options.bm25_weight)
        hops.append(hop._replace(clue=clue))
        sentences_by_slot |= new_sentences
        if not new_sentences:
            break
        clue = max(chain.from_iterable(new_sentences.values()), key=lambda sentence: sentence.score).text
    return hops, sentences_by_slot


def read_memory(
    store: Store,
    reader: Reader | None,
    question: str,
    hops: list[Hop],
    sentences_by_slot: dict[int, list[SlotSpan]],
    options: AskOptions,
) -> RetrievedMemory:
    """Read the retrieved slots and further ones of the last hop, and rerank that.

    Of the last hop only the best are left, as many as without reranking.
    """
    slots = [sentences[0].slot for sentences in sentences_by_slot.values() if sentences]
    num_reranked = count_reranked(options.passages, options.rerank, options.rerank_timeout_s)
    further = list_further_slots(store, hops[-1], options.passages, num_reranked) if reader else []
    documents = {slot.document: store.get_document(slot.document) for slot in (*slots, *further)}
    names = {document.id: get_base_name(document.name) for document in documents.values() if document}
    if reader is None:
        return RetrievedMemory(hops, sentences_by_slot, names, NOTHING_READ)
    plan = plan_reading(
        len(slots), len(further), rerank=options.rerank, timeout_s=options.rerank_timeout_s, num_hops=len(hops)
    )
    read = read_slots(reader, question, [*slots, *further], hops, names, plan)
    if options.rerank == 0 or options.rerank_timeout_s == 0 or not read.inputs:
        return RetrievedMemory(hops, sentences_by_slot, names, read)
    last = rerank_hop(hops[-1], read.score_slots())
    earlier = {slot_id: sentences for slot_id, sentences in sentences_by_slot.items() if slot_id not in last.scores}
    best = score_sentences(store, None, last, options.passages, options.bm25_weight)
    read_best = read.select({*earlier, *best})._replace(num_unread=read.num_unread)
    return RetrievedMemory([*hops[:-1], last], earlier | best, names, read_best)
