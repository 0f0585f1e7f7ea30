"""Norms of Transformer layers: equal to torch's, blind to padding, and kept with the weights.

Shapes: b batch, n tokens, d width.
"""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.encode.norms import NORMS, MaskedBatchNorm, make_norm, normalize
from mnemic.encode.packed import PackedMask
from mnemic.encode.stacks import DecoderStack, EncoderStack, StackContext
from mnemic.recipe import ConfigError
from mnemic.train.early_stopping import BestWeights

D = 16
KINDS = pytest.mark.parametrize("kind", NORMS)
PLACES = pytest.mark.parametrize("norm", ["pre", "post"])
MASK = torch.arange(6) < torch.tensor([6, 4, 1])[:, None]  # b n


def draw_states(seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(3, 6, D, generator=generator) * 3 + torch.arange(D)


def make_stack(kind: Any, norm: Any, **options: Any) -> EncoderStack:
    torch.manual_seed(0)
    stack = EncoderStack(D, norm=norm, norm_kind=kind, **options)
    with torch.no_grad():
        for weight in stack.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return stack


def test_batch_norm_is_that_of_torch_on_the_real_tokens() -> None:
    """In training, with its averages, and after it."""
    ours, twin = MaskedBatchNorm(D, eps=1e-4), nn.BatchNorm1d(D, eps=1e-4)
    with torch.no_grad():
        for weight in (ours.weight, ours.bias):
            weight.copy_(torch.randn(D, generator=torch.Generator().manual_seed(1)))
        twin.weight.copy_(ours.weight)
        twin.bias.copy_(ours.bias)
    for seed in range(3):
        x = draw_states(seed).requires_grad_()
        other = x.detach()[MASK].requires_grad_()
        result, expected = ours(x, MASK)[MASK], twin(other)
        torch.testing.assert_close(result, expected)
        gradients = torch.autograd.grad(result.square().sum(), x)[0]
        torch.testing.assert_close(gradients[MASK], torch.autograd.grad(expected.square().sum(), other)[0])
        assert not gradients[~MASK].any()
    torch.testing.assert_close(ours.mean, twin.running_mean)
    torch.testing.assert_close(ours.variance, twin.running_var)
    torch.testing.assert_close(ours.eval()(x, MASK)[MASK], twin.eval()(other))


def test_rms_divides_by_the_root_mean_square_and_none_does_nothing() -> None:
    x = draw_states()
    rms = x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(normalize(make_norm("rms", D, 1e-5), x, None), rms)
    assert normalize(make_norm("none", D, 1e-5), x, None) is x


def test_batches_without_tokens_change_nothing() -> None:
    norm = MaskedBatchNorm(D)
    assert norm(draw_states(), torch.zeros_like(MASK)).isfinite().all()
    assert torch.equal(norm.mean, torch.zeros(D))
    assert torch.equal(norm.variance, torch.ones(D))
    one = norm(draw_states()[:1, :1], torch.ones(1, 1, dtype=torch.bool))
    torch.testing.assert_close(one, torch.zeros(1, 1, D))
    assert norm.variance.isfinite().all()


@KINDS
@PLACES
@pytest.mark.parametrize("is_training", [True, False])
def test_padding_changes_no_real_token(kind: Any, norm: Any, is_training: bool) -> None:
    x, stack = draw_states(), make_stack(kind, norm).train(is_training)
    changed = torch.where(MASK.unsqueeze(-1), x, x + 100)
    states = stack(x, MASK)
    torch.testing.assert_close(states, stack(changed, MASK))
    assert not states[~MASK].any()


@KINDS
@PLACES
def test_after_training_a_text_is_alone(kind: Any, norm: Any) -> None:
    x, stack = draw_states(), make_stack(kind, norm)
    stack(x, MASK)  # the averages of ``batch`` move
    stack.eval()
    torch.testing.assert_close(stack(x, MASK)[1:2, :4], stack(x[1:2, :4], MASK[1:2, :4]))


@KINDS
@PLACES
def test_context_and_rows_are_normalized_as_tokens(kind: Any, norm: Any) -> None:
    """States before the tokens, as context, are as the tokens were; masks may be b n n."""
    x, stack = draw_states(), make_stack(kind, norm, depth=1).eval()
    mask = torch.ones(3, 6, dtype=torch.bool)
    context = StackContext((x[:, :2],), mask[:, :2])
    torch.testing.assert_close(stack(x[:, 2:], mask[:, 2:], context), stack(x, mask)[:, 2:])
    torch.testing.assert_close(stack(x, mask.unsqueeze(1).expand(-1, 6, -1)), stack(x, mask))
    stack.train()
    torch.testing.assert_close(stack(x, mask.unsqueeze(1).expand(-1, 6, -1)), stack(x, mask))


@KINDS
def test_every_weight_of_a_norm_gets_a_gradient(kind: Any) -> None:
    stack = make_stack(kind, "pre")
    stack(draw_states(), MASK).square().sum().backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in stack.norm.parameters())


@pytest.mark.parametrize("kind", ["rms", "none"])
@PLACES
def test_a_decoder_takes_the_kinds_that_see_no_later_token(kind: Any, norm: Any) -> None:
    torch.manual_seed(0)
    decoder, x = DecoderStack(D, cross=False, norm=norm, norm_kind=kind).eval(), draw_states() / 10
    mask = torch.ones(3, 6, dtype=torch.bool)
    changed = torch.cat([x[:, :4], x[:, 4:] + 1], 1)
    assert torch.equal(decoder(x, mask).states[:, :4], decoder(changed, mask).states[:, :4])
    with pytest.raises(ConfigError, match="sees later tokens; in a decoder norm_kind is layer, rms, none"):
        DecoderStack(D, norm_kind="batch")


def test_packed_texts_are_unpacked_for_a_norm_over_the_batch() -> None:
    assert EncoderStack(D).supports_packing
    stack = make_stack("batch", "post")
    assert not stack.supports_packing
    x, lengths = draw_states(), [6, 4, 1]
    packed = PackedMask.from_lengths(lengths, x.device)
    torch.testing.assert_close(stack(x[MASK].unsqueeze(0), packed)[0], stack(x, MASK)[MASK])


def test_the_best_weights_have_their_averages() -> None:
    stack, best = make_stack("batch", "post"), BestWeights()
    stack(draw_states(1), MASK)
    best.update(stack, torch.tensor(0.5))
    stack.eval()
    expected = stack(draw_states(), MASK)
    stack.train()
    stack(draw_states(2), MASK)
    best.update(stack, torch.tensor(0.9))  # worse
    again = BestWeights.from_state_dict(best.state_dict(), torch.device("cpu"))
    again.copy_to(stack)
    torch.testing.assert_close(stack.eval()(draw_states(), MASK), expected)
