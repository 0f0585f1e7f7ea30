"""Regions that overlap: which they are, and what is in their crops."""

import pytest
import torch

from mnemic.encode.pictures import PICTURE_ENCODERS
from mnemic.encode.pictures.crops import CropEncoder, list_boxes
from mnemic.encode.pictures.mixer import MixerEncoder
from mnemic.encode.pictures.patches import PatchEncoder
from mnemic.predict.pictures.align import list_region_boxes
from mnemic.recipe import ConfigError, build


def test_twenty_regions_of_nine_cells() -> None:
    boxes = list_boxes(3)
    areas = [(right - left) * (bottom - top) for left, top, right, bottom in boxes]
    assert [areas.count(area) for area in (1, 4, 3, 9)] == [9, 4, 6, 1]
    assert len(set(boxes)) == 20
    assert list_boxes(1) == [(0, 0, 1, 1)]


def test_crops_are_parts_of_the_picture() -> None:
    encoder = CropEncoder(8, crop=16)
    picture = torch.rand(2, 3, 48, 48, generator=torch.Generator().manual_seed(0))
    crops = encoder.cut_crops(picture)
    assert crops.shape == (2, 20, 3, 16, 16)
    for number, box in enumerate(encoder.region_boxes):
        left, top, right, bottom = (box * 48).round().long().tolist()
        part = picture[:, :, top:bottom, left:right]
        torch.testing.assert_close(crops[:, number].mean((-1, -2)), part.mean((-1, -2)))
        if right - left == bottom - top == 16:
            torch.testing.assert_close(crops[:, number], part)


def test_a_region_is_read_alone() -> None:
    torch.manual_seed(0)
    encoder = CropEncoder(8)
    picture = torch.rand(1, 3, 48, 48)
    changed = picture.clone()
    changed[:, :, 40:, 40:] = 0  # in the last cell
    is_changed = ((encoder(picture) - encoder(changed)).abs().amax((0, 2)) > 1e-6).tolist()
    assert is_changed == [box[2] == 3 and box[3] == 3 for box in list_boxes(3)]


def test_grids_have_boxes_row_by_row() -> None:
    boxes = list_region_boxes(PatchEncoder(8, patch=16))
    torch.testing.assert_close(boxes[1], torch.tensor([1 / 3, 0, 2 / 3, 1 / 3]))
    torch.testing.assert_close(boxes[3], torch.tensor([0, 1 / 3, 1 / 3, 2 / 3]))


def test_the_mixer_is_patches_whose_tokens_are_mixed() -> None:
    torch.manual_seed(0)
    mixer = MixerEncoder(8, patch=16, depth=1).eval()
    attention = {"kind": "mlp-mixer", "length": 9}
    patches = PatchEncoder(8, patch=16, stack={"kind": "encoder", "norm": "pre", "depth": 1, "attention": attention})
    patches.load_state_dict(mixer.state_dict() | {"positions": torch.zeros(9, 8)})
    pictures = torch.rand(2, 3, 48, 48)
    torch.testing.assert_close(patches.eval()(pictures), mixer(pictures))


@pytest.mark.parametrize("kind", ["crops", "mixer", "repmlp"])
def test_sizes_that_do_not_divide_are_refused(kind: str) -> None:
    with pytest.raises(ConfigError, match="divide"):
        build(PICTURE_ENCODERS, {"kind": kind}, width=8, channels=3, side=50)
