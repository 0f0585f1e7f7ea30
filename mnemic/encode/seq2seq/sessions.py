"""Sessions of generation: a decoder that goes on with several beams of each source.

Contract: ``advance(last_tokens, parents) → logits``, b w → b w v. ``parents`` (b w) are the beams
of the step before that these go on from; None: each from itself. ``sort_sources(start_ids)`` are
the numbers of the sources (b) in the order of the session's rows; ``select(rows)`` goes on with
some of the rows only.

Shapes: b sources, w beams, v vocabulary, d width.
"""

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from mnemic.encode.stacks.decoding import IncrementalDecoder

DecodingStep = Callable[[Tensor, Any], tuple[Tensor, Any]]


class DecodingSession(Protocol):
    """A decoder in the middle of its texts."""

    max_open_share: float  # if no more of the sources than this are open, the others are dropped

    def sort_sources(self, start_ids: Tensor) -> Tensor: ...

    def advance(self, last_tokens: Tensor, parents: Tensor | None) -> Tensor: ...

    def select(self, rows: Tensor) -> None: ...


class StepSession:
    """Go on with any decoder, a function of the last tokens and a state.

    Rows of the state are selected as beams go on from others.
    """

    max_open_share = 0.0  # selecting rows of any state may cost more than it saves

    def __init__(self, step: DecodingStep, state: Any) -> None:
        self.step, self.state, self.num_beams = step, state, 1

    def sort_sources(self, start_ids: Tensor) -> Tensor:
        """Leave the sources as they are."""
        return torch.arange(len(start_ids), device=start_ids.device)

    def advance(self, last_tokens: Tensor, parents: Tensor | None) -> Tensor:
        """Score the next tokens of all beams, b w v."""
        if parents is not None:
            first_rows = torch.arange(len(parents), device=parents.device).unsqueeze(1) * self.num_beams
            self.state = select_rows(self.state, (first_rows + parents).flatten())
        self.num_beams = last_tokens.shape[1]
        logits, self.state = self.step(last_tokens.flatten(), self.state)
        return logits.unflatten(0, last_tokens.shape)

    def select(self, rows: Tensor) -> None:
        """Go on with some rows only."""
        beams = torch.arange(self.num_beams, device=rows.device)
        self.state = select_rows(self.state, (rows.unsqueeze(1) * self.num_beams + beams).flatten())


class SlotSession:
    """Go on with a Transformer decoder over sources, without work on padding.

    ``embed`` embeds tokens (b w) at positions (b w), ``score`` scores the vocabulary from states.
    """

    max_open_share = 0.75

    def __init__(
        self, embed: Callable[[Tensor, Tensor], Tensor], decoder: IncrementalDecoder, score: Callable[[Tensor], Tensor]
    ) -> None:
        self.embed, self.decoder, self.score = embed, decoder, score

    def sort_sources(self, start_ids: Tensor) -> Tensor:
        """Return the numbers of the sources, sorted by length."""
        return self.decoder.order

    def advance(self, last_tokens: Tensor, parents: Tensor | None) -> Tensor:
        """Score the next tokens of all beams, b w v."""
        positions = torch.full_like(last_tokens, self.decoder.num_steps)
        return self.score(self.decoder.advance(self.embed(last_tokens, positions), parents))

    def select(self, rows: Tensor) -> None:
        """Go on with some sources only."""
        self.decoder.select(rows)


def select_rows(state: Any, rows: Tensor) -> Any:
    """Select rows of the batch in every tensor of a decoder state."""
    return tree_map(lambda tensor: tensor.index_select(0, rows), state)
