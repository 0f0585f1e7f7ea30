"""Say no words: the answer is what was read most, in the text's own words.

Shapes: b batch, m queries, n tokens, d width.
"""

from torch import Tensor, nn

from mnemic.memory import Reading


class Quotes(nn.Module):
    """A response without weights, for networks that only find.

    Which slot was read most is in the reading; who has the text quotes what was written there. Only
    the losses ``ctrl`` and ``read`` have something to teach such a network.
    """

    tied = False
    says = False

    def begin(self, query: Tensor, reading: Reading, states: Tensor, mask: Tensor) -> Tensor:
        """What a first word would be said from, b m d."""
        return query
