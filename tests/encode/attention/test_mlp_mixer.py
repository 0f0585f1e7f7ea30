"""Token mixing by a network over positions.

Shapes: b batch, n tokens, d width.
"""

import pytest
import torch
from torch import Tensor, nn

from mnemic.encode.attention import TokenMixing
from mnemic.encode.stacks import DecoderStack, EncoderStack
from mnemic.encode.transformer import TransformerEncoder
from mnemic.recipe import ConfigError

D, LENGTH = 6, 9


def make_mixing(inner: int = 0) -> TokenMixing:
    torch.manual_seed(0)
    return TokenMixing(length=LENGTH, inner=inner).double().eval()


def random_states(*shape: int) -> Tensor:
    return torch.randn(*shape, D, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def length_mask(lengths: list[int], n: int) -> Tensor:
    return torch.arange(n) < torch.tensor(lengths)[:, None]


def test_it_equals_a_plain_loop() -> None:
    """Channel by channel and position by position, with zeros at padding."""
    mixing, x, lengths = make_mixing(inner=7), random_states(2, LENGTH), [LENGTH, 5]
    mask = length_mask(lengths, LENGTH)
    actual = mixing(x, x, mask[:, None, None])
    for text, length in enumerate(lengths):
        for channel in range(D):
            column = [float(x[text, n, channel]) if n < length else 0.0 for n in range(LENGTH)]
            inner = mixing.widen.weight @ torch.tensor(column).double() + mixing.widen.bias
            expected = mixing.narrow.weight @ nn.functional.gelu(inner)
            torch.testing.assert_close(actual[text, :length, channel], expected[:length])
        assert (actual[text, length:] == 0).all()


def test_a_shorter_text_uses_the_first_weights() -> None:
    mixing, x = make_mixing(), random_states(2, 4)
    corner = TokenMixing(length=4, inner=4 * LENGTH).double().eval()
    with torch.no_grad():
        corner.widen.weight.copy_(mixing.widen.weight[:, :4])
        corner.widen.bias.copy_(mixing.widen.bias)
        corner.narrow.weight.copy_(mixing.narrow.weight[:4])
    mask = torch.ones(1, 1, 1, 4, dtype=torch.bool)
    torch.testing.assert_close(mixing(x, x, mask), corner(x, x, mask))


def test_padding_is_hidden_after_the_norm() -> None:
    """A norm's bias would make padding visible; the states are those of each text alone."""
    torch.manual_seed(0)
    spec = {"kind": "mlp-mixer", "length": LENGTH}
    stack = EncoderStack(D, norm="pre", attention=spec).double().eval()
    with torch.no_grad():
        for block in stack.blocks:
            block.around_attention.norm.bias.normal_()
    x, mask = random_states(2, LENGTH), length_mask([LENGTH, 4], LENGTH)
    changed = torch.where(mask.unsqueeze(-1), x, x + 1)
    torch.testing.assert_close(stack(changed, mask), stack(x, mask))
    torch.testing.assert_close(stack(x, mask)[1:, :4], stack(x[1:, :4], mask[1:, :4]))


def test_the_order_of_tokens_matters() -> None:
    mixing, x = make_mixing(), random_states(1, LENGTH)
    mask, order = torch.ones(1, 1, 1, LENGTH, dtype=torch.bool), torch.arange(LENGTH).flip(0)
    moved = mixing(x[:, order], x[:, order], mask)
    assert not torch.allclose(moved, mixing(x, x, mask)[:, order])


def test_channels_share_the_weights_and_do_not_mix() -> None:
    mixing, x = make_mixing(), random_states(1, LENGTH)
    mask, channels = torch.ones(1, 1, 1, LENGTH, dtype=torch.bool), torch.arange(D).roll(2)
    torch.testing.assert_close(mixing(x[..., channels], x, mask), mixing(x, x, mask)[..., channels])


def test_the_hidden_units_are_four_times_the_length() -> None:
    assert make_mixing().widen.weight.shape == (4 * LENGTH, LENGTH)
    assert make_mixing(inner=7).narrow.weight.shape == (LENGTH, 7)


def test_a_tiny_model_learns_to_shift_a_text() -> None:
    """The state of each position becomes that of the one before."""
    torch.manual_seed(0)
    mixing = TokenMixing(length=6)
    optimizer = torch.optim.Adam(mixing.parameters(), lr=0.01)
    mask = torch.ones(1, 1, 1, 6, dtype=torch.bool)
    for _ in range(200):
        x = torch.randn(32, 6, D)
        loss = (mixing(x, x, mask) - x.roll(1, 1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.1


def test_what_it_cannot_do_is_refused() -> None:
    spec = {"kind": "mlp-mixer", "length": LENGTH}
    with pytest.raises(ConfigError, match=r"kind 'mlp-mixer' cannot be used in a decoder; use one of .*full"):
        DecoderStack(D, cross=False, attention=spec)
    stack, x = EncoderStack(D, attention=spec), torch.zeros(1, LENGTH + 1, D)
    assert stack.max_length == LENGTH
    with pytest.raises(ConfigError, match="10 positions, and mlp-mixer weights for 9: set its length"):
        stack(x, torch.ones(1, LENGTH + 1, dtype=torch.bool))
    encoder = TransformerEncoder(D, 20, stack={"kind": "encoder", "attention": spec})
    assert encoder.max_length == LENGTH
