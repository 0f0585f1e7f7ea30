"""bfloat16 for reading: chosen by the machine, close to float32, no hindrance to training."""

import pytest
import torch
from torch import nn

from mnemic.encode import TransformerEncoder, encode_ragged, precision, prepare_for_inference
from mnemic.encode.huggingface.shape import EncoderShape, build_encoder
from mnemic.encode.precision import BFloat16Linear

SHAPE = EncoderShape(
    vocab=60, width=64, depth=4, heads=4, inner=128, length=24, segments=2, activation="gelu",
    epsilon=1e-12, dropout=0.1, attention_dropout=0.1, narrow=16, groups=2,
)  # fmt: skip
TEXTS = [[5, 6, 7], [9] * 20, list(range(10, 30))]


def encoder() -> TransformerEncoder:
    torch.manual_seed(0)
    return build_encoder(SHAPE)


def vectors(module: TransformerEncoder) -> torch.Tensor:
    return torch.stack([states.mean(0) for states in encode_ragged(module, TEXTS)])


def rounded(module: nn.Module) -> int:
    return sum(isinstance(part, BFloat16Linear) for part in module.modules())


@pytest.mark.parametrize("flags", [{"avx512_bf16"}, {"amx_bf16"}, {"avx512f", "avx2"}, set()])
def test_auto_asks_the_processor(flags: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "read_cpu_flags", lambda: frozenset(flags))
    fast = bool(flags & {"avx512_bf16", "amx_bf16"})
    assert (rounded(prepare_for_inference(encoder())) > 0) == fast
    assert rounded(prepare_for_inference(encoder(), "float32")) == 0
    assert rounded(prepare_for_inference(encoder(), "bfloat16")) > 0


def test_rounded_products_keep_the_direction() -> None:
    """States stay float32; layers that share weights are rounded once and share them still."""
    plain, fast = (prepare_for_inference(encoder(), kind) for kind in ("float32", "bfloat16"))
    wanted, found = vectors(plain), vectors(fast)
    assert found.dtype == torch.float32
    assert not torch.equal(found, wanted)
    assert nn.functional.cosine_similarity(found, wanted).min() > 0.9999
    assert rounded(fast) == 1 + 2 * 6  # the widening, and six products in each group
    assert fast.stack.blocks[0] is fast.stack.blocks[1]


def test_a_copy_is_read_and_the_encoder_goes_on_training() -> None:
    own = encoder().train()
    copy = prepare_for_inference(own, "bfloat16")
    assert not copy.training
    assert not any(weight.requires_grad for weight in copy.parameters())
    assert own.training
    assert all(weight.requires_grad for weight in own.parameters())
    assert {weight.dtype for weight in own.parameters()} == {torch.float32}
    torch.testing.assert_close(vectors(prepare_for_inference(own, "float32")), vectors(own.eval()))


def test_an_unknown_precision() -> None:
    with pytest.raises(ValueError, match="auto, float32 or bfloat16, not 'half'"):
        prepare_for_inference(encoder(), "half")  # type: ignore[arg-type]
