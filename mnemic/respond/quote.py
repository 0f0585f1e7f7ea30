"""A response without words: the caller quotes the text that was read most.

Shapes: b batch, m queries, n tokens, d width.
"""

from torch import Tensor

from mnemic.memory import Reading
from mnemic.respond.contract import Response


class QuoteResponse(Response):
    """A response without weights, for networks that only retrieve.

    The reading says which slot was read most; the caller, who has the text, quotes its source. Only
    the losses ``ctrl`` and ``read`` train such a network.
    """

    source = "carried memory"
    generates_words = False
    methods = ("remember", "ask", "load_state")

    def initial_state(self, query: Tensor, reading: Reading, states: Tensor, mask: Tensor) -> Tensor:
        """Return the query (b m d), since no word is generated from it."""
        return query
