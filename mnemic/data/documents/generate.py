"""Generate documents of several forms with questions, some of which have no answer."""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from mnemic.data.contract import Split
from mnemic.data.documents.cards import write_cards
from mnemic.data.documents.dialogues import write_dialogue
from mnemic.data.documents.facts import write_facts
from mnemic.data.documents.lists import write_lists
from mnemic.data.documents.pools import SplitSampler
from mnemic.data.documents.tables import write_table
from mnemic.data.documents.writer import DocumentWriter, GeneratedDocument, GeneratedQuestion

DOCUMENT_TYPES: Mapping[str, Callable[[SplitSampler, DocumentWriter], list[GeneratedQuestion]]] = {
    "dialogue": write_dialogue,
    "list": write_lists,
    "card": write_cards,
    "table": write_table,
    "fact": write_facts,
}
STOPS_SHARE = 0.7  # of documents, whose lines end with stops as in ``Passage.mark_units``


def generate_documents(
    split: Split, count: int, *, seed: int = 0, forms: Sequence[str] = tuple(DOCUMENT_TYPES)
) -> list[GeneratedDocument]:
    """Generate ``count`` documents; splits share no names, values or wordings of questions.

    Forms take turns. The document with a number depends on split, seed and number alone.

    >>> document = generate_documents("train", 1, forms=["table"])[0]
    >>> print(document.text)
    >>> print(document.questions[0].question)
    """
    return [generate_document(split, number, seed, forms[number % len(forms)]) for number in range(count)]


def generate_document(split: Split, number: int, seed: int, form: str) -> GeneratedDocument:
    """Generate one document of a form."""
    sampler = SplitSampler(split, Random(f"documents/{split}/{seed}/{number}"))
    writer = DocumentWriter(ends_lines_with_period=sampler.flip(STOPS_SHARE))
    questions = DOCUMENT_TYPES[form](sampler, writer)
    return GeneratedDocument(writer.text, form, tuple(questions))
