"""How much each layer of an encoder changes the states of a text's tokens.

Shapes: b windows, n tokens, d width.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import degrees
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemic.models.evaluating import evaluating
from mnemic.text.tokenizers.contract import Tokenizer
from mnemic.text.windows import WindowOptions, make_text_windows

MAX_WINDOW = 512  # tokens, of an encoder without a limit of its own


class LayerTransition(NamedTuple):
    """The way from a layer's input to its output, averaged over tokens.

    Lan et al. 2020, figure 1, compare an ALBERT by it with a BERT: shared layers move states less.
    """

    layer: int  # from 1
    distance: float  # L2
    cosine: float
    angle: float  # degrees


class TextTransitions(NamedTuple):
    """The transitions of all layers, over all tokens of a text."""

    tokens: int  # special ones included
    layers: list[LayerTransition]


def measure_text_transitions(encoder: Any, tokenizer: Tokenizer, text: str) -> TextTransitions:
    """Measure the transitions of all layers on a text of any length.

    A long text is read in windows that do not overlap, so each token counts once. ``encoder`` is a
    ``TransformerEncoder``.
    """
    options = WindowOptions(encoder.max_length or MAX_WINDOW, 0)
    windows = [window.ids for window in make_text_windows(tokenizer, text, options).windows]
    states: list[list[Tensor]] = []
    with evaluating(encoder), torch.no_grad():
        for ids in windows:
            tokens = torch.tensor([ids], device=encoder.device)
            states.append([layer[0] for layer in encoder.iterate_layers(tokens, torch.ones_like(tokens) > 0)])
    return TextTransitions(sum(map(len, windows)), compute_layer_transitions([torch.cat(x) for x in zip(*states)]))


def compute_layer_transitions(states: Sequence[Tensor]) -> list[LayerTransition]:
    """Compute the transitions between states n d: the input of the first layer, then outputs."""
    transitions = []
    for number, (before, after) in enumerate(pairwise(states), start=1):
        before, after = before.double(), after.double()
        distance = (after - before).norm(dim=-1)  # n
        cosine = torch.nn.functional.cosine_similarity(before, after, dim=-1).clamp(-1, 1)  # n
        angle = degrees(float(cosine.arccos().mean()))
        transitions.append(LayerTransition(number, float(distance.mean()), float(cosine.mean()), angle))
    return transitions
