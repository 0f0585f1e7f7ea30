"""A network without a memory: I and R alone, over windows of texts.

Shapes: b windows, n tokens, t tokens of all windows, e texts, s windows of the longest, d width.
"""

from typing import Any, NamedTuple

from torch import Tensor, nn

from mnemic.encode import TransformerEncoder
from mnemic.encode.packed import Packed


class Windows(NamedTuple):
    """What a network without a memory reads: windows of texts, each by itself."""

    tokens: Tensor  # b n, ids
    mask: Tensor  # b n, True = a real token
    segments: Tensor  # b n, 1 = of the second text of a pair
    inside: Tensor  # b n, True = a token that an answer may be about, none of the special ones
    room: int = 0  # that many tokens are no padding, at most; 0: nobody has counted
    said: Tensor | None = None  # b m, an answer in the making, for a response that goes on with it
    documents: Tensor | None = None  # e s, the windows of each text in their order; -1 = none


class Row(NamedTuple):
    """Windows one after another in one row, so that nothing is padded; R answers about some."""

    tokens: Tensor  # 1 t, ids
    mask: Packed  # where each window ends
    segments: Tensor  # 1 t
    positions: Tensor  # 1 t, counted from the first token of each window
    inside: Tensor  # 1 t
    places: Tensor  # b n, where in the row the tokens stand of the windows that R answers about
    real: Tensor  # b n, True = of that window


class Read(NamedTuple):
    """What a network without a memory makes of its windows."""

    scores: Any  # b …, as the response has them
    states: Tensor  # b n d; of a row 1 t d


class Reader(nn.Module):
    """A network without a memory: I and R alone, such as a plain BERT.

    R is handed no query and no reading, and as its mask which states it may answer about.
    """

    rolls = 0  # nothing is drawn while training but dropout

    def __init__(self, encode: nn.Module, respond: nn.Module, *, segments: bool = False) -> None:
        super().__init__()
        self.encode, self.respond = encode, respond
        self.segments = segments  # whether I tells the two texts of a pair apart

    def forward(self, inputs: Windows | Row) -> Read:
        told: dict[str, Any] = {"segments": inputs.segments} if self.segments else {}
        if isinstance(inputs, Windows):
            if isinstance(self.encode, TransformerEncoder):
                told["room"] = inputs.room
            states = self.encode(inputs.tokens, inputs.mask, **told)  # b n d
            said = {} if inputs.said is None else {"said": inputs.said}
            scores = self.respond(None, None, states, inputs.inside, **said)
        else:
            states = self.encode(inputs.tokens, inputs.mask, positions=inputs.positions, **told)
            inside = take(inputs.inside[0], inputs.places) & inputs.real  # b n
            scores = self.respond(None, None, take(states[0], inputs.places), inside)
        # Products may be in half the bits; losses are not.
        return Read(scores.float() if isinstance(scores, Tensor) else scores, states)


def take(states: Tensor, rows: Tensor) -> Tensor:
    """``states[rows]`` (u … → b n …), by the kind of indexing whose gradient is fastest."""
    return states.index_select(0, rows.flatten()).unflatten(0, rows.shape)
