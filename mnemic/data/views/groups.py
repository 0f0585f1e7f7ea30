"""Number texts so that those that are equally right for a text have one number."""

from collections.abc import Iterable, Sequence


def simplify(text: str) -> str:
    """Write a text in small letters and with single blanks, to compare it with others."""
    return " ".join(text.casefold().split())


def number_groups(pairs: Iterable[Sequence[str]]) -> dict[str, int]:
    """Number simplified texts; all that are linked by pairs share a number.

    So an answer that is right for two questions, and all other answers to these, are no negatives
    of each other.

    >>> numbers = number_groups([("who?", "Ann"), ("and who?", "ann"), ("where?", "Rome")])
    >>> numbers["who?"] == numbers["and who?"] != numbers["where?"]
    True
    """
    parent: dict[str, str] = {}

    def find_root(text: str) -> str:
        while parent.setdefault(text, text) != text:
            parent[text] = parent[parent[text]]
            text = parent[text]
        return text

    for pair in pairs:
        root, *linked_roots = (find_root(simplify(text)) for text in pair)
        for linked_root in linked_roots:
            parent[find_root(linked_root)] = root
    number_of_root = {root: number for number, root in enumerate(dict.fromkeys(map(find_root, list(parent))))}
    return {text: number_of_root[find_root(text)] for text in parent}
