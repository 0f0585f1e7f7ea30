"""Generate tables as a memory stores them, and questions about their cells.

A row is "Item: tea; Price: 3.50; Due: 2026-03-01". Some questions ask for all rows with a value.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mnemic.data.documents import pools
from mnemic.data.documents.cards import make_date
from mnemic.data.documents.pools import SplitSampler, split_phrases
from mnemic.data.documents.writer import DocumentWriter, GeneratedQuestion, Spans, ask_question

MIN_ROWS, MAX_ROWS, MAX_GROUP = 3, 9, 5


class Column(NamedTuple):
    """A column beside the names of the rows."""

    names: Sequence[str]
    make_value: Callable[[SplitSampler], str]
    questions: Sequence[str]  # for the cell of ``{row}``
    groups: Sequence[str] = ()  # for all rows that have ``{value}``


class TableKind(NamedTuple):
    """The words of one kind of table."""

    rows: Sequence[str]
    names: Sequence[str]  # of the first column
    columns: Sequence[Column]


DAYS = split_phrases("Monday | Tuesday | Wednesday | Thursday | Friday | Saturday | Sunday | every day")
ROOMS = split_phrases(
    """kitchen | cellar | garage | attic | bathroom | hall | study | shed | bedroom | balcony | workshop
            | living room"""
)
PRICE = Column(
    split_phrases("Price | Cost | Amount | EUR | Paid | Sum | Value | Charge"),
    lambda sampler: sampler.draw_amount(2, 900),
    split_phrases(
        """How much does the {row} cost? | What is the price of the {row}? | What was paid for the {row}? |
            How much is the {row}? | What is the cost of the {row}? | How expensive is the {row}? | What does
            the {row} cost? | What amount stands beside the {row}?"""
    ),
)
ROOM = Column(
    split_phrases("Room | Where | Stored in | Location | Place | Kept in | Position | Found in"),
    lambda sampler: sampler.choose(ROOMS),
    split_phrases(
        """Where is the {row}? | In which room is the {row}? | Where do we keep the {row}? | What is the
            location of the {row}? | In what room does the {row} stand? | Where can I find the {row}? | Where
            is the {row} stored? | Which room has the {row}?"""
    ),
    split_phrases(
        """What is in the {value}? | Which things are kept in the {value}? | What do we have in the {value}?
            | Which items are in the {value}? | What does the {value} contain? | What can be found in the
            {value}? | Which objects stand in the {value}? | What is stored in the {value}?"""
    ),
)
DATE = Column(
    split_phrases("Date | Bought | Purchased on | Since | Acquired | Year | Day | When"),
    make_date,
    split_phrases(
        """When was the {row} bought? | Since when do we have the {row}? | On what date was the {row}
            purchased? | When did we get the {row}? | What is the date of the {row}? | When was the {row}
            acquired? | On which day did the {row} come? | What day was the {row} bought?"""
    ),
)
WEEKDAY = Column(
    split_phrases("Day | Weekday | When | Shift | On | Works on | Turn | Duty"),
    lambda sampler: sampler.choose(DAYS),
    split_phrases(
        """When does {row} work? | On which day is {row} there? | What is {row}'s day? | When is it {row}'s
            turn? | On what day does {row} have duty? | Which day does {row} have? | What day is {row} on? |
            When is {row} on duty?"""
    ),
    split_phrases(
        """Who works on {value}? | Who is there on {value}? | Which people are on duty on {value}? | Who has
            a shift on {value}? | Who is on duty on {value}? | Whose day is {value}? | Which persons work on
            {value}? | Who comes on {value}?"""
    ),
)
TOWN = Column(
    split_phrases("City | Town | Office | From | Branch | Based in | Site | Home town"),
    lambda sampler: sampler.choose(pools.CITIES),
    split_phrases(
        """Where is {row} based? | In which city is {row}? | What is {row}'s town? | Which office does {row}
            belong to? | In what city does {row} work? | From which city is {row}? | Where does {row} come
            from? | What city is {row} in?"""
    ),
    split_phrases(
        """Who is based in {value}? | Who works in {value}? | Which people are in {value}? | Who belongs to
            the office in {value}? | Who comes from {value}? | Which persons are in {value}? | Who is in
            {value}? | Whose city is {value}?"""
    ),
)
TRADE = Column(
    split_phrases("Job | Role | Position | Function | Title | Task | Profession | Duty"),
    lambda sampler: sampler.choose(pools.JOBS),
    split_phrases(
        """What is {row}'s job? | What does {row} do? | What role does {row} have? | What is the profession
            of {row}? | As what is {row} employed? | What is the position of {row}? | What kind of work does
            {row} do? | What is {row}'s title?"""
    ),
)
TABLE_KINDS = (
    TableKind(
        pools.THINGS,
        split_phrases("Item | Thing | Article | Object | What | Name | Product | Device"),
        (PRICE, ROOM, DATE),
    ),
    TableKind(
        pools.FIRST_NAMES,
        split_phrases("Name | Person | Who | Employee | Colleague | First name | Member | Helper"),
        (WEEKDAY, TOWN, TRADE),
    ),
)


def write_table(sampler: SplitSampler, writer: DocumentWriter) -> list[GeneratedQuestion]:
    """Write a table, and ask for cells and for the rows with a value."""
    kind = sampler.generator.choice(TABLE_KINDS)
    num_rows = sampler.generator.randint(MIN_ROWS, min(MAX_ROWS, len(pools.select_pool(kind.rows, sampler.split)) - 1))
    *rows, missing = sampler.sample(kind.rows, num_rows + 1)
    columns = sampler.generator.sample(kind.columns, sampler.generator.randint(2, len(kind.columns)))
    headers = distinct_headers(sampler, kind, columns)
    separator = sampler.generator.choice(("; ", "; ", " | "))
    template = separator.join(f"{header}: {{{name}}}" for name, header in headers.items())
    values = [draw_values(sampler, column, num_rows) for column in columns]
    cells: list[dict[str, Spans]] = []
    for number, row in enumerate(rows):
        names = {f"column{index}": column_values[number] for index, column_values in enumerate(values)}
        cells.append(writer.add_line(template, row=row, **names))
    questions: list[GeneratedQuestion] = []
    for index, (column, column_values) in enumerate(zip(columns, values)):
        for number in sampler.generator.sample(range(num_rows), 2):
            spans = cells[number][f"column{index}"]
            questions.append(ask_question(sampler.choose(column.questions), spans, row=rows[number]))
        questions += ask_for_rows(sampler, column, column_values, cells)
    column = sampler.generator.choice(columns)
    questions.append(ask_question(sampler.choose(column.questions), row=missing))
    if hidden := [column for column in kind.columns if column not in columns]:
        questions.append(ask_question(sampler.choose(hidden[0].questions), row=sampler.generator.choice(rows)))
    return questions


def distinct_headers(sampler: SplitSampler, kind: TableKind, columns: Sequence[Column]) -> dict[str, str]:
    """Draw the header of each column; no two are equal."""
    headers = {"row": sampler.choose(kind.names)}
    for index, column in enumerate(columns):
        names = [name for name in pools.select_pool(column.names, sampler.split) if name not in headers.values()]
        headers[f"column{index}"] = sampler.generator.choice(names)
    return headers


def draw_values(sampler: SplitSampler, column: Column, count: int) -> list[str]:
    """Draw the values of a column; those that are asked by value repeat."""
    if not column.groups:
        return [column.make_value(sampler) for _ in range(count)]
    values = [column.make_value(sampler) for _ in range(max(count // 3, 1))]
    return [sampler.generator.choice(values) for _ in range(count)]


def ask_for_rows(
    sampler: SplitSampler, column: Column, values: Sequence[str], cells: Sequence[dict[str, Spans]]
) -> list[GeneratedQuestion]:
    """Ask which rows have a value, and for a value that none has.

    More than ``MAX_GROUP`` rows are not asked for.
    """
    if not column.groups:
        return []
    value = sampler.generator.choice(values)
    spans = tuple(cell["row"][0] for cell, cell_value in zip(cells, values) if cell_value == value)
    questions: list[GeneratedQuestion] = []
    if len(spans) <= MAX_GROUP:
        questions.append(ask_question(sampler.choose(column.groups), spans, value=value))
    if (missing := column.make_value(sampler)) not in values:
        questions.append(ask_question(sampler.choose(column.groups), value=missing))
    return questions
