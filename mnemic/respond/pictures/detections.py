"""Boxes of pictures: what a detector predicts, and what it should.

A box is its center, width and height, as shares of the picture. Shapes: b pictures, q predicted
boxes, o boxes of a picture, c classes, a attributes.
"""

from typing import NamedTuple

from torch import Tensor


class Boxes(NamedTuple):
    """The boxes of pictures, with a class and an attribute each."""

    boxes: Tensor  # b o 4
    classes: Tensor  # b o
    mask: Tensor  # b o, False: no box
    attributes: Tensor | None = None  # b o


class Detections(NamedTuple):
    """What a network predicts: as many boxes for each picture, most of them for nothing."""

    class_logits: Tensor  # b q c+1, the last column is for no box
    boxes: Tensor  # b q 4, from 0 to 1
    states: Tensor | None = None  # b q d, that attributes are read from
