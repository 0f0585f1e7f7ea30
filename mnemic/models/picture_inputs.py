"""Inputs of networks that look at pictures.

Shapes: b pictures, c channels, y rows and x columns of pixels, m words, r random numbers.
"""

from typing import NamedTuple

from torch import Tensor


class PictureInputs(NamedTuple):
    """A batch of pictures, with the words that a response is to go on from."""

    pictures: Tensor  # b c y x, from 0 to 1
    words: Tensor | None = None  # b m, ids of the words so far; the first starts the text
    mask: Tensor | None = None  # b m, True = a real word
    uniforms: Tensor | None = None  # b r, uniform random numbers, during training
