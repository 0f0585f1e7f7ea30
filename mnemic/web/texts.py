"""Long texts, each read into one memory, in a private folder."""

import json
import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from mnemic.files import make_private_folder, read_json, replace_file
from mnemic.store.retrieve.models import THREAD_LIMIT
from mnemic.web.describe import clean
from mnemic.web.jobs.table import RunningJob
from mnemic.web.networks import NetworkTable
from mnemic.web.problems import Problem
from mnemic.web.schemas.networks import (
    NewLongText,
    TextAnswer,
    TextInfo,
    TextSegment,
    TextSlot,
    TextSnapshot,
    TextSummary,
    TextUnit,
)

if TYPE_CHECKING:
    from mnemic.predict.memory_state import State
    from mnemic.predict.model import Model
    from mnemic.predict.results import SlotEvidence

MAX_TEXTS = 50
MAX_SNAPSHOTS = 64  # of the slots that a client gets
TEXT_ID = re.compile(r"[0-9a-f]{16}")


class StoppedError(Exception):
    """Reading a text was stopped."""


class TextTable:
    """The texts of a server, each in a file beside its memory."""

    def __init__(self, folder: Path, networks: NetworkTable) -> None:
        self.folder, self.networks = folder, networks
        make_private_folder(folder)
        for path in folder.glob("*.mem"):  # of a text that was not written completely
            if not path.with_suffix(".json").exists():
                path.unlink()

    def list_ids(self) -> list[str]:
        """List the texts, in no order that means anything."""
        return sorted(path.stem for path in self.folder.glob("*.json") if TEXT_ID.fullmatch(path.stem))

    def read(self, job: RunningJob, body: NewLongText) -> None:
        """Read a text into a memory, and store both."""
        if len(self.list_ids()) >= MAX_TEXTS:
            raise Problem(409, f"There are {MAX_TEXTS} texts already; delete one first.")
        model = self.networks.load(body.model, "remember")

        def report(seen: int, total: int) -> None:
            if job.stop.is_set():
                raise StoppedError
            job.update(done=seen, total=total, message=body.name)

        with THREAD_LIMIT.apply():
            state = model.remember(body.text, name=body.name, on_progress=report)
        text_id = token_hex(8)
        fields = {"name": body.name, "model": body.model, "text": body.text}
        state.save(self.folder / f"{text_id}.mem")
        with replace_file(self.folder / f"{text_id}.json") as file:
            file.write(json.dumps(fields | {"units": count_units(model, body.text)}).encode())
        job.update(done=state.total, total=state.total, result={"text": text_id})

    def load(self, text_id: str) -> "tuple[dict[str, Any], Model, State]":
        """Load a text with its network and its memory, or raise a problem."""
        path = self.folder / f"{text_id}.json"
        if not TEXT_ID.fullmatch(text_id) or not path.is_file():
            raise Problem(404, f"There is no text {text_id[:40]!r}; it may be deleted.")
        fields = read_json(path)
        model = self.networks.load(fields["model"], "remember")
        return fields, model, model.load_state(path.with_suffix(".mem"))

    def summarize(self, text_id: str) -> TextSummary:
        """Summarize a text."""
        fields, _, state = self.load(text_id)
        return TextSummary(**summarize_state(text_id, fields, state))

    def describe(self, text_id: str) -> TextInfo:
        """Describe a text with its memory."""
        fields, _, state = self.load(text_id)
        ends, spans = list(accumulate(fields["units"])), state.spans.tolist()
        weights = [round(weight, 5) for weight in state.worth.tolist()]
        segments = []
        for number, end in enumerate(ends):
            rows = range(end - fields["units"][number], end)
            units = [TextUnit(first=spans[row][0], last=spans[row][1], weight=weights[row]) for row in rows]
            if units:
                unit_weights = [unit.weight for unit in units]
                first, last = units[0].first, units[-1].last
                segments.append(TextSegment(first=first, last=last, weights=unit_weights, units=units))
        slots = describe_slots(state.contents(), fields["text"], spans, ends)
        summary = summarize_state(text_id, fields, state)
        return TextInfo(**summary, slots=slots, segments=segments, history=list_snapshots(state))

    def ask(self, text_id: str, question: str) -> TextAnswer:
        """Answer a question from the memory of a text."""
        fields, model, state = self.load(text_id)
        with THREAD_LIMIT.apply():
            answer = model.ask(state, question, text=fields["text"])
        slots = describe_slots(answer.slots, fields["text"], state.spans.tolist(), list(accumulate(fields["units"])))
        return TextAnswer(answer=clean(answer.text) or None, probability=answer.probability, slots=slots)

    def delete(self, text_id: str) -> None:
        """Delete a text and its memory."""
        path = self.folder / f"{text_id}.json"
        if not TEXT_ID.fullmatch(text_id) or not path.is_file():
            raise Problem(404, f"There is no text {text_id[:40]!r}; it may be deleted.")
        path.with_suffix(".mem").unlink(missing_ok=True)
        path.unlink(missing_ok=True)


def count_units(model: "Model", text: str) -> list[int]:
    """Count the units of each segment of a text."""
    from mnemic.data.long_context.hide import cut_segments
    from mnemic.predict.long_text import split_into_units

    max_tokens, unit = model.sizes["max_length"] - 2, model.network.unit
    paragraphs = bool(model.recipe["data"].get("paragraphs"))
    pieces, _ = split_into_units(text, model.tokenizer, unit, max_tokens, paragraphs=paragraphs)
    segments = cut_segments(pieces, max_tokens)
    return [sum(len(piece.ids) for piece in segment) if unit == "tokens" else len(segment) for segment in segments]


def summarize_state(text_id: str, fields: dict[str, Any], state: "State") -> dict[str, Any]:
    """Summarize a text and its memory."""
    return {
        "id": text_id,
        "name": fields["name"],
        "model": fields["model"],
        "characters": len(fields["text"]),
        "tokens_seen": state.seen,
        "tokens_total": state.total,
        "num_slots": state.slots,
        "num_filled": state.filled,
    }


def describe_slots(
    slots: "Sequence[SlotEvidence]", text: str, spans: list[list[int]], ends: list[int]
) -> list[TextSlot]:
    """Describe slots by the span that is in them most."""
    starts, rows = [start for start, _ in spans], []
    for slot in slots:
        first, last, _ = slot.sources[0]
        unit = max(bisect_right(starts, first) - 1, 0)
        segment = min(bisect_right(ends, unit), max(len(ends) - 1, 0))
        quote = clean(text[first:last])
        rows.append(TextSlot(slot=slot.number, text=quote, first=first, last=last, weight=slot.weight, segment=segment))
    return rows


def list_snapshots(state: "State") -> list[TextSnapshot]:
    """List what was in the slots over time, evenly sampled."""
    history = state.history.tolist()
    step = -(-len(history) // MAX_SNAPSHOTS) or 1
    return [
        TextSnapshot(segments=(number + 1) * state.stride, units=row)
        for number, row in enumerate(history)
        if (len(history) - 1 - number) % step == 0
    ]
