"""Memories of regions: what soft and hard looks find."""

import torch
from memory_cases import contents, make, write_states

from mnemic.memory.regions import SampledRegionMemory, draw_slots


def test_the_gaze_is_an_mlp_of_region_and_query() -> None:
    """Equations 4, 5 and 13, written out."""
    memory = make("regions")
    regions, query = contents(memory, 1, 5), contents(memory, 1, 1, seed=2)  # with their keys
    reading = memory.read(write_states(memory, regions).state, query)
    scores = []
    for key in regions[0, :, 1]:
        scores.append(memory.out.weight[0] @ torch.tanh(key + memory.query.weight @ query[0, 0, 0]))
    weights = torch.stack(scores).softmax(0)
    torch.testing.assert_close(reading.weights[0, 0, 0, 0], weights)
    torch.testing.assert_close(reading.found[0, 0], weights @ regions[0, :, 0])


def test_a_hard_look_finds_one_region() -> None:
    memory = make("regions, sampled")
    regions, query = contents(memory, 1, 5), contents(memory, 1, 1, seed=2)
    state = write_states(memory, regions).state
    best = memory.read(state, query)
    assert best.weights.sum() == best.weights.max() == 1
    assert best.weights.argmax() == best.scores.argmax()
    assert torch.equal(best.found[0, 0], regions[0, int(best.weights.argmax()), 0])
    forced = memory.read(state, query, teacher_slots=torch.tensor([[[3]]]))
    assert torch.equal(forced.found[0, 0], regions[0, 3, 0])


def test_looks_are_drawn_from_the_gaze_and_half_of_them_are_soft() -> None:
    torch.manual_seed(0)
    memory = SampledRegionMemory(6, slots=8).train()
    regions, query = contents(memory, 1, 5, size=3.0), contents(memory, 1, 1, seed=2)
    state = write_states(memory, regions).state
    count = 20_000
    many = type(state)(*(field.expand(count, *field.shape[1:]) for field in state))
    uniforms = torch.rand(count, 2, generator=torch.Generator().manual_seed(0))
    reading = memory.read(many, query.expand(count, -1, -1, -1), uniforms=uniforms)
    weights, shares = reading.weights[:, 0, 0, 0], reading.scores[0, 0, 0, 0].softmax(-1)
    is_soft = uniforms[:, 0] < 0.5
    torch.testing.assert_close(weights[is_soft], shares.expand(int(is_soft.sum()), -1))
    assert weights[~is_soft].max(1).values.eq(1).all()
    torch.testing.assert_close(weights[~is_soft].mean(0), shares, atol=0.02, rtol=0)


def test_no_slot_without_a_share_is_drawn() -> None:
    shares = torch.tensor([[[0.0, 0.5, 0.0, 0.5, 0.0]]]).expand(4, -1, -1)
    uniforms = torch.tensor([[0.0], [0.49], [0.5], [1 - 2**-24]])
    assert draw_slots(shares, uniforms).flatten().tolist() == [1, 1, 3, 3]
