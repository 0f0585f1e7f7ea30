"""Time and memory by length: what is counted, predicted and fitted."""

import pytest
import torch
from torch import Tensor, nn

from mnemic.reproduce.attention.cost import (
    MIB,
    build_cost_stack,
    find_budget_reason,
    fit_slope,
    measure_depths,
    measure_length,
    measure_pass,
    predict_cost,
)
from mnemic.reproduce.attention.rows import load_rows
from mnemic.reproduce.attention.scale import CostSettings, load_scale

COST = "cost={width=8, depth=1, lengths=[8, 16], repeats=3, depths=[1, 3], depth_length=8}"
SETTINGS = CostSettings(width=8, depth=1, lengths=[512, 1024], max_seconds=8, max_gb=1)


class Squares(nn.Module):
    """A stack that keeps its input and n² numbers for the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8, 8))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        y = x @ self.weight  # keeps x, and the weight, which does not count
        return (y @ x.mT).exp().sum(-1)  # keeps x, y and n² results


def test_what_the_backward_pass_needs_is_counted_once_and_without_weights() -> None:
    for length in (4, 10):
        cost = measure_pass(Squares(), 8, length, "cpu")
        assert cost.saved_bytes == 4 * (2 * length * 8 + length**2)
        assert cost.seconds > 0
        assert cost.peak_bytes is None


def test_more_layers_keep_more() -> None:
    scale = load_scale("small", [COST])
    saved = measure_depths(load_rows()["full"], scale, "cpu")
    assert list(saved) == ["1", "3"]
    assert saved["3"] > 2 * saved["1"] > 0


def test_rows_are_measured_in_turns_beside_the_baseline() -> None:
    scale, full = load_scale("small", [COST]), load_rows()["full"]
    cells: dict = {}
    order = list(measure_length({"full": full, "other": full}, scale, 8, "cpu", {}, cells))
    assert order == ["full", "other"] * 3
    assert cells["other"]["ratio"] == pytest.approx(cells["other"]["seconds"] / cells["full"]["seconds"], abs=1e-3)
    stack = build_cost_stack(full, scale, 8, 1, "cpu")
    assert cells["full"]["saved_mib"] == pytest.approx(measure_pass(stack, 8, 8, "cpu").saved_bytes / MIB, abs=1e-3)


def test_a_length_beyond_the_budget_is_left_out_with_the_reason() -> None:
    cells = [{"tokens": 1024, "seconds": 1.0, "saved_mib": 1.0}, {"tokens": 2048, "seconds": 3.0, "saved_mib": 2.0}]
    assert find_budget_reason([], 512, SETTINGS) == ""
    assert find_budget_reason(cells[:1], 2048, SETTINGS) == ""
    assert find_budget_reason(cells, 4096, SETTINGS) == "about 9 s a pass at 4,096 tokens, over 8 s"
    heavy = [{**cell, "seconds": 0.1, "saved_mib": 300.0} for cell in cells]
    assert find_budget_reason(heavy[:1], 2048, SETTINGS).startswith("about 1 GB at 2,048 tokens")
    reason = {"tokens": 4096, "reason": "too slow"}
    assert find_budget_reason([*cells, reason], 8192, SETTINGS) == "too slow"


def test_costs_are_predicted_by_their_growth_at_most_by_the_square() -> None:
    assert predict_cost([(512, 1.0)], 1024) == 4
    assert predict_cost([(512, 1.0), (1024, 2.0)], 4096) == pytest.approx(8)
    assert predict_cost([(512, 1.0), (1024, 9.0)], 2048) == pytest.approx(36)
    assert predict_cost([(512, 5.0), (1024, 4.0)], 2048) == pytest.approx(8)


@pytest.mark.parametrize("power", [1, 1.5, 2])
def test_the_slope_is_fitted_on_long_texts(power: float) -> None:
    cells = [{"tokens": 2**k, "seconds": 1.0 if k < 11 else 1e-6 * (2**k) ** power} for k in range(9, 16)]
    assert fit_slope(cells, "seconds") == pytest.approx(power, abs=1e-3)
    assert fit_slope(cells[:3], "seconds") is None
    assert fit_slope([*cells, {"tokens": 2**16, "reason": "too slow"}], "seconds") == pytest.approx(power, abs=1e-3)
