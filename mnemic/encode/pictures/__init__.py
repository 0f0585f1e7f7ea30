"""Encoders of pictures: a grid of regions, one state each (I of the memory-network frame).

Contract: ``encode(pictures) → regions``; b c y x, from 0 to 1 → b n d. ``num_regions`` is n,
``grid`` its rows and columns, and ``width`` d; the region of row r and column k is number
r × columns + k. ``channels`` and ``side``, which are facts of the data, are those of the pictures.
"""

from collections.abc import Callable
from typing import Any

from mnemic.encode.pictures.blind import BlindEncoder
from mnemic.encode.pictures.conv import ConvEncoder
from mnemic.encode.pictures.patches import PatchEncoder

PICTURE_ENCODERS: dict[str, Callable[..., Any]] = {"blind": BlindEncoder, "conv": ConvEncoder, "patches": PatchEncoder}
