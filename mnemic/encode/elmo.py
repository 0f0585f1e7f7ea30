"""Two recurrent language models, one in each direction, and a mix of their layers.

Shapes: b batch, n tokens, d width, c = d / 2 width of one direction, k layers.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.encode.recurrent import DEFAULT_EMBEDDINGS, RECURRENTS
from mnemic.encode.token_encoder import TokenEncoder
from mnemic.recipe import ConfigError, build, check_repeats

DEFAULT_LSTM: Mapping[str, Any] = {"kind": "lstm"}


class LayerMix(nn.Module):
    """Mix layers by γ Σ softmax(s)ⱼ hⱼ (Peters et al. 2018, equation 1).

    At the start it is their mean, to which ``train.optimizer.decay`` pulls (section 3.3).
    """

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(1, num_layers))  # s: a matrix, since vectors do not decay
        self.scale = nn.Parameter(torch.ones(()))  # γ

    def forward(self, layers: list[Tensor]) -> Tensor:
        """Mix states of all layers, each b n d → b n d."""
        weights = self.scores[0].softmax(0)
        return self.scale * torch.stack([weight * layer for weight, layer in zip(weights, layers, strict=True)]).sum(0)


class ELMoEncoder(TokenEncoder):
    """Two language models that share their embeddings alone (Peters et al. 2018, ELMo).

    arXiv:1802.05365, section 3. ``depth`` recurrent layers read left to right, as many others right
    to left; each layer after the first adds its input. A token's layers are [x; x] and then [left
    to right; right to left], so ``width`` is twice that of embeddings and layers. A language model
    uses the last layer, where the first half of a token's state knows nothing after it and the
    second half nothing before it. With ``mix`` later tasks get a learned mix of all layers.

    Where we differ: words have vectors, no characters; layers have no projection.
    """

    def __init__(
        self,
        width: int,
        vocab: int,
        *,
        embeddings: Mapping[str, Any] = DEFAULT_EMBEDDINGS,
        recurrent: Mapping[str, Any] = DEFAULT_LSTM,
        depth: int = 2,
        dropout: float = 0.0,
        mix: bool = False,
    ) -> None:
        if width % 2:
            raise ConfigError(f"two directions halve the width; model.width is an even number, not {width}")
        check_repeats(depth=depth)
        if depth < 1:
            raise ConfigError(f"model.encode.depth is at least 1, not {depth}")
        super().__init__(width // 2, vocab, embeddings)
        self.width, self.uses_mix = width, mix
        layers: Any = [[build(RECURRENTS, recurrent, width=width // 2) for _ in range(depth)] for _ in range(2)]
        self.directions: Any = nn.ModuleList(nn.ModuleList(direction) for direction in layers)
        if layers[0][0].directions != "forward":
            raise ConfigError("model.encode.recurrent.directions is forward: the encoder has two directions itself")
        self.dropout = nn.Dropout(dropout)
        self.mix = LayerMix(depth + 1)

    @property
    def separates_directions(self) -> bool:  # type: ignore[override]
        """Whether states are those of two language models: a mix is not, with its h₀."""
        return not self.uses_mix

    def forward(self, tokens: Tensor, mask: Tensor, context: None = None) -> Tensor:
        """Encode tokens b n → b n d: the last layer, or the mix of all."""
        layers = list(self.iterate_states(tokens, mask))
        if self.uses_mix:
            return self.mix(layers) * mask.unsqueeze(-1)
        # Unused weights get a gradient, of 0: processes that train together wait for it.
        return layers[-1] + 0 * (self.mix.scores.sum() + self.mix.scale)

    def iterate_states(self, tokens: Tensor, mask: Tensor) -> Iterator[Tensor]:
        """Yield the embeddings, twice side by side, then each layer's states: b n d."""
        x = self.embeddings(tokens, mask)  # b n c
        yield torch.cat([x, x], -1)
        ahead, back, back_mask = x, x.flip(1), mask.flip(1)  # padding in front changes nothing
        for number, (ahead_layer, back_layer) in enumerate(zip(*self.directions)):
            ahead_states = ahead_layer(self.dropout(ahead), mask).states
            back_states = back_layer(self.dropout(back), back_mask).states
            ahead = ahead_states + ahead if number else ahead_states
            back = back_states + back if number else back_states
            yield torch.cat([ahead, back.flip(1)], -1)
