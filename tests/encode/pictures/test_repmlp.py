"""RepMLP: its merge is exact, and each of its parts does what the paper says.

Shapes: b maps, c channels, y x rows and columns of a map.
"""

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from mnemic.encode.pictures.repmlp import RepMLPLayer, join_tiles, merge_repmlp, split_tiles
from mnemic.recipe import ConfigError

CHANNELS, SIZE, TILE = 8, 12, 6


def make_layer(*, groups: int = 1, size: int = SIZE, tile: int = TILE) -> RepMLPLayer:
    """Make a layer whose norms have statistics as after training."""
    torch.manual_seed(3)
    layer = RepMLPLayer(CHANNELS, size, tile=tile, groups=groups)
    for norm in layer.modules():
        if isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d):
            nn.init.uniform_(norm.weight, 0.5, 1.5)
            nn.init.normal_(norm.bias)
            nn.init.normal_(norm.running_mean)
            nn.init.uniform_(norm.running_var, 0.5, 2.0)
    return layer.eval()


def make_maps(size: int = SIZE) -> Tensor:
    return torch.randn(3, CHANNELS, size, size, generator=torch.Generator().manual_seed(0))


def count_flops(layer: nn.Module, maps: Tensor) -> int:
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        layer(maps)
    return int(counter.get_total_flops())


def test_tiles_are_cut_row_by_row_and_put_together_again() -> None:
    maps = torch.arange(2 * 3 * 4 * 4).view(2, 3, 4, 4)
    tiles = split_tiles(maps, 2)
    torch.testing.assert_close(tiles[1], maps[0, :, :2, 2:])
    torch.testing.assert_close(tiles[2], maps[0, :, 2:, :2])
    torch.testing.assert_close(join_tiles(tiles, 4), maps)


@pytest.mark.parametrize("groups", [1, 2, 8])
@pytest.mark.parametrize("tile", [TILE, SIZE])
def test_the_merged_layer_computes_the_same(groups: int, tile: int) -> None:
    layer, maps = make_layer(groups=groups, tile=tile), make_maps()
    merged = layer.merge()
    assert not [
        module for module in merged.modules() if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d | nn.Conv2d)
    ]
    with torch.no_grad():
        torch.testing.assert_close(merged(maps), layer(maps), rtol=0, atol=1e-5)
        torch.testing.assert_close(merged.merge()(maps), merged(maps))
    assert count_flops(merged, maps) < count_flops(layer, maps)


def test_statistics_of_training_go_into_the_merge() -> None:
    layer = RepMLPLayer(CHANNELS, SIZE, tile=TILE, groups=4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for step in range(5):
        maps = 2 * torch.randn(8, CHANNELS, SIZE, SIZE, generator=torch.Generator().manual_seed(step)) + 1
        layer(maps).square().mean().backward()
        optimizer.step()
    network = nn.Sequential(nn.Conv2d(CHANNELS, CHANNELS, 1), layer)
    merged = merge_repmlp(network)
    assert network.training
    with torch.no_grad():
        torch.testing.assert_close(merged(maps), network.eval()(maps), rtol=0, atol=1e-5)
    assert isinstance(network[1].mix_norm, nn.BatchNorm1d)  # the original can be trained further


def test_a_layer_without_convolutions_is_a_matrix_per_tile() -> None:
    layer = RepMLPLayer(2, 4, tile=4, kernels=()).eval()
    tiles = torch.randn(3, 2, 4, 4)
    expected = nn.functional.linear(tiles.flatten(1), layer.mix.weight.squeeze(-1)) / (1 + 1e-5) ** 0.5
    torch.testing.assert_close(layer(tiles).flatten(1), expected)


def test_tiles_see_each_other_by_their_means_alone() -> None:
    layer, maps = make_layer(), make_maps()
    changed = maps.clone()
    changed[:, :, 0, 0] += 1
    changed[:, :, 1, 1] -= 1  # the means of the first tile stay
    difference = (layer(changed) - layer(maps)).abs().amax((0, 1))
    assert difference[:TILE, :TILE].max() > 1e-3
    assert max(difference[TILE:].max(), difference[:, TILE:].max()) < 1e-5
    changed[:, :, 0, 0] += 1
    assert (layer(changed) - layer(maps)).abs().amax((0, 1))[TILE:, TILE:].min() > 1e-5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tile": 5}, "tiles of 5 × 5 do not cover a map of 12 × 12"),
        ({"tile": 6, "groups": 3}, "8 channels do not divide into 3 groups"),
        ({"tile": 2, "kernels": (5,)}, "odd numbers from 1 to 3"),
        ({"tile": 6, "kernels": (2,)}, "odd numbers"),
    ],
)
def test_a_layer_that_cannot_be_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        RepMLPLayer(CHANNELS, SIZE, **options)  # type: ignore[arg-type]
