"""Words for the full-text index and for questions put to it; Chinese is cut into words first."""

import re
from functools import cache
from importlib.util import find_spec

from mnemic.text.chinese import HAN, share_of_han
from mnemic.text.documents import DocumentError
from mnemic.text.sentences import CHINESE_FROM

# Words so common that looking them up costs much and says nothing. Words of a question that carry
# no content are among them; negations are not.
COMMON = """
    a about after all also an and any are as at be because been before being between both but by can
    could did do does doing down during each for from further had has have having he her here hers
    him his how i if in into is it its itself just me more most my of off on once only or other our
    out over own same she should so some such than that the their them then there these they this
    those through to too under until up very was we were what when where which while who whom whose
    why will with would you your s t
    的 了 是 在 和 与 或 吗 呢 吧 也 都 就 而 及 着 我 你 他 她 它 我们 你们 他们 这 那 这个 那个
    什么 谁 哪 哪里 哪个 怎么 怎样 为什么 多少 几 有 被 把 对 从 到 为 以 之 其 上 中 下
"""
STOP = frozenset(COMMON.split())
_HAN_RUN = re.compile(f"[{HAN}]+")
_WORD = re.compile(r"\w+")


def spaced(text: str) -> str | None:
    """The text with its Chinese cut into words by blanks; None if the text will do as it is.

    A little Chinese in a text of another language is left alone where ``rjieba`` is missing.
    """
    if not _HAN_RUN.search(text):
        return None
    check_chinese(text)
    if not knows_chinese():
        return None
    import rjieba  # here: only Chinese texts need it

    return _HAN_RUN.sub(lambda run: f" {' '.join(rjieba.cut(run.group()))} ", text)


def check_chinese(text: str) -> None:
    """Refuse a Chinese text whose words cannot be told apart on this machine."""
    if not knows_chinese() and share_of_han(text) >= CHINESE_FROM:
        raise DocumentError(
            "a Chinese text needs rjieba, which is not installed: pip install 'mnemic[chinese]'"
        )


@cache
def knows_chinese() -> bool:
    return find_spec("rjieba") is not None


def words_of(text: str) -> list[str]:
    """The different words of a question that are worth looking up, lower case, in order.

    If all are common ones, they are taken after all.
    """
    found = list(dict.fromkeys(_WORD.findall((spaced(text) or text).lower())))
    return [word for word in found if word not in STOP] or found


def query(words: list[str], *, every: bool = False) -> str:
    """A query in FTS5's language for texts with any of these words, or with every one."""
    quoted = ('"' + word.replace('"', '""') + '"' for word in words)
    return (" AND " if every else " OR ").join(quoted)
