"""Rows, column titles and captions of the evidence of a story, per kind of memory."""

from typing import TYPE_CHECKING

from mnemic.cli.render.colormap import MIN_VISIBLE, pick_gate_colors
from mnemic.cli.render.evidence_table import EvidenceRow

if TYPE_CHECKING:
    from mnemic.memory import ReadLabels
    from mnemic.predict import StoryAnswer

SLOT_READS_LABEL = "(read of each slot)"


def labels_of(answer: "StoryAnswer") -> "ReadLabels":
    """Return the texts beside the evidence of the memory's kind."""
    from mnemic.memory import MEMORIES

    labels: ReadLabels = MEMORIES[answer.memory].labels
    return labels._replace(caption=labels.caption.format(item=answer.item))


def format_column_titles(answer: "StoryAnswer") -> list[str]:
    """Format one column title per hop."""
    head = labels_of(answer).column
    return [head.format(hop + 1) for hop in range(len(answer.evidence[0].weights))]


def compute_unread_weights(answer: "StoryAnswer") -> list[float]:
    """Compute the weight of each hop on no sentence.

    All are 0 if the columns do not add up to 1.
    """
    num_hops = len(answer.evidence[0].weights)
    if not labels_of(answer).unread:
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
        rows.append(EvidenceRow(labels_of(answer).unread, unread_weights, is_total=True))
    if answer.taken:
        rows.append(EvidenceRow(labels_of(answer).gate, answer.taken, is_total=True, pick_colors=pick_gate_colors))
    if answer.slots is not None:
        reads = [weight / max(answer.slots.read) for weight in answer.slots.read]
        rows.append(EvidenceRow(SLOT_READS_LABEL, (), gates=reads, is_total=True))
    return rows
