"""Layers that share their weights, all of them or one sub-layer (ALBERT)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.encode import Pretrained, load_encoder, save_encoder
from mnemic.encode.stacks import EncoderStack
from mnemic.encode.transformer import TransformerEncoder

D = 16


def make_stack(**options: Any) -> EncoderStack:
    torch.manual_seed(0)
    return EncoderStack(D, **options).double().eval()


def random_states(*shape: int) -> Tensor:
    return torch.randn(*shape, D, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def share_counts(parts: Sequence[Any]) -> list[int]:
    """Return the number of each part, counted by first appearance: [0, 0, 1, 1] are two pairs."""
    firsts = list(dict.fromkeys(parts))
    return [firsts.index(part) for part in parts]


@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("share", ["all", "attention", "feed-forward"])
def test_layers_of_a_group_share_what_they_should(share: Any, groups: int) -> None:
    blocks = make_stack(depth=6, groups=groups, share=share).blocks
    in_groups, alone = [layer * groups // 6 for layer in range(6)], list(range(6))
    for part in ("attention", "around_attention"):
        expected = alone if share == "feed-forward" else in_groups
        assert share_counts([getattr(block, part) for block in blocks]) == expected
    for part in ("feed", "around_feed"):
        expected = alone if share == "attention" else in_groups
        assert share_counts([getattr(block, part) for block in blocks]) == expected


@pytest.mark.parametrize("share", ["all", "attention", "feed-forward"])
def test_shared_weights_compute_the_same_and_their_gradients_add_up(share: Any) -> None:
    """A stack without sharing but with equal weights is the twin."""
    shared = make_stack(depth=4, groups=2, share=share)
    twin = make_stack(depth=4)
    twin.load_state_dict(shared.state_dict())
    x, mask = random_states(2, 5), torch.arange(5) < torch.tensor([[5], [3]])
    for stack in (shared, twin):
        (stack(x, mask) * torch.arange(D)).sum().backward()
    torch.testing.assert_close(shared(x, mask), twin(x, mask))
    twin_weights = dict(twin.named_parameters())
    names_of: dict[nn.Parameter, list[str]] = {}
    for name, weight in shared.named_parameters(remove_duplicate=False):
        names_of.setdefault(weight, []).append(name)
    assert max(map(len, names_of.values())) == 2
    for weight, names in names_of.items():
        torch.testing.assert_close(weight.grad, sum(twin_weights[name].grad for name in names))


def test_without_groups_nothing_is_shared() -> None:
    plain = make_stack(depth=3)
    for share in ("attention", "feed-forward"):
        stack = make_stack(depth=3, share=share)
        assert sum(w.numel() for w in stack.parameters()) == sum(w.numel() for w in plain.parameters())


def test_names_and_first_weights_of_older_recipes_stay() -> None:
    """Shared layers are stored once, under the name of the first."""
    names = {name for name, _ in make_stack(depth=4, groups=2).named_parameters()}
    assert {name.split(".")[1] for name in names if name.startswith("blocks.")} == {"0", "2"}
    names = {name for name, _ in make_stack(depth=4, groups=1, share="attention").named_parameters()}
    assert {name.split(".")[1] for name in names if ".attention." in name} == {"0"}
    assert {name.split(".")[1] for name in names if ".feed." in name} == {"0", "1", "2", "3"}


def count_albert_weights(embedding_width: int, groups: int, share: str = "all") -> float:
    """Count the weights of an ALBERT base, in millions."""
    embeddings: dict[str, Any] = {"kind": "sum", "segments": 2, "positions": {"kind": "learned", "length": 512}}
    if embedding_width < 768:
        embeddings = {"kind": "factorised", "embedding_width": embedding_width, "embeddings": embeddings}
    stack = {"kind": "encoder", "depth": 12, "groups": groups, "share": share}
    with torch.device("meta"):
        encoder = TransformerEncoder(768, 30_000, embeddings=embeddings, stack=stack)
    return sum(weight.numel() for weight in encoder.parameters()) / 1e6


@pytest.mark.parametrize(
    ("embedding_width", "groups", "share", "published"),
    [
        (64, 0, "all", 87), (128, 0, "all", 89), (256, 0, "all", 93), (768, 0, "all", 108),
        (64, 1, "all", 10), (128, 1, "all", 12), (256, 1, "all", 16), (768, 1, "all", 31),
        (128, 1, "attention", 64),
    ],
)  # fmt: skip
def test_albert_base_has_its_published_number_of_weights(
    embedding_width: int, groups: int, share: str, published: int
) -> None:
    """In whole millions, in the tables of embedding widths and of sharing (Lan et al. 2020)."""
    assert abs(count_albert_weights(embedding_width, groups, share) - published) < 1


def test_what_is_shared_adds_up() -> None:
    """Sharing attention and sharing feed-forward networks together save what sharing all does."""
    none, all_parts = count_albert_weights(128, 0), count_albert_weights(128, 1)
    attention, feed = (count_albert_weights(128, 1, share) for share in ("attention", "feed-forward"))
    assert (none - attention) + (none - feed) == pytest.approx(none - all_parts)
    assert feed < attention


@pytest.mark.parametrize("share", ["attention", "feed-forward"])
def test_a_shared_sublayer_is_written_to_each_layer_of_a_folder(share: str, tmp_path: Path) -> None:
    """No family of Hugging Face shares one sub-layer: a BERT holds the same numbers."""
    torch.manual_seed(0)
    embeddings = {"kind": "sum", "segments": 2, "epsilon": 1e-12}
    stack = {"kind": "encoder", "depth": 4, "groups": 2, "share": share, "epsilon": 1e-12}
    encoder = TransformerEncoder(D, 20, embeddings=embeddings, stack=stack).eval()
    save_encoder(tmp_path / "model", Pretrained(encoder))
    loaded = load_encoder(tmp_path / "model").encoder
    tokens = torch.randint(20, (2, 5))
    mask = torch.ones_like(tokens, dtype=torch.bool)
    torch.testing.assert_close(loaded(tokens, mask), encoder(tokens, mask))
