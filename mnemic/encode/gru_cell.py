"""A GRU cell in plain matmuls, for `torch.func.vmap`, and Glorot initialization.

Shapes: … any axes, i channels of the input, d width.
"""

from torch import Tensor, nn

from mnemic.encode.gated_gru import gru_step


class GRUCell(nn.Module):
    """A GRU cell with the equations and gate order of the kind ``gru``."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.given, self.back = nn.Linear(inputs, 3 * width), nn.Linear(width, 3 * width)
        for layer in (self.given, self.back):
            init_glorot(layer, num_blocks=3)

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
        """Update the hidden state: ``x`` … i, ``hidden`` … d → … d."""
        return self.step(self.project_input(x), hidden)

    def project_input(self, x: Tensor) -> Tensor:
        """Project the input to each gate (… 3 d); this needs no hidden state."""
        return self.given(x).unflatten(-1, (3, self.width))

    def step(self, projected_input: Tensor, hidden: Tensor) -> Tensor:
        """Update the hidden state from a projected input."""
        projected_hidden = self.back(hidden).unflatten(-1, (3, self.width))  # … 3 d
        return gru_step(projected_input, projected_hidden, hidden)


def init_glorot(layer: nn.Linear, *, num_blocks: int = 1) -> nn.Linear:
    """Initialize a linear layer by Glorot & Bengio (2010), with zero bias.

    Each of ``num_blocks`` equal blocks of rows is initialized by itself.
    """
    for block in layer.weight.detach().chunk(num_blocks):
        nn.init.xavier_uniform_(block)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer
