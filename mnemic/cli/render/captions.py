"""Rows, column titles and captions of the evidence of a story, per kind of memory."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from mnemic.cli.render.colormap import MIN_VISIBLE, pick_gate_colors
from mnemic.cli.render.evidence_table import EvidenceRow

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
    "wmn": MemoryLabels("hop {}", ATTENTION_CAPTION.replace("each hop", "each hop by all heads"), FREE_SLOTS),
    "key-value": MemoryLabels("hop {}", "How much of each {item} was read at each hop; a column adds up to 1."),
    "dmn": MemoryLabels("pass {}", GATE_CAPTION),
    "dmn-layers": MemoryLabels("pass {}", GATE_CAPTION),
    "dmn-plus": MemoryLabels("pass {}", GATE_CAPTION.replace(", from 0 to 1", "; a column adds up to 1")),
    "dmn-sum": MemoryLabels("pass {}", ATTENTION_CAPTION.replace("at each hop", "in each pass")),
    "entnet": MemoryLabels(
        "read",
        "What is left of each sentence in the slots that were read; the column adds up to 1.",
        "(what the slots held before the story)",
    ),
}
SLOT_READS_LABEL = "(read of each slot)"
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


def build_story_rows(answer: "StoryAnswer", limit: int | None) -> list[EvidenceRow]:
    """Build rows of the ``limit`` sentences read most, and one of the rest."""
    visible = {evidence.sentence for evidence in answer.best_evidence(limit or len(answer.evidence))}
    gates = answer.slots.gates if answer.slots else [()] * len(answer.evidence)
    rows = [
        EvidenceRow(evidence.text, evidence.weights, label=str(evidence.sentence + 1), gates=slot_gates)
        for evidence, slot_gates in sorted(zip(answer.evidence, gates), key=lambda pair: pair[0].sentence)
        if evidence.sentence in visible
    ]
    unread_weights = compute_unread_weights(answer)
    if max(unread_weights) > MIN_VISIBLE:
        rows.append(EvidenceRow(labels_of(answer).unread_label, unread_weights, is_total=True))
    if answer.taken:
        rows.append(EvidenceRow(UPDATE_GATE_LABEL, answer.taken, is_total=True, pick_colors=pick_gate_colors))
    if answer.slots is not None:
        reads = [weight / max(answer.slots.read) for weight in answer.slots.read]
        rows.append(EvidenceRow(SLOT_READS_LABEL, (), gates=reads, is_total=True))
    return rows
