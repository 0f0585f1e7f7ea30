"""Column titles and captions of evidence tables, per kind of memory."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mnemic.predict import StoryAnswer


class MemoryLabels(NamedTuple):
    """The texts that explain the evidence of one kind of memory."""

    column_format: str  # title of a column; {} is the number of the hop
    caption: str
    unread_label: str = ""  # weight on no sentence; empty: columns do not add up to 1


ATTENTION_CAPTION = "How much of each sentence was read at each hop; a column adds up to 1."
FREE_SLOTS = "(nothing: free slots)"
GATE_CAPTION = "How far the gate of each sentence opened in each pass, from 0 to 1."
MEMORY_LABELS: Mapping[str, MemoryLabels] = {
    "memn2n": MemoryLabels("hop {}", ATTENTION_CAPTION, FREE_SLOTS),
    "memnn": MemoryLabels(
        "hop {}",
        "Each hop read one slot and no other; how much of each sentence is in it.",
        "(nothing: it had read enough)",
    ),
    "wmn": MemoryLabels(
        "hop {}", "How much of each sentence was read at each hop by all heads; a column adds up to 1.", FREE_SLOTS
    ),
    "key-value": MemoryLabels("hop {}", "How much of each {item} was read at each hop; a column adds up to 1."),
    "dmn": MemoryLabels("pass {}", GATE_CAPTION),
    "dmn-layers": MemoryLabels("pass {}", GATE_CAPTION),
    "dmn-plus": MemoryLabels(
        "pass {}", "How far the gate of each sentence opened in each pass; a column adds up to 1."
    ),
    "dmn-sum": MemoryLabels("pass {}", ATTENTION_CAPTION.replace("at each hop", "in each pass")),
    "entnet": MemoryLabels(
        "read",
        "What is left of each sentence in the slots that were read; the column adds up to 1.",
        "(what the slots held before the story)",
    ),
}
SLOTS_CAPTION = "To the right: how far each slot opened for each sentence."
UPDATE_GATE_LABEL = "(gate: used share of what was read)"


def labels_of(answer: "StoryAnswer") -> MemoryLabels:
    labels = MEMORY_LABELS[answer.memory]
    return labels._replace(caption=labels.caption.format(item=answer.item))


def format_column_titles(answer: "StoryAnswer") -> list[str]:
    """Format one column title per hop."""
    head = labels_of(answer).column_format
    return [head.format(hop + 1) for hop in range(len(answer.evidence[0].weights))]


def compute_unread_weights(answer: "StoryAnswer") -> list[float]:
    """Compute the weight of each hop on no sentence.

    All are 0 if the columns do not add up to 1.
    """
    num_hops = len(answer.evidence[0].weights)
    if not labels_of(answer).unread_label:
        return [0.0] * num_hops
    return [1 - sum(evidence.weights[hop] for evidence in answer.evidence) for hop in range(num_hops)]
