"""Make small scenes and networks that look at them."""

from functools import cache
from typing import Any

import torch

from mnemic.data.pictures.batches import SceneDataset, make_scene_dataset
from mnemic.data.pictures.captions import MAX_WORDS
from mnemic.data.pictures.dataset import make_scene_tokenizer
from mnemic.data.pictures.scenes import SIDE, generate_scenes
from mnemic.models import build_model

SIZES = {"vocab": len(make_scene_tokenizer()), "max_length": MAX_WORDS + 1, "channels": 3, "side": SIDE}
SOFT = {"kind": "regions"}
HARD = {"kind": "sampled-regions"}


@cache
def small_scenes(count: int = 12) -> SceneDataset:
    return make_scene_dataset(generate_scenes("train", count, seed=0), make_scene_tokenizer())


def make_captioner(memory: dict[str, Any] = SOFT, *, encode: dict[str, Any] | None = None, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    parts = {"encode": encode or {"kind": "conv"}, "memory": memory, "respond": {"kind": "caption"}}
    return build_model({"width": 8, **parts}, SIZES)


def make_bilinear(kind: str, *, seed: int = 0, **options: Any) -> Any:
    torch.manual_seed(seed)
    model = {"width": 8, "encode": {"kind": "conv"}, "respond": {"kind": kind, **options}}
    return build_model(model, SIZES).double()
