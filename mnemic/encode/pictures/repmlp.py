"""RepMLP: fully connected layers over the tiles of a map, trained with convolutions beside them.

Shapes: b maps, c channels, y x rows and columns of a map, t tiles of all maps, h w rows and columns
of a tile, q its pixels h·w, g groups.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from mnemic.recipe import ConfigError

Module = TypeVar("Module", bound=nn.Module)
DEFAULT_KERNELS = (1, 3, 5)


class RepMLPLayer(nn.Module):
    """Mix all pixels and channels of each tile by one matrix.

    RepMLP (Ding et al. 2021, arXiv:2105.01883, section 3). Three parts of a map c y x, which is cut
    into tiles of ``tile`` × ``tile``: the *global perceptron* adds to each tile what two layers
    make of the means of all tiles (left out if there is one tile); the *partition perceptron* is a
    matrix over the c·h·w numbers of a tile, in ``groups`` of channels; the *local perceptron* is a
    convolution per size in ``kernels``, inside the tile, with zeros around it. The norm of each is
    by batch.

    After training ``merge`` makes one matrix of the last two, exactly: at inference nothing but
    fully connected layers is left. A layer built with ``merged`` has that form.
    """

    def __init__(
        self, channels: int, size: int, *, tile: int, groups: int = 1, kernels: Sequence[int] = DEFAULT_KERNELS,
        merged: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        check_tiles(channels, size, tile, groups, kernels)
        self.channels, self.size, self.tile, self.groups, self.merged = channels, size, tile, groups, merged
        self.kernels = () if merged else tuple(kernels)
        num_inputs = channels * tile * tile
        self.look = GlobalPerceptron(channels, size // tile, merged=merged) if tile < size else None
        # A matrix per group: a convolution over one pixel of c·h·w channels.
        self.mix = nn.Conv1d(num_inputs, num_inputs, 1, groups=groups, bias=merged)
        self.mix_norm = nn.Identity() if merged else nn.BatchNorm1d(num_inputs)
        self.local: Any = nn.ModuleList(ConvNorm(channels, kernel, groups=groups) for kernel in self.kernels)

    def forward(self, x: Tensor) -> Tensor:
        """Mix the tiles of maps: b c y x → b c y x."""
        tiles = split_tiles(x if self.look is None else self.look(x), self.tile)  # t c h w
        mixed = self.mix_norm(self.mix(tiles.flatten(1).unsqueeze(-1)).squeeze(-1)).view_as(tiles)
        for branch in self.local:
            mixed = mixed + branch(tiles)
        return join_tiles(mixed, x.shape[-1])

    @torch.no_grad()
    def merge(self) -> "RepMLPLayer":
        """Return the same layer, with its statistics, as fully connected layers alone.

        It computes what this one computes in evaluation mode.
        """
        options: dict[str, Any] = {"tile": self.tile, "groups": self.groups, "merged": True}
        merged = RepMLPLayer(self.channels, self.size, **options).to(self.mix.weight)
        if self.look is not None and merged.look is not None:
            merged.look.load_state_dict(self.look.merge_norm())
        if self.merged:
            merged.load_state_dict(self.state_dict())
            return merged.eval()
        kernel, bias = merge_norm(self.mix.weight, self.mix_norm)
        if self.local:
            conv = merge_kernels([branch.merge_norm() for branch in self.local])
            matrix, conv_bias = unroll_kernel(conv, self.channels, self.tile, self.groups)
            kernel, bias = kernel + matrix.unsqueeze(-1), bias + conv_bias
        merged.mix.load_state_dict({"weight": kernel, "bias": bias})
        return merged.eval()


class GlobalPerceptron(nn.Module):
    """Add to each tile what W₂ relu(W₁ norm(means)) makes of the means of all tiles."""

    def __init__(self, channels: int, num_tiles: int, *, merged: bool, reduction: int = 4) -> None:
        super().__init__()
        num_means = channels * num_tiles * num_tiles
        self.num_tiles = num_tiles  # on a side
        self.norm = nn.Identity() if merged else nn.BatchNorm2d(channels)
        self.reduce = nn.Linear(num_means, max(num_means // reduction, 1))
        self.widen = nn.Linear(max(num_means // reduction, 1), num_means)

    def forward(self, x: Tensor) -> Tensor:
        """Add to maps, b c y x."""
        tile = x.shape[-1] // self.num_tiles
        means = self.norm(nn.functional.avg_pool2d(x, tile))  # b c y/h x/w
        update = self.widen(self.reduce(means.flatten(1)).relu()).view_as(means)
        return x + update.repeat_interleave(tile, 2).repeat_interleave(tile, 3)

    def merge_norm(self) -> dict[str, Tensor]:
        """Return the weights without the norm, whose statistics go into the first layer."""
        weights = {name: value for name, value in self.state_dict().items() if not name.startswith("norm")}
        if isinstance(self.norm, nn.BatchNorm2d):
            scale, shift = scale_and_shift(self.norm)
            num_pixels = self.num_tiles**2
            weights["reduce.bias"] = self.reduce.bias + self.reduce.weight @ shift.repeat_interleave(num_pixels)
            weights["reduce.weight"] = self.reduce.weight * scale.repeat_interleave(num_pixels)
        return weights


class Kernel(NamedTuple):
    """A convolution without its norm."""

    weight: Tensor  # c c/g k k
    bias: Tensor  # c


class ConvNorm(nn.Module):
    """A convolution that keeps the size, and the norm by batch."""

    def __init__(self, channels: int, kernel: int, *, groups: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel, padding=kernel // 2, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x))

    def merge_norm(self) -> Kernel:
        """Return the convolution that does both."""
        return Kernel(*merge_norm(self.conv.weight, self.norm))


def scale_and_shift(norm: Any) -> tuple[Tensor, Tensor]:
    """Return what a norm by batch multiplies and adds in evaluation mode, per channel."""
    scale = norm.weight / (norm.running_var + norm.eps).sqrt()
    return scale, norm.bias - norm.running_mean * scale


def merge_norm(weight: Tensor, norm: Any) -> tuple[Tensor, Tensor]:
    """Merge a norm into the weight, whose first axis it scales; return weight and bias."""
    scale, shift = scale_and_shift(norm)
    return weight * scale.view(-1, *[1] * (weight.dim() - 1)), shift


def merge_kernels(kernels: Sequence[Kernel]) -> Kernel:
    """Add convolutions of different sizes up to one of the largest."""
    largest = max(kernel.weight.shape[-1] for kernel in kernels)
    margins = [(largest - kernel.weight.shape[-1]) // 2 for kernel in kernels]
    padded = [nn.functional.pad(kernel.weight, [margin] * 4) for kernel, margin in zip(kernels, margins)]
    return Kernel(torch.stack(padded).sum(0), torch.stack([kernel.bias for kernel in kernels]).sum(0))


def unroll_kernel(kernel: Kernel, channels: int, tile: int, groups: int) -> tuple[Tensor, Tensor]:
    """Turn a convolution inside a tile into a matrix (cq cq/g) and a bias (cq).

    Column j is the convolution of a tile that is 1 at number j of each group and 0 elsewhere.
    """
    num_inputs = channels // groups * tile * tile
    basis = torch.eye(num_inputs).to(kernel.weight).repeat(1, groups).view(num_inputs, channels, tile, tile)
    columns = nn.functional.conv2d(basis, kernel.weight, padding=kernel.weight.shape[-1] // 2, groups=groups)
    return columns.flatten(1).mT.contiguous(), kernel.bias.repeat_interleave(tile * tile)


def split_tiles(x: Tensor, tile: int) -> Tensor:
    """Cut maps into tiles: b c y x → t c h w."""
    cut = x.unflatten(3, (-1, tile)).unflatten(2, (-1, tile))  # b c y/h h x/w w
    return cut.permute(0, 2, 4, 1, 3, 5).flatten(0, 2)


def join_tiles(tiles: Tensor, size: int) -> Tensor:
    """Join tiles to maps, ``size`` wide: t c h w → b c y x."""
    num_tiles = size // tiles.shape[-1]
    rows = tiles.unflatten(0, (-1, num_tiles, num_tiles)).permute(0, 3, 1, 4, 2, 5)  # b c y/h h x/w w
    return rows.flatten(4, 5).flatten(2, 3)


def merge_repmlp(network: Module) -> Module:
    """Copy a network for inference with all its RepMLP layers merged."""
    copy = deepcopy(network).eval()
    for parent in list(copy.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, RepMLPLayer):
                setattr(parent, name, child.merge())
    return copy


def check_tiles(channels: int, size: int, tile: int, groups: int, kernels: Sequence[int]) -> None:
    """Raise a ConfigError unless the tiles cover the map, and the groups the channels."""
    if tile < 1 or size % tile:
        raise ConfigError(f"tiles of {tile} × {tile} do not cover a map of {size} × {size}: set tile to a divisor")
    if groups < 1 or channels % groups:
        raise ConfigError(f"{channels} channels do not divide into {groups} groups: set groups to a divisor")
    if any(kernel < 1 or kernel % 2 == 0 or kernel > 2 * tile - 1 for kernel in kernels):
        raise ConfigError(f"kernels are odd numbers from 1 to {2 * tile - 1}, twice a tile less 1, not {list(kernels)}")
