"""Notes on rare words, taken while masks are predicted and mixed into later inputs (TNF).

Shapes: b batch, n tokens, m masked positions, w rare words, d width.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.data.corpora.word_keys import number_words
from mnemic.encode.embeddings import Notes
from mnemic.memory.notes import NoteSums, average_around_words, start_notes, sum_notes, update_notes
from mnemic.models import WindowBatch
from mnemic.models.contract import unwrap_network
from mnemic.objectives.contract import CarriedState, Loss
from mnemic.objectives.pretraining.masked import PretrainingLoss
from mnemic.recipe import ConfigError, build

MASKED: Mapping[str, Any] = {"kind": "masked"}
NOTES = "notes"  # the name of the carried table
# Carried from part to part of a batch: sums of notes so far, and the number of these parts.
TOTALS, COUNTS, PARTS = "notes.totals", "notes.counts", "notes.parts"


class NotesLoss:
    """Predict masks, with notes on rare words in the input (TNF).

    Wu et al. 2021, arXiv:2008.01466. The note of a rare word is a moving average of the last states
    around its occurrences, ``reach`` tokens to either side, by ``rate`` (γ). The embeddings of its
    tokens become (1 - λ) (token + position) + λ note, with λ the ``share``. Notes are carried from
    step to step, without a gradient; a finished network knows nothing of them. ``objective`` is
    that of the masks. Which words are rare says ``data.rare_words``. The ``shards`` of a batch all
    read the notes of the step before; the last one changes them.

    Where we differ: a word with a masked token gets no note, which would tell it; and each note is
    divided by the number of its states, fewer at the ends of a sequence.
    """

    replaces = "masked"

    def __init__(
        self,
        *,
        share: float = 0.5,
        rate: float = 0.1,
        reach: int = 16,
        objective: Mapping[str, Any] = MASKED,
        network: nn.Module | None = None,
        shards: int = 1,
    ) -> None:
        if not (0 <= share <= 1 and 0 <= rate <= 1) or reach < 0:
            raise ConfigError(
                f"notes take a share and a rate from 0 to 1 and a reach from 0 on, not {share}, {rate} and {reach}"
            )
        if network is not None and not getattr(network.encode, "takes_notes", False):
            raise ConfigError("notes are mixed into the embeddings of an encoder of kind 'transformer'")
        self.share, self.rate, self.reach, self.num_shards = share, rate, reach, shards
        self.masked = build({"masked": PretrainingLoss}, objective, network=network)
        self.seed = int(torch.randint(2**31, ()))  # of the notes at the start

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        if batch.note_rows is None:
            raise ConfigError("these sequences know no rare words: set data.rare_words, such as [5, 50]")
        width = unwrap_network(getattr(network, "_orig_mod", network)).encode.width
        device = batch.tokens.device
        table = carried[NOTES] if carried else start_notes(batch.num_notes, width, self.seed, device)
        reader = NoteReader(network, batch, table, self.share)
        masked: Any = self.masked
        loss = masked(reader, batch)
        assert reader.states is not None
        means = average_around_words(reader.states.detach(), batch.mask, batch.word_starts, self.reach)
        rows = batch.note_rows.masked_fill(~batch.word_starts, -1)  # one note per word
        return loss._replace(carried=self.take_notes(table, sum_notes(means, rows, len(table)), carried or {}))

    def take_notes(self, table: Tensor, sums: NoteSums, carried: CarriedState) -> CarriedState:
        """Return the state for the next part of the batch, or for the next step."""
        num_parts = 1
        if PARTS in carried:
            sums, num_parts = sums.plus(NoteSums(carried[TOTALS], carried[COUNTS])), int(carried[PARTS]) + 1
        if num_parts < self.num_shards:
            return {NOTES: table, TOTALS: sums.totals, COUNTS: sums.counts, PARTS: torch.tensor(num_parts)}
        return {NOTES: update_notes(table, sums, self.rate)}


class NoteReader:
    """A network whose inputs get notes, and which keeps its last states."""

    def __init__(self, network: Any, batch: Any, table: Tensor, share: float) -> None:
        self.network, self.batch, self.table, self.share = network, batch, table, share
        self.states: Tensor | None = None

    def __call__(self, inputs: WindowBatch) -> Any:
        rows = hide_masked_words(self.batch.note_rows, self.batch.word_starts, inputs.answer_mask)
        output = self.network(inputs._replace(notes=Notes(self.table, rows, self.share)))
        self.states = output.states
        return output


def hide_masked_words(rows: Tensor, word_starts: Tensor, masked_positions: Tensor) -> Tensor:
    """Take the notes from all words with a masked token, whatever stands there.

    ``rows``, ``word_starts`` b n; ``masked_positions`` m are indices in the flattened batch, or
    beyond it.
    """
    flags = torch.zeros(rows.numel() + 1, dtype=torch.long, device=rows.device)
    flags = flags.index_fill(0, masked_positions.clamp(max=rows.numel()), 1)[:-1].view_as(rows)
    numbers = number_words(word_starts)
    counts = torch.zeros_like(flags).scatter_add(1, numbers, flags).gather(1, numbers)
    return rows.masked_fill(counts > 0, -1)
