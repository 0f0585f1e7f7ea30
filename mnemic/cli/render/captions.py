"""How each kind of memory reads, in words: what heads a column, what is left of it, a caption."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mnemic.predict import Answer


class Manner(NamedTuple):
    """The words for one kind of memory."""

    column: str  # the head of a column, with a place for the hop's number
    caption: str
    rest: str = ""  # what a hop spent on no sentence; empty: a column need not add up to 1


SHARES = "How much of each sentence was read at each hop; a column adds up to 1."
FREE = "(nothing: free slots)"
EACH_GATE = "How far the gate of each sentence opened in each pass, from 0 to 1."
MANNERS: Mapping[str, Manner] = {
    "memn2n": Manner("hop {}", SHARES, FREE),
    "memnn": Manner(
        "hop {}",
        "Each hop read one slot and no other; how much of each sentence is in it.",
        "(nothing: it had read enough)",
    ),
    "wmn": Manner(
        "hop {}",
        "How much of each sentence was read at each hop by all heads; a column adds up to 1.",
        FREE,
    ),
    "key-value": Manner(
        "hop {}", "How much of each {item} was read at each hop; a column adds up to 1."
    ),
    "dmn": Manner("pass {}", EACH_GATE),
    "dmn-layers": Manner("pass {}", EACH_GATE),
    "dmn-plus": Manner(
        "pass {}", "How far the gate of each sentence opened in each pass; a column adds up to 1."
    ),
    "dmn-sum": Manner("pass {}", SHARES.replace("at each hop", "in each pass")),
    "entnet": Manner(
        "read",
        "What is left of each sentence in the slots that were read; the column adds up to 1.",
        "(what the slots held before the story)",
    ),
}
SLOTS = "To the right: how far each slot opened for each sentence."
TAKEN = "(gate: taken of what was found)"


def manner(answer: "Answer") -> Manner:
    own = MANNERS[answer.memory]
    return own._replace(caption=own.caption.format(item=answer.item))


def columns(answer: "Answer") -> list[str]:
    """The heads of the columns, one a hop."""
    head = manner(answer).column
    return [head.format(hop + 1) for hop in range(len(answer.evidence[0].weights))]


def unread(answer: "Answer") -> list[float]:
    """What each hop spent on no sentence; all 0 where nothing needs to add up."""
    hops = len(answer.evidence[0].weights)
    if not manner(answer).rest:
        return [0.0] * hops
    return [1 - sum(one.weights[hop] for one in answer.evidence) for hop in range(hops)]
