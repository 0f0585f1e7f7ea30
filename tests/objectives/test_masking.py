"""Masking: its statistics, what it never touches, and that it can be undone.

Shapes: b batch, n tokens, r rolls.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mnemic.models import IGNORE
from mnemic.objectives.masking import KEEP_SHARE, MASK_SHARE, MASKINGS, NUM_UNIFORMS, mask_tokens
from mnemic.objectives.uniforms import make_uniforms
from mnemic.recipe import ConfigError, build

MASK = 4
ORDINARY = torch.tensor([1, *range(5, 1000)])
BATCH = (50, 2000)  # 100,000 tokens


def unmask_tokens(inputs: Tensor, targets: Tensor) -> Tensor:
    """Restore the original ids: b n."""
    return torch.where(targets == IGNORE, inputs, targets)


def is_near(count: int | Tensor, total: int | Tensor, share: float, *, apart: float = 4.5) -> bool:
    """Whether ``count`` of ``total`` is what chance gives with this share."""
    count, total = float(count), float(total)
    return abs(count - share * total) < apart * (share * (1 - share) * total) ** 0.5


def example(seed: int = 0, shape: tuple[int, int] = BATCH) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, fixed and starts: words of one to four tokens; the edges are special tokens."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 1000, shape, generator=generator)
    unmaskable = torch.zeros(shape, dtype=torch.bool)
    unmaskable[:, 0] = unmaskable[:, -1] = True
    unmaskable[0, shape[1] // 2 :] = True  # padding
    ids[unmaskable] = 3
    starts = torch.rand(shape, generator=generator) < 0.6
    starts |= unmaskable | unmaskable.roll(1, 1)
    return ids, unmaskable, starts


def mask(kind: str, seed: int = 0, rate: float = 0.15, shape: tuple[int, int] = BATCH):  # type: ignore[no-untyped-def]
    ids, unmaskable, starts = example(seed, shape)
    uniforms = make_uniforms(torch.arange(shape[0]) + 1000 * seed, shape[1], NUM_UNIFORMS)
    selected = build(MASKINGS, {"kind": kind, "rate": rate})(unmaskable, starts, uniforms[0])
    return (
        ids,
        unmaskable,
        starts,
        selected,
        mask_tokens(ids, selected, uniforms[1:], mask_id=MASK, random_ids=ORDINARY),
    )


@pytest.mark.parametrize("kind", MASKINGS)
def test_special_tokens_and_padding_are_never_masked(kind: str) -> None:
    ids, unmaskable, _, selected, (inputs, targets) = mask(kind, rate=1.0)
    assert torch.equal(selected, ~unmaskable)
    assert torch.equal(inputs[unmaskable], ids[unmaskable])
    assert (targets[unmaskable] == IGNORE).all()


@pytest.mark.parametrize("kind", MASKINGS)
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
    _, fixed, _, selected, _ = mask("tokens", rate=rate)
    assert is_near(selected.sum(), (~fixed).sum(), rate)
    both = selected[:, 1:] & selected[:, :-1]  # neighbours are chosen apart from each other
    assert is_near(both.sum(), (~fixed[:, 1:] & ~fixed[:, :-1]).sum(), rate**2)


@pytest.mark.parametrize("rate", [0.15, 0.4])
def test_the_rate_of_words(rate: float) -> None:
    _, fixed, starts, selected, _ = mask("words", rate=rate)
    heads = starts & ~fixed
    assert is_near((selected & heads).sum(), heads.sum(), rate)
    share = (selected.sum() / (~fixed).sum()).item()
    assert abs(share - rate) < 0.01


def test_words_are_masked_whole() -> None:
    """Slow twin: word by word, in Python."""
    _, fixed, starts = example(shape=(6, 40))
    uniforms = make_uniforms(torch.arange(6), 40, 1)[0]
    selected = build(MASKINGS, {"kind": "words", "rate": 0.3})(fixed, starts, uniforms)
    for row in range(6):
        word = False
        for position in range(40):
            if starts[row, position]:
                word = bool(uniforms[row, position] < 0.3)
            assert selected[row, position] == (word and not fixed[row, position])
    assert selected.any()


def test_words_of_one_token_are_tokens() -> None:
    _, fixed, _ = example()
    uniforms = torch.rand(BATCH, generator=torch.Generator().manual_seed(0))
    alone = torch.ones(BATCH, dtype=torch.bool)
    tokens, words = (build(MASKINGS, {"kind": kind}) for kind in ("tokens", "words"))
    assert torch.equal(words(fixed, alone, uniforms), tokens(fixed, alone, uniforms))


@pytest.mark.parametrize("kind", MASKINGS)
@given(seed=st.integers(0, 10_000), rate=st.floats(0.01, 1), n=st.integers(2, 30))
@settings(max_examples=40, deadline=None)
def test_masking_can_be_undone(kind: str, seed: int, rate: float, n: int) -> None:
    ids, _, _, _, corrupted = mask(kind, seed, rate, (3, n))
    assert torch.equal(unmask_tokens(*corrupted), ids)


def test_rolls_of_a_generator_do_as_well() -> None:
    ids, fixed, starts = example()
    uniforms = torch.rand(NUM_UNIFORMS, *BATCH, generator=torch.Generator().manual_seed(1))
    selected = build(MASKINGS, {"kind": "tokens"})(fixed, starts, uniforms[0])
    corrupted = mask_tokens(ids, selected, uniforms[1:], mask_id=torch.tensor(MASK), random_ids=ORDINARY)
    assert is_near(selected.sum(), (~fixed).sum(), 0.15)
    assert torch.equal(unmask_tokens(*corrupted), ids)


def test_the_largest_roll_is_still_an_ordinary_token() -> None:
    ids = torch.full((1, 4), 7)
    top = torch.full((2, 1, 4), 1 - 2**-24)
    inputs, _ = mask_tokens(ids, ids > 0, top, mask_id=MASK, random_ids=ORDINARY)
    assert (inputs == ORDINARY[-1]).all()


def test_static_and_dynamic_are_a_matter_of_keys() -> None:
    """The same key gives the same mask in any batch, at any padding; another key another one."""
    first = make_uniforms(torch.tensor([11, 12, 13]), 20, NUM_UNIFORMS)
    second = make_uniforms(torch.tensor([99, 13]), 33, NUM_UNIFORMS)
    assert torch.equal(first[:, 2], second[:, 1, :20])
    assert not torch.equal(first[:, 0], first[:, 1])
    assert not torch.isin(first[:, 0], first[:, 1]).any()
    alone = (make_uniforms(torch.arange(3), 200, NUM_UNIFORMS) * 2**24).long()
    shared = alone.numel() - len(alone.unique())  # by chance, of 1,800 among 16 million
    assert shared <= 2


def test_rolls_are_uniform_and_independent() -> None:
    """Of neighbouring keys, as of far ones: 16 equal bins, and no correlation along any axis."""
    for keys in (torch.arange(200), torch.arange(200) * 2**54 - 2**62):
        uniforms = make_uniforms(keys, 500, NUM_UNIFORMS)
        assert uniforms.shape == (NUM_UNIFORMS, 200, 500)
        assert uniforms.dtype == torch.float32
        assert uniforms.min() >= 0
        assert uniforms.max() < 1
        bins = torch.bincount((uniforms.flatten() * 16).long(), minlength=16)
        assert all(is_near(count, uniforms.numel(), 1 / 16) for count in bins)
        centred = uniforms.double() - 0.5
        for shift, axis in [(1, 0), (1, 1), (1, 2), (2, 2), (7, 1)]:
            product = (centred * centred.roll(shift, axis)).mean() * 12
            assert abs(product) < 4.5 / uniforms.numel() ** 0.5


def test_rolls_never_change() -> None:
    """Static masks of an old run have to come out of every later version."""
    numbers = (make_uniforms(torch.tensor([0, 2**62 + 1]), 2, 1)[0] * 2**24).long()
    assert numbers.tolist() == reference([0, 2**62 + 1], 2)


def reference(keys: list[int], length: int) -> list[list[int]]:
    """Splitmix64 in Python's whole numbers, the highest 24 bits."""
    modulus = 2**64

    def mix_bits(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % modulus
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % modulus
        return z ^ (z >> 31)

    step = 0x9E3779B97F4A7C15
    rows = [[(mix_bits(key) + (position + 1) * step) % modulus for position in range(length)] for key in keys]
    return [[mix_bits(number) >> 40 for number in row] for row in rows]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_a_gpu_masks_the_same() -> None:
    ids, fixed, starts = example()
    masking = build(MASKINGS, {"kind": "words"})
    results = []
    for device in ("cpu", "cuda"):
        uniforms = make_uniforms(torch.arange(BATCH[0], device=device), BATCH[1], NUM_UNIFORMS)
        selected = masking(fixed.to(device), starts.to(device), uniforms[0])
        kwargs = {"mask_id": torch.tensor(MASK, device=device), "random_ids": ORDINARY.to(device)}
        results.append([tensor.cpu() for tensor in mask_tokens(ids.to(device), selected, uniforms[1:], **kwargs)])
    assert all(torch.equal(cpu_tensor, gpu_tensor) for cpu_tensor, gpu_tensor in zip(*results))


@pytest.mark.parametrize("kind", MASKINGS)
def test_a_rate_is_a_share(kind: str) -> None:
    with pytest.raises(ConfigError, match="above 0 and up to 1, not 15"):
        build(MASKINGS, {"kind": kind, "rate": 15.0})
