"""Turn generated documents into examples of questions about texts."""

from collections.abc import Iterator, Sequence

from mnemic.data.contract import Split
from mnemic.data.documents.generate import DOCUMENT_TYPES, generate_documents
from mnemic.data.documents.writer import GeneratedDocument
from mnemic.data.text_tasks.examples import QuestionExample

DOMAIN = "generated {form}"


def generate_questions(
    split: Split, count: int, *, seed: int = 0, forms: Sequence[str] = tuple(DOCUMENT_TYPES)
) -> list[QuestionExample]:
    """Generate the questions of ``count`` documents."""
    documents = generate_documents(split, count, seed=seed, forms=forms)
    return [
        example for number, document in enumerate(documents) for example in convert_document(document, split, number)
    ]


def convert_document(document: GeneratedDocument, split: Split, number: int) -> Iterator[QuestionExample]:
    """Convert the questions of a document into examples."""
    for position, (question, spans, _) in enumerate(document.questions):
        starts = tuple(start for start, _ in spans)
        yield QuestionExample(
            question=question,
            text=document.text,
            answers=tuple(document.text[start:end] for start, end in spans),
            start=starts[0] if starts else -1,
            question_id=f"{split}-{number}-{position}",
            domain=DOMAIN.format(form=document.form),
            needs_all=len(spans) > 1,
            answer_starts=starts,
        )
