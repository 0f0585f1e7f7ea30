"""bfloat16 for inference: chosen by the CPU, close to float32, and training continues."""

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


def make_encoder() -> TransformerEncoder:
    torch.manual_seed(0)
    return build_encoder(SHAPE)


def mean_states(module: TransformerEncoder) -> torch.Tensor:
    return torch.stack([states.mean(0) for states in encode_ragged(module, TEXTS)])


def count_bfloat16_layers(module: nn.Module) -> int:
    return sum(isinstance(submodule, BFloat16Linear) for submodule in module.modules())


@pytest.mark.parametrize("flags", [{"avx512_bf16"}, {"amx_bf16"}, {"avx512f", "avx2"}, set()])
def test_auto_asks_the_processor(flags: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "read_cpu_flags", lambda: frozenset(flags))
    has_bfloat16 = bool(flags & {"avx512_bf16", "amx_bf16"})
    assert (count_bfloat16_layers(prepare_for_inference(make_encoder())) > 0) == has_bfloat16
    assert count_bfloat16_layers(prepare_for_inference(make_encoder(), "float32")) == 0
    assert count_bfloat16_layers(prepare_for_inference(make_encoder(), "bfloat16")) > 0


def test_rounded_products_keep_the_direction() -> None:
    """States stay float32; layers with shared weights are converted once and stay shared."""
    float32_encoder, bfloat16_encoder = (
        prepare_for_inference(make_encoder(), precision_name) for precision_name in ("float32", "bfloat16")
    )
    expected, actual = mean_states(float32_encoder), mean_states(bfloat16_encoder)
    assert actual.dtype == torch.float32
    assert not torch.equal(actual, expected)
    assert nn.functional.cosine_similarity(actual, expected).min() > 0.9999
    assert count_bfloat16_layers(bfloat16_encoder) == 1 + 2 * 6  # the embedding projection, and six products per group
    assert bfloat16_encoder.stack.blocks[0] is bfloat16_encoder.stack.blocks[1]


def test_a_copy_is_read_and_the_encoder_goes_on_training() -> None:
    trainable = make_encoder().train()
    copy = prepare_for_inference(trainable, "bfloat16")
    assert not copy.training
    assert not any(weight.requires_grad for weight in copy.parameters())
    assert trainable.training
    assert all(weight.requires_grad for weight in trainable.parameters())
    assert {weight.dtype for weight in trainable.parameters()} == {torch.float32}
    torch.testing.assert_close(mean_states(prepare_for_inference(trainable, "float32")), mean_states(trainable.eval()))


def test_an_unknown_precision() -> None:
    with pytest.raises(ValueError, match="auto, float32 or bfloat16, not 'half'"):
        prepare_for_inference(make_encoder(), "half")  # type: ignore[arg-type]
