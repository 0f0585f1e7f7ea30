"""Turn the glyphs of a PDF page into lines of text: words, columns, paragraphs.

A PDF has no words, only glyphs with positions. A gap between two glyphs is a space, a wide one the
border of a table cell or of a column. A line ends a unit if the next word would have fit on it.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from mnemic.text.documents.office.fragment import Fragment
from mnemic.text.documents.office.page_tables import name_tables

# Gaps and distances are in ems: the height of the glyph's line box.
SPACE_GAP = 0.13  # a wider gap between two glyphs is a space
NO_GAP = 0.02  # a space between two glyphs with less room than this is none
CELL_GAP = 1.5  # a wider one separates cells or columns
BACK_JUMP = -3.0  # a jump back to the left of more than this begins a line
PARAGRAPH_GAP = 0.65  # white space between lines of two paragraphs
HEADING_RATIO = 1.15  # of the heights of two lines of which one is a heading
SLACK = 3.0  # room that a line may leave before one that begins in lower case
MIN_COLUMN_LINES = 5
MAX_FRAGMENTS = 2_000  # of a page that has columns
MIN_COLUMN_LENGTH = 20  # characters of a column's lines, on average; Chinese counts twice
MIN_PROSE_FRACTION = 0.3  # of a column's lines that go on in lower case
HYPHEN = "\xad"  # stands for a hyphen at the end of a line
_HYPHEN_MARKS = "\x02\ufffe\xad"  # pdfium marks such hyphens by the first two
_BULLET = re.compile(r"[•◦▪‣⁃●○■□–—*-]\s|\(?\d{1,3}[.)]\s|\(?[a-z]\)\s")
_FIRST_WORD = re.compile(r"[\u2e80-\uffef]|[^\s\u2e80-\uffef]+")
_HAN = re.compile(r"[\u2e80-\uffef]")


class Glyph(NamedTuple):
    """A character and its box in points; a generated one has an empty box."""

    char: str
    x_min: float
    y_min: float
    x_max: float
    y_max: float


class Line(NamedTuple):
    """A line of a page as it is read, and the gap after it.

    The gap is a blank inside a paragraph, "\\n" between units, "\\n\\n" between paragraphs.
    """

    text: str
    gap: str
    bounds: tuple[float, float, float, float] | None = None  # x_min, y_min, x_max, y_max
    is_row: bool = False  # of a table whose columns have names


class FragmentBuilder:
    """Collect glyphs into fragments, adding spaces where there are gaps."""

    def __init__(self) -> None:
        self.fragments: list[Fragment] = []
        self.glyphs: list[Glyph] = []  # of the fragment, without spaces
        self.text: list[str] = []
        self.word_end = 0.0  # of the first word
        self.row = 0

    def add(self, glyph: Glyph) -> None:
        """Add a glyph; a line feed or a jump ends the fragment before it."""
        if glyph.char in "\r\n":
            self.close()
            self.row += glyph.char == "\n"
            return
        if glyph.char.isspace():
            if self.text and self.text[-1] != " ":
                self.text.append(" ")
            return
        if self.glyphs:
            last = self.glyphs[-1]
            gap = (glyph.x_min - last.x_max) / max(last.y_max - last.y_min, 1.0)
            if self.text[-1] == HYPHEN and (glyph.y_max < last.y_min or gap < BACK_JUMP):
                self.close()
                self.row += 1
            elif gap > CELL_GAP or gap < BACK_JUMP:
                self.close()
            elif gap > SPACE_GAP and self.text[-1] != " " and not _HAN.match(glyph.char):
                self.text.append(" ")
            elif self.text[-1] == " " and -0.5 < gap < NO_GAP and glyph.y_max > last.y_min:
                self.text.pop()  # the page moves back over it
        self.append_glyph(glyph)

    def append_glyph(self, glyph: Glyph) -> None:
        """Append a visible glyph to the fragment."""
        if " " not in self.text and not (self.glyphs and _HAN.match(self.glyphs[0].char)):
            self.word_end = glyph.x_max
        self.text.append(HYPHEN if glyph.char in _HYPHEN_MARKS else glyph.char)
        self.glyphs.append(glyph)

    def close(self) -> None:
        """End the fragment."""
        if self.glyphs:
            x_min = self.glyphs[0].x_min
            boxes = list(zip(*((glyph.y_min, glyph.x_max, glyph.y_max) for glyph in self.glyphs)))
            y_min, x_max, y_max = min(boxes[0]), max(boxes[1]), max(boxes[2])
            text = "".join(self.text).strip()
            body = text[:-1].replace(HYPHEN, "-") + text[-1:]
            width = self.word_end - x_min
            self.fragments.append(Fragment(body, x_min, y_min, x_max, y_max, width, self.row))
        self.glyphs, self.text = [], []


def build_fragments(glyphs: Iterable[Glyph]) -> list[Fragment]:
    """Build the fragments of a page in the order in which it draws them."""
    builder = FragmentBuilder()
    for glyph in glyphs:
        builder.add(glyph)
    builder.close()
    return builder.fragments


def split_columns(fragments: Sequence[Fragment]) -> list[list[Fragment]]:
    """Split a page into columns in reading order; a page without columns is one.

    The order of the page stays unless it jumps between columns from line to line.
    """
    gutter = find_gutter(fragments)
    if gutter is None:
        return [list(fragments)]
    sides = [side_of(fragment, gutter) for fragment in fragments]
    columns_only = [side for side in sides if side]
    num_jumps = sum(first != second for first, second in pairwise(columns_only))
    if num_jumps <= min(columns_only.count(1), columns_only.count(2)) / 2:
        return split_runs(fragments, sides)
    wide = sorted((fragment.y_min for fragment, side in zip(fragments, sides) if not side), reverse=True)
    blocks: dict[tuple[int, int], list[Fragment]] = {}
    for fragment, side in zip(fragments, sides):
        num_above = sum(y_min > fragment.y_min for y_min in wide)
        blocks.setdefault((num_above, side), []).append(fragment)
    # A wide line comes after the columns above it: it has as many wide lines above it as they have.
    ordered = sorted(blocks, key=lambda key: (key[0], key[1] or 3))
    return [column for key in ordered for column in (split_columns(blocks[key]) if key[1] else [blocks[key]])]


def split_runs(fragments: Sequence[Fragment], sides: Sequence[int]) -> list[list[Fragment]]:
    """Split fragments where the page goes to another column."""
    runs: list[list[Fragment]] = []
    last_side = -1
    for fragment, side in zip(fragments, sides):
        if side != last_side:
            runs.append([])
        runs[-1].append(fragment)
        last_side = side
    return runs


def find_gutter(fragments: Sequence[Fragment]) -> float | None:
    """Find the position between two columns of prose; None if there is none."""
    if not 2 * MIN_COLUMN_LINES <= len(fragments) <= MAX_FRAGMENTS:
        return None
    x_min, x_max = min(fragment.x_min for fragment in fragments), max(fragment.x_max for fragment in fragments)
    starts = sorted({round(fragment.x_min, 1) for fragment in fragments})
    best: tuple[int, float] | None = None
    for start in starts:  # a column begins to the right of the gutter
        gutter = start - 1.0
        if not x_min + 0.15 * (x_max - x_min) < gutter < x_min + 0.85 * (x_max - x_min):
            continue
        sides = [side_of(fragment, gutter) for fragment in fragments]
        if min(sides.count(1), sides.count(2)) < MIN_COLUMN_LINES or sides.count(0) > len(sides) / 2:
            continue
        if best is None or sides.count(0) < best[0]:
            columns = [[fragment for fragment, side in zip(fragments, sides) if side == number] for number in (1, 2)]
            if all(is_prose(column) for column in columns) and overlap_vertically(*columns):
                best = sides.count(0), gutter
    return best[1] if best else None


def side_of(fragment: Fragment, gutter: float) -> int:
    """Return 1 to the left of a gutter, 2 to its right, 0 across it."""
    if fragment.x_max <= gutter:
        return 1
    return 2 if fragment.x_min >= gutter else 0


def is_prose(column: Sequence[Fragment]) -> bool:
    """Check whether lines are long and go on, unlike cells of a table."""
    lengths = [len(fragment.text) + len(_HAN.findall(fragment.text)) for fragment in column]
    if sum(lengths) < MIN_COLUMN_LENGTH * len(column):
        return False
    continued = [fragment.text[0].islower() or bool(_HAN.match(fragment.text)) for fragment in column]
    return sum(continued) >= MIN_PROSE_FRACTION * len(column)


def overlap_vertically(first: Sequence[Fragment], second: Sequence[Fragment]) -> bool:
    """Check whether two columns are side by side for half their height."""
    (low_1, high_1), (low_2, high_2) = (
        (min(fragment.y_min for fragment in column), max(fragment.y_max for fragment in column))
        for column in (first, second)
    )
    return min(high_1, high_2) - max(low_1, low_2) > min(high_1 - low_1, high_2 - low_2) / 2


def build_lines(fragments: Sequence[Fragment], page_width: float) -> list[Line]:
    """Build the lines of a page in reading order."""
    if not fragments:
        return []
    columns = split_columns(fragments)
    margin = page_width - min(fragment.x_min for fragment in fragments)
    lines: list[Line] = []
    for column in columns:
        cell_rows = group_cells(column)
        rows = [join_cells(cells) for cells in cell_rows]
        edge = find_edge(rows)
        if lines and goes_on(lines[-1].text, rows[0].text):
            lines[-1] = lines[-1]._replace(gap=" ")
        gaps = [find_gap(*pair, edge, margin if len(columns) == 1 else edge) for pair in pairwise(rows)]
        column_lines = [Line(row.text, gap, row[1:5]) for row, gap in zip(rows, [*gaps, "\n\n"])]
        lines += name_rows(column_lines, cell_rows)
    return lines


def name_rows(lines: Sequence[Line], cell_rows: Sequence[Sequence[Fragment]]) -> list[Line]:
    """Give the cells of tables the names of their columns; each row is a unit."""
    texts = name_tables(cell_rows)
    named = list(lines)
    for index, text in texts.items():
        named[index] = lines[index]._replace(text=text, gap=lines[index].gap.replace(" ", "\n"), is_row=True)
        if index and named[index - 1].gap == " ":
            named[index - 1] = named[index - 1]._replace(gap="\n")
    return named


def goes_on(text: str, next_text: str) -> bool:
    """Check whether a sentence seems to go on at the top of the next column."""
    return next_text[0].islower() and text[-1] not in ".!?:;"


def group_cells(column: Sequence[Fragment]) -> list[list[Fragment]]:
    """Group the fragments of a column by line."""
    rows: list[list[Fragment]] = []
    for fragment in column:
        last = rows[-1][-1] if rows else None
        if last and last.row == fragment.row and fragment.x_min >= last.x_max:
            rows[-1].append(fragment)
        else:
            rows.append([fragment])
    return rows


def join_cells(cells: Sequence[Fragment]) -> Fragment:
    """Join the fragments of a line by tabs."""
    y_min, y_max = min(cell.y_min for cell in cells), max(cell.y_max for cell in cells)
    text = "\t".join(cell.text for cell in cells)
    return cells[0]._replace(text=text, x_max=cells[-1].x_max, y_min=y_min, y_max=y_max)


def find_edge(rows: Sequence[Fragment]) -> float:
    """Return the right edge at which lines wrap: the furthest one that two lines reach."""
    ends = sorted((row.x_max for row in rows), reverse=True)
    return next((first for first, second in pairwise(ends) if first - second < rows[0].height), ends[0])


def find_gap(row: Fragment, next_row: Fragment, edge: float, margin: float) -> str:
    """Return what separates a line from the next one in its column.

    A unit ends if the next word would have fit before the right ``edge`` of the column or the
    page's ``margin``.
    """
    height = min(row.height, next_row.height)
    if row.y_min - next_row.y_max > PARAGRAPH_GAP * height or row.y_min > next_row.y_max + 20 * height:
        return "\n\n"
    if max(row.height, next_row.height) > HEADING_RATIO * height and not next_row.text[0].islower():
        return "\n\n"
    is_row = "\t" in row.text and "\t" in next_row.text
    end = row.x_max + next_row.first_word_width + height / 4
    # Before a line in lower case, which seems to go on, a line may be less full than it can be.
    fits = end + SLACK * height < edge if next_row.text[0].islower() else end < max(edge, margin)
    return "\n" if is_row or fits or _BULLET.match(next_row.text) else " "
