"""Masking: its statistics, tokens it never masks, and its inverse.

Shapes: b batch, n tokens, r uniforms.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mask_cases import BATCH, MASK, ORDINARY, is_near, make_batch
from torch import Tensor

from mnemic.models import IGNORE
from mnemic.objectives.pretraining.masking import (
    BERT_SHARES,
    MASKINGS,
    ReplacementShares,
    check_shares,
    mask_rows,
    mask_tokens,
)
from mnemic.objectives.uniforms import make_uniforms
from mnemic.recipe import ConfigError, build

MASK_SHARE, KEEP_SHARE = BERT_SHARES
NUM_UNIFORMS = 3  # per token, of the kinds that need the fewest
INDEPENDENT = ["tokens", "words", "entities"]  # kinds whose units are chosen one by one


def unmask_tokens(inputs: Tensor, targets: Tensor) -> Tensor:
    """Restore the original ids: b n."""
    return torch.where(targets == IGNORE, inputs, targets)


def mask(kind: str, seed: int = 0, rate: float = 0.15, shape: tuple[int, int] = BATCH):  # type: ignore[no-untyped-def]
    ids, unmaskable, starts = make_batch(seed, shape)
    masking = build(MASKINGS, {"kind": kind, "rate": rate})
    keys = torch.arange(shape[0]) + 1000 * seed
    masked = mask_rows(masking, ids, unmaskable, starts, keys, mask_id=MASK, random_ids=ORDINARY)
    return ids, unmaskable, starts, masked.mask, (masked.inputs, masked.targets)


@pytest.mark.parametrize("kind", MASKINGS)
def test_special_tokens_and_padding_are_never_masked(kind: str) -> None:
    ids, unmaskable, _, selected, (inputs, targets) = mask(kind, rate=1.0)
    assert torch.equal(selected, ~unmaskable)
    assert torch.equal(inputs[unmaskable], ids[unmaskable])
    assert (targets[unmaskable] == IGNORE).all()


@pytest.mark.parametrize("kind", [kind for kind in MASKINGS if kind != "spans"])
def test_eighty_ten_ten(kind: str) -> None:
    ids, _, _, selected, (inputs, targets) = mask(kind)
    assert torch.equal(targets != IGNORE, selected)
    assert torch.equal(targets[selected], ids[selected])
    assert torch.equal(inputs[~selected], ids[~selected])
    originals, replacements = ids[selected], inputs[selected]
    total = len(originals)
    assert is_near((replacements == MASK).sum(), total, MASK_SHARE)
    is_random = (replacements != MASK) & (replacements != originals)
    same = 1 / len(ORDINARY)  # a random token may be the right one
    assert is_near((replacements == originals).sum(), total, KEEP_SHARE + (1 - MASK_SHARE - KEEP_SHARE) * same)
    assert is_near(is_random.sum(), total, (1 - MASK_SHARE - KEEP_SHARE) * (1 - same))
    random_tokens = replacements[is_random]
    assert torch.isin(random_tokens, ORDINARY).all()
    assert len(random_tokens.unique()) > 0.6 * len(ORDINARY)
    assert is_near((random_tokens < 500).sum(), len(random_tokens), (ORDINARY < 500).float().mean().item())


@pytest.mark.parametrize("rate", [0.15, 0.4])
def test_the_rate_of_tokens(rate: float) -> None:
    _, unmaskable, _, selected, _ = mask("tokens", rate=rate)
    assert is_near(selected.sum(), (~unmaskable).sum(), rate)
    both = selected[:, 1:] & selected[:, :-1]  # neighbors are selected independently
    assert is_near(both.sum(), (~unmaskable[:, 1:] & ~unmaskable[:, :-1]).sum(), rate**2)


@pytest.mark.parametrize("rate", [0.15, 0.4])
def test_the_rate_of_words(rate: float) -> None:
    _, unmaskable, starts, selected, _ = mask("words", rate=rate)
    word_heads = starts & ~unmaskable
    assert is_near((selected & word_heads).sum(), word_heads.sum(), rate)
    share = (selected.sum() / (~unmaskable).sum()).item()
    assert abs(share - rate) < 0.01


def test_words_are_masked_whole() -> None:
    """Against a plain loop, word by word."""
    _, unmaskable, starts = make_batch(shape=(6, 40))
    uniforms = make_uniforms(torch.arange(6), 40, 1)[0]
    selected = build(MASKINGS, {"kind": "words", "rate": 0.3})(unmaskable, starts, uniforms.unsqueeze(0))
    for row in range(6):
        is_word_masked = False
        for position in range(40):
            if starts[row, position]:
                is_word_masked = bool(uniforms[row, position] < 0.3)
            assert selected[row, position] == (is_word_masked and not unmaskable[row, position])
    assert selected.any()


def test_words_of_one_token_are_tokens() -> None:
    _, unmaskable, _ = make_batch()
    uniforms = torch.rand(1, *BATCH, generator=torch.Generator().manual_seed(0))
    all_starts = torch.ones(BATCH, dtype=torch.bool)
    tokens, words = (build(MASKINGS, {"kind": kind}) for kind in ("tokens", "words"))
    assert torch.equal(words(unmaskable, all_starts, uniforms), tokens(unmaskable, all_starts, uniforms))


@pytest.mark.parametrize("kind", MASKINGS)
@given(seed=st.integers(0, 10_000), rate=st.floats(0.01, 1), n=st.integers(2, 30))
@settings(max_examples=40, deadline=None)
def test_masking_can_be_undone(kind: str, seed: int, rate: float, n: int) -> None:
    ids, _, _, _, corrupted = mask(kind, seed, rate, (3, n))
    assert torch.equal(unmask_tokens(*corrupted), ids)


def test_uniforms_of_a_torch_generator_work_too() -> None:
    ids, unmaskable, starts = make_batch()
    uniforms = torch.rand(NUM_UNIFORMS, *BATCH, generator=torch.Generator().manual_seed(1))
    selected = build(MASKINGS, {"kind": "tokens"})(unmaskable, starts, uniforms[:1])
    corrupted = mask_tokens(ids, selected, uniforms[1:], mask_id=torch.tensor(MASK), random_ids=ORDINARY)
    assert is_near(selected.sum(), (~unmaskable).sum(), 0.15)
    assert torch.equal(unmask_tokens(*corrupted), ids)


def test_the_largest_uniform_gives_an_ordinary_token() -> None:
    ids = torch.full((1, 4), 7)
    largest = torch.full((2, 1, 4), 1 - 2**-24)
    inputs, _ = mask_tokens(ids, ids > 0, largest, mask_id=MASK, random_ids=ORDINARY)
    assert (inputs == ORDINARY[-1]).all()


def test_equal_seeds_give_equal_masks() -> None:
    """The same seed gives the same mask in any batch and with any padding."""
    first = make_uniforms(torch.tensor([11, 12, 13]), 20, NUM_UNIFORMS)
    second = make_uniforms(torch.tensor([99, 13]), 33, NUM_UNIFORMS)
    assert torch.equal(first[:, 2], second[:, 1, :20])
    assert not torch.equal(first[:, 0], first[:, 1])
    assert not torch.isin(first[:, 0], first[:, 1]).any()
    integers = (make_uniforms(torch.arange(3), 200, NUM_UNIFORMS) * 2**24).long()
    num_duplicates = integers.numel() - len(integers.unique())  # expected for 1,800 of 16 million
    assert num_duplicates <= 2


def test_uniforms_are_uniform_and_independent() -> None:
    """For neighboring and distant seeds: 16 equal bins, no correlation along any axis."""
    for seeds in (torch.arange(200), torch.arange(200) * 2**54 - 2**62):
        uniforms = make_uniforms(seeds, 500, NUM_UNIFORMS)
        assert uniforms.shape == (NUM_UNIFORMS, 200, 500)
        assert uniforms.dtype == torch.float32
        assert uniforms.min() >= 0
        assert uniforms.max() < 1
        bins = torch.bincount((uniforms.flatten() * 16).long(), minlength=16)
        assert all(is_near(count, uniforms.numel(), 1 / 16) for count in bins)
        centered = uniforms.double() - 0.5
        for shift, axis in [(1, 0), (1, 1), (1, 2), (2, 2), (7, 1)]:
            product = (centered * centered.roll(shift, axis)).mean() * 12
            assert abs(product) < 4.5 / uniforms.numel() ** 0.5


def test_uniforms_never_change() -> None:
    """Static masks of an old run must be the same in all later versions."""
    numbers = (make_uniforms(torch.tensor([0, 2**62 + 1]), 2, 1)[0] * 2**24).long()
    assert numbers.tolist() == splitmix64([0, 2**62 + 1], 2)


def splitmix64(seeds: list[int], length: int) -> list[list[int]]:
    """Compute splitmix64 with Python integers; return the highest 24 bits."""
    modulus = 2**64

    def mix_bits(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % modulus
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % modulus
        return z ^ (z >> 31)

    step = 0x9E3779B97F4A7C15
    rows = [[(mix_bits(seed) + (position + 1) * step) % modulus for position in range(length)] for seed in seeds]
    return [[mix_bits(number) >> 40 for number in row] for row in rows]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("kind", MASKINGS)
def test_a_gpu_masks_the_same(kind: str) -> None:
    ids, unmaskable, starts = make_batch()
    results = []
    for device in ("cpu", "cuda"):
        rows = [values.to(device) for values in (ids, unmaskable, starts, torch.arange(BATCH[0]))]
        masked = mask_rows(build(MASKINGS, {"kind": kind}), *rows, mask_id=MASK, random_ids=ORDINARY.to(device))
        results.append([tensor.cpu() for tensor in masked])
    assert all(torch.equal(cpu_tensor, gpu_tensor) for cpu_tensor, gpu_tensor in zip(*results))


@pytest.mark.parametrize("kind", MASKINGS)
def test_batch_mates_and_padding_change_no_mask(kind: str) -> None:
    ids, unmaskable, starts = make_batch(shape=(6, 60))
    unmaskable[:, 40:] = True
    starts[:, 40:] = True
    masking = build(MASKINGS, {"kind": kind, "rate": 0.3})
    keys = torch.arange(6) + 50
    options = {"mask_id": MASK, "random_ids": ORDINARY}
    together = mask_rows(masking, ids, unmaskable, starts, keys, **options)
    for row in range(6):
        alone = mask_rows(
            masking,
            *(values[row : row + 1, :40] for values in (ids, unmaskable, starts)),
            keys[row : row + 1],
            **options,
        )
        assert all(torch.equal(batch[row, :40], single[0]) for batch, single in zip(together, alone))
    assert together.mask.any()


def test_other_shares_of_replacements() -> None:
    """ELECTRA masks 85 % of the chosen tokens and shows the others."""
    ids, unmaskable, starts = make_batch()
    masked = mask_rows(
        build(MASKINGS, {"kind": "tokens"}), ids, unmaskable, starts, torch.arange(BATCH[0]),
        mask_id=MASK, random_ids=ORDINARY, shares=ReplacementShares(0.85, 0.15),
    )  # fmt: skip
    assert is_near((masked.inputs[masked.mask] == MASK).sum(), masked.mask.sum(), 0.85)
    assert torch.equal(masked.inputs[masked.inputs != MASK], ids[masked.inputs != MASK])
    with pytest.raises(ConfigError, match=r"at most 1 together, not 0\.9 and 0\.2"):
        check_shares(ReplacementShares(0.9, 0.2))


@pytest.mark.parametrize("kind", MASKINGS)
def test_a_rate_above_one_is_refused(kind: str) -> None:
    with pytest.raises(ConfigError, match="above 0 and up to 1, not 15"):
        build(MASKINGS, {"kind": kind, "rate": 15.0})
