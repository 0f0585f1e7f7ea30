"""One step of a GRU, for parts that are no sequence: in plain matmuls, for `torch.func.vmap`.

Shapes: … any axes, i channels of the input, d width.
"""

from torch import Tensor, nn

from mnemic.encode.gated_gru import gru_step


class Cell(nn.Module):
    """``h' = GRU(x, h)`` with the equations and the gates' order of the kind ``gru``."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.given, self.back = nn.Linear(inputs, 3 * width), nn.Linear(width, 3 * width)
        for layer in (self.given, self.back):
            glorot(layer, parts=3)

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
        """``x`` … i, ``hidden`` … d → … d."""
        return self.step(self.project(x), hidden)

    def project(self, x: Tensor) -> Tensor:
        """What the input has to say to each gate (… 3 d): it can be known before the loop."""
        return self.given(x).unflatten(-1, (3, self.width))

    def step(self, given: Tensor, hidden: Tensor) -> Tensor:
        back = self.back(hidden).unflatten(-1, (3, self.width))  # … 3 d
        return gru_step(given, back, hidden)


def glorot(layer: nn.Linear, *, parts: int = 1) -> nn.Linear:
    """Uniform weights by Glorot & Bengio (2010), each of ``parts`` by itself; the bias is zero."""
    for part in layer.weight.detach().chunk(parts):
        nn.init.xavier_uniform_(part)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer
