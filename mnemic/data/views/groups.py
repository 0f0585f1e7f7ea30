"""Number texts so that those that are equally right for a text have one number."""

from collections.abc import Iterable, Sequence

from mnemic.data.groups import number_groups


def simplify(text: str) -> str:
    """Write a text in small letters and with single blanks, to compare it with others."""
    return " ".join(text.casefold().split())


def number_texts(pairs: Iterable[Sequence[str]]) -> dict[str, int]:
    """Number simplified texts; all that are linked by pairs share a number.

    So an answer that is right for two questions, and all other answers to these, are no negatives
    of each other.

    >>> numbers = number_texts([("who?", "Ann"), ("and who?", "ann"), ("where?", "Rome")])
    >>> numbers["who?"] == numbers["and who?"] != numbers["where?"]
    True
    """
    simple_pairs = [[simplify(text) for text in pair] for pair in pairs]
    return {text: number for pair, number in zip(simple_pairs, number_groups(simple_pairs)) for text in pair}
