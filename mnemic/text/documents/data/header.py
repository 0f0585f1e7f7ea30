"""Decide whether the first row of a table has the names of its columns."""

import re
from collections.abc import Sequence

MAX_NAME_LENGTH = 60  # characters
NUM_SAMPLE_ROWS = 20
MIN_VALUE_FRACTION = 0.8  # of the second of two columns, if the first row has their names
_NUMBER = re.compile(r"[-+(]?[^\w\s]{0,3}\s?\d[\d\s.,'’:/-]*\s?(?:%|\w{1,4}|[€$£¥])?\)?")  # also dates, times, amounts
_YEAR = re.compile(r"(?:19|20)\d\d")
# Names that a table of two columns may have; other pairs of words are a key and its value.
COMMON_NAMES = frozenset(
    """address amount answer author category city code comment company contact country date day department description
    email event first first_name firstname group id item key label language last last_name location meaning mobile
    month name note notes number person phone place price product quantity question role room status surname tel text
    time title topic type url value website when where who word year
    名称 姓名 日期 数量 价格 电话 地址 备注 类型 编号 内容""".split()  # noqa: SIM905
)


def is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Check whether the first of some rows names the columns of the others.

    >>> is_header([["item", "price"], ["tea", "3.50"]])
    True
    >>> is_header([["Rent", "700"], ["Heating", "90"]])
    False
    """
    first = [cell.strip() for cell in rows[0]]
    names = [cell for cell in first if cell]
    if len(rows) < 2 or len(names) < 2 or len(set(names)) < len(names):
        return False
    if any(len(name) > MAX_NAME_LENGTH or "\n" in name for name in names):
        return False
    if any(is_value(name) and not _YEAR.fullmatch(name) for name in names) or is_value(names[0]):
        return False
    return len(first) > 2 or is_header_of_two(first, rows[1:])


def is_header_of_two(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Check a table of two columns, which may be keys and values."""
    if all(name.lower() in COMMON_NAMES for name in names):
        return True
    filled = [row for row in rows if len(row) > 1 and row[1].strip()]
    num_values = sum(is_value(row[1].strip()) for row in filled)
    return num_values > 1 and num_values >= MIN_VALUE_FRACTION * len(filled)


def is_value(text: str) -> bool:
    """Check whether a cell looks like a number, a date, an amount or an address."""
    return bool(_NUMBER.fullmatch(text)) or "@" in text or "://" in text
