"""``mnemic search``: passages of a memory that match words or a question."""

import re
from typing import TYPE_CHECKING, Annotated

from mnemic.cli import options as opt
from mnemic.cli.documents.common import format_citation, open_memory
from mnemic.cli.documents.print_answer import shorten_around
from mnemic.cli.render.console import Styled, print_json, print_styled, print_text, print_warnings
from mnemic.cli.render.format import MAX_PASSAGE_CHARS, join_lines
from mnemic.cli.text_io import read_questions
from mnemic.store.answers import NUM_SHOWN

if TYPE_CHECKING:
    from mnemic.store import Hit

MIN_WEIGHT = 0.005  # a passage of less, without a word of the query, is not shown
INFLECTION = r"(?:s|es|ed|d|ing|'s)?"


def search(
    query: Annotated[str, opt.Argument("QUERY", "Words or a question; - is standard input.")],
    limit: Annotated[int, opt.Option("--limit, -n N", "Maximum number of passages.", minimum=1)] = NUM_SHOWN,
    address: opt.Memory = None,
    inside: opt.Inside = None,
    kind: opt.Kind = None,
    since: opt.Since = None,
    until: opt.Until = None,
) -> None:
    """Find passages in the memory, by their words and by their meaning.

    Example: mnemic search "terms of notice" --limit 3

    Of some documents: mnemic search "notice" --in ~/letters --kind pdf --since 2024
    """
    (query,) = read_questions(query, None)
    with open_memory(address) as memory:
        corrected = memory.correct(query)
        hits = memory.search(corrected, limit, inside=inside, kind=kind, since=since, until=until)
    rows = [hit._asdict() | {"sentences": [sentence._asdict() for sentence in hit.sentences]} for hit in hits]
    print_json({"query": query, "found": rows})
    print_warnings(*([f"read as: {corrected}"] if corrected != query else []))
    pattern = compile_words(corrected)
    visible = [hit for hit in hits if hit.weight >= MIN_WEIGHT or pattern.search(hit.text)]
    for hit in visible:
        print_hit(hit, pattern)
    if not hits:
        print_text("nothing found")
    elif num_hidden := len(hits) - len(visible):
        print_text(f"{num_hidden} more have little to do with it; --json shows them", style="dim")


def compile_words(query: str) -> re.Pattern[str]:
    """Compile a pattern for the words of a query and their commonest endings."""
    from mnemic.store.retrieve.query_words import extract_words

    words = sorted(extract_words(query), key=len, reverse=True)
    if not words:
        return re.compile("(?!)")  # matches nothing
    return re.compile(rf"(?i)\b(?:{'|'.join(map(re.escape, words))}){INFLECTION}\b|{'|'.join(find_chinese(words))}")


def find_chinese(words: list[str]) -> list[str]:
    """Return the words without blanks around them, or a pattern that matches nothing."""
    from mnemic.text.chinese import han_fraction

    return [re.escape(word) for word in words if han_fraction(word)] or ["(?!)"]


def print_hit(hit: "Hit", pattern: re.Pattern[str]) -> None:
    """Print a passage around the words of the query, and where it is."""
    start = next((match.start() for match in [pattern.search(hit.text)] if match), 0)
    line = max((sentence for sentence in hit.sentences if sentence.start <= start), default=hit.sentences[0]).line
    weight = f"  {hit.weight:.2f}" if hit.weight >= MIN_WEIGHT else ""
    print_text(f"{hit.document}  {format_citation(hit.name, hit.page, line)}{weight}", style="bold")
    text = join_lines(hit.text)
    marks = [match.span() for match in pattern.finditer(text)]
    text, marks = shorten_around(text, marks, MAX_PASSAGE_CHARS)
    print_styled(Styled(f"  {text}", "dim", marks=[(start + 2, end + 2) for start, end in marks]))
