"""Groups of parameters that are updated alike: by decay, and by layer.

Layers of a network are numbered from its inputs: 0 for the embeddings, 1 to L for the layers of the
encoder, L + 1 for all that follows it, such as the response.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.models.contract import unwrap_network

RATE_FACTOR = "rate_factor"  # of a group: what the learning rate is multiplied by


def group_by_decay(parameters: Iterable[nn.Parameter], decay: float, runs: bool) -> list[dict[str, Any]]:
    """Group parameters into matrices, which decay, and biases and gains, which do not."""
    all_parameters = list(parameters)
    return [
        {"params": [p for p in all_parameters if p.dim() > 1 + runs], "weight_decay": decay},
        {"params": [p for p in all_parameters if p.dim() <= 1 + runs], "weight_decay": 0.0},
    ]


def number_layers(network: nn.Module) -> dict[nn.Parameter, int]:
    """Return the layer of each parameter; shared weights are in the lowest of theirs."""
    names = dict(unwrap_network(network).named_parameters())
    numbers = {name: find_layer(name) for name in names}
    depth = max((number for number in numbers.values() if number is not None), default=0)
    layers: dict[nn.Parameter, int] = {}
    for name, parameter in names.items():
        number, is_encoder = numbers[name], name.split(".")[0] == "encode"
        layers[parameter] = number if number is not None else depth if is_encoder else depth + 1
    return layers


def find_layer(name: str) -> int | None:
    """Return the layer that a weight's name says, or None: it follows the layers.

    >>> find_layer("encode.embeddings.tokens"), find_layer("encode.stack.blocks.3.feed.widen.bias")
    (0, 4)
    >>> find_layer("encode.directions.1.0.layers.weight")  # the first layer, from right to left
    1
    """
    first, *path = name.split(".")
    if first != "encode":
        return None
    if path[0] == "directions":
        path = path[2:]
    number = next((int(key) for key in path if key.isdecimal()), None)
    return 0 if number is None and "embeddings" in path else None if number is None else number + 1


def scale_rates(optimizer: torch.optim.Optimizer, network: nn.Module, factor: float) -> None:
    """Divide the groups of an optimizer by layer, each with its rate.

    The rate of a layer is that of the next one times ``factor``: Howard and Ruder 2018,
    arXiv:1801.06146, section 3.2, who divide by 2.6. What follows the encoder, or else its last
    layer, has the full rate.
    """
    layers = number_layers(network)
    top = max(layers.values(), default=0)
    groups = []
    for group in optimizer.param_groups:
        numbers = [layers.get(parameter, top) for parameter in group["params"]]  # an objective's weights: top
        for number in sorted(set(numbers)):
            parameters = [p for p, layer in zip(group["params"], numbers) if layer == number]
            rate = group["lr"].clone() if isinstance(group["lr"], Tensor) else group["lr"]
            groups.append(group | {"params": parameters, "lr": rate, RATE_FACTOR: factor ** (top - number)})
    optimizer.param_groups[:] = groups


class GradualUnfreezing:
    """Train the top of a network first, then one more layer every ``epochs`` epochs.

    Howard and Ruder 2018, section 3.3. The first epochs train what follows the encoder; then its
    last layer joins, and so on down to the embeddings. A step depends on its number alone.
    """

    def __init__(self, network: nn.Module, epochs: int) -> None:
        self.epochs = epochs
        self.layers = {p: layer for p, layer in number_layers(network).items() if p.requires_grad}
        self.top = max(self.layers.values(), default=0)

    def start_step(self, step: int, steps_per_epoch: int) -> None:
        """Freeze the layers that do not learn yet in this step, counted from 0."""
        lowest = self.top - step // (self.epochs * steps_per_epoch)
        for parameter, layer in self.layers.items():
            parameter.requires_grad_(layer >= lowest)

    def unfreeze(self) -> None:
        """Make all layers learn that did at first."""
        for parameter in self.layers:
            parameter.requires_grad_()
