"""Encoders of pictures: a grid of regions, one state each (I of the memory-network frame).

Contract: ``encode(pictures) → regions``; b c y x, from 0 to 1 → b n d. ``num_regions`` is n,
``grid`` its rows and columns, and ``width`` d; the region of row r and column k is number
r × columns + k. ``channels`` and ``side``, which are facts of the data, are those of the pictures.
A kind whose regions are no grid has ``region_boxes``, their corners as shares of the picture, n 4.
"""

from collections.abc import Callable
from typing import Any

from mnemic.encode.pictures.blind import BlindEncoder
from mnemic.encode.pictures.conv import ConvEncoder
from mnemic.encode.pictures.crops import CropEncoder
from mnemic.encode.pictures.mixer import MixerEncoder
from mnemic.encode.pictures.patches import PatchEncoder
from mnemic.encode.pictures.repmlp import merge_repmlp as merge_repmlp
from mnemic.encode.pictures.repmlp_encoder import RepMLPEncoder

PICTURE_ENCODERS: dict[str, Callable[..., Any]] = {
    "blind": BlindEncoder,
    "conv": ConvEncoder,
    "crops": CropEncoder,
    "mixer": MixerEncoder,
    "patches": PatchEncoder,
    "repmlp": RepMLPEncoder,
}
