"""Masked self-attention (MASS), in which only masked positions are queries, and its layer."""

import pytest
import torch
from torch import Tensor

from mnemic.encode.attention import FullAttention, MaskedAttention
from mnemic.encode.masked_layer import MaskedLayer, find_masked_positions
from mnemic.recipe import ConfigError, build

D, HEADS = 16, 4


def make_attention(keys: str, seed: int = 0) -> MaskedAttention:
    torch.manual_seed(seed)
    return MaskedAttention(D, keys=keys).eval()  # type: ignore[arg-type]


def is_masked(rows: list[str]) -> Tensor:
    """Parse ``["x?x", "?.."]``: ? is masked, x is not, a dot is padding."""
    return torch.tensor([[character == "?" for character in row] for row in rows])


def real_mask(rows: list[str]) -> Tensor:
    return torch.tensor([[character != "." for character in row] for row in rows])


def attend_masked(attention: MaskedAttention, states: Tensor, rows: list[str]) -> Tensor:
    """Return the output at the masked positions, placed back at their positions: b n d."""
    positions = find_masked_positions(is_masked(rows))
    visible = real_mask(rows)[:, None, None] & positions.is_real[:, None, :, None]
    output = attention(positions.gather_rows(states), states, visible, positions.columns)
    out = torch.zeros_like(states)
    for row, column in positions.is_real.nonzero().tolist():
        out[row, positions.columns[row, column]] = output[row, column]
    return out


def reference_attention(attention: MaskedAttention, states: Tensor, rows: list[str]) -> Tensor:
    """The definition, one head of one masked position at a time."""
    project, size = attention.full.project, D // HEADS
    out = torch.zeros_like(states)
    for b, row in enumerate(rows):
        for n in [position for position, character in enumerate(row) if character == "?"]:
            visible = [m for m, character in enumerate(row) if character != "."]
            if attention.keys != "all":
                visible = [m for m in visible if m != n]
            if attention.keys == "masked":
                visible = [m for m in visible if row[m] == "?"] or [n]
            heads = []
            for h in range(HEADS):
                channels = slice(h * size, (h + 1) * size)
                query = project.query(states[b, n])[channels]
                keys = [project.key(states[b, m])[channels] for m in visible]
                values = [project.value(states[b, m])[channels] for m in visible]
                scores = torch.stack([query.dot(key) for key in keys]) / size**0.5
                heads.append(sum(weight * value for weight, value in zip(scores.softmax(0), values)))
            out[b, n] = project.out(torch.cat(heads))
    return out


@pytest.mark.parametrize("keys", ["others", "masked", "all"])
def test_it_equals_a_plain_loop(keys: str) -> None:
    attention, states = make_attention(keys), torch.randn(3, 7, D)
    rows = ["x?x??x?", "??xx...", "x?xxx.."]  # the last row has a single masked position
    torch.testing.assert_close(attend_masked(attention, states, rows), reference_attention(attention, states, rows))


def test_all_keys_are_the_rows_of_full_attention() -> None:
    attention, states = make_attention("all"), torch.randn(2, 9, D)
    full = FullAttention(D).eval()
    full.load_state_dict(attention.full.state_dict())
    rows = ["x?xx??xx?", "?xx?x...."]
    expected = full(states, states, real_mask(rows)[:, None, None]) * is_masked(rows).unsqueeze(-1)
    torch.testing.assert_close(attend_masked(attention, states, rows), expected)


@pytest.mark.parametrize("keys", ["others", "masked"])
def test_the_position_itself_is_not_looked_at(keys: str) -> None:
    """With a fixed query, changing the state at its position changes nothing."""
    attention, states = make_attention(keys), torch.randn(1, 6, D)
    rows = ["x?x?xx"]
    positions = find_masked_positions(is_masked(rows))
    visible = real_mask(rows)[:, None, None]
    query, changed_states = positions.gather_rows(states), states.clone()
    changed_states[0, 1] += 1.0
    before = attention(query, states, visible, positions.columns)
    after = attention(query, changed_states, visible, positions.columns)
    torch.testing.assert_close(after[0, 0], before[0, 0])
    assert (after[0, 1] != before[0, 1]).any()


def test_masked_keys_do_not_see_the_words() -> None:
    attention, states = make_attention("masked"), torch.randn(1, 6, D)
    rows, changed_states = ["x?x?xx"], torch.randn(1, 6, D)
    changed_states[0, [1, 3]] = states[0, [1, 3]]
    torch.testing.assert_close(attend_masked(attention, changed_states, rows), attend_masked(attention, states, rows))
    attention_to_others = make_attention("others")
    assert (
        attend_masked(attention_to_others, changed_states, rows) != attend_masked(attention_to_others, states, rows)
    ).any()


def test_a_lone_masked_position_keeps_its_own_value() -> None:
    attention, states = make_attention("masked"), torch.randn(1, 4, D).requires_grad_()
    project = attention.full.project
    output = attend_masked(attention, states, ["xx?x"])[0, 2]
    torch.testing.assert_close(output, project.out(project.value(states[0, 2])))
    output.sum().backward()
    assert states.grad is not None
    assert states.grad.isfinite().all()


@pytest.mark.parametrize("keys", ["others", "masked", "all"])
def test_a_row_without_masked_positions_gives_zeros(keys: str) -> None:
    attention, states = make_attention(keys), torch.randn(2, 4, D)
    out = attend_masked(attention, states, ["xxxx", "x?x."])
    assert (out[0] == 0).all()
    assert attend_masked(attention, states, ["xxxx", "xx.."]).shape == (2, 4, D)


def test_find_masked_positions_and_gather_rows() -> None:
    positions = find_masked_positions(is_masked(["x??x", "?...", "...."]))
    assert positions.columns.tolist() == [[1, 2], [0, -1], [-1, -1]]
    gathered = positions.gather_rows(torch.arange(12).view(3, 4))
    assert gathered.tolist() == [[1, 2], [4, 0], [0, 0]]


def test_the_layer_with_all_keys_is_a_block_of_an_encoder() -> None:
    """At masked positions it equals a full encoder block with the same weights."""
    from mnemic.encode.stacks.block import EncoderBlock

    torch.manual_seed(0)
    layer = MaskedLayer(D, attention={"kind": "masked", "keys": "all"}).eval()
    block = EncoderBlock(layer.attention.full, layer.feed, lambda: layer.around_attention)
    block.around_feed = layer.around_feed
    states, rows = torch.randn(2, 6, D), ["x?x??x", "?x...."]
    full_output = block(states, real_mask(rows)[:, None, None])
    positions = find_masked_positions(is_masked(rows))
    torch.testing.assert_close(layer(states, real_mask(rows), positions), positions.gather_rows(full_output))


def test_a_tiny_model_learns_the_hidden_word() -> None:
    """The masked word equals the previous word: one layer of masked attention learns it."""
    torch.manual_seed(0)
    words = torch.nn.Parameter(torch.randn(12, D))
    position_embeddings = torch.nn.Parameter(torch.randn(6, D))
    layer, out = MaskedLayer(D), torch.nn.Linear(D, 11)
    weights = [words, position_embeddings, *layer.parameters(), *out.parameters()]
    optimizer = torch.optim.Adam(weights, lr=0.01)
    for _ in range(150):
        ids = torch.randint(1, 11, (64, 6))
        column = torch.randint(1, 6, (64,))
        rows = torch.arange(64)
        target = ids[rows, column - 1]
        masked_ids = ids.clone()
        masked_ids[rows, column] = 11  # the mask
        mask = torch.zeros(64, 6, dtype=torch.bool)
        mask[rows, column] = True
        states = words[masked_ids] + position_embeddings
        logits = out(layer(states, torch.ones(64, 6, dtype=torch.bool), find_masked_positions(mask)))[:, 0]
        loss = torch.nn.functional.cross_entropy(logits, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.3


def test_only_masked_attention_fits_the_layer() -> None:
    with pytest.raises(ConfigError, match="known kinds: masked"):
        build({"layer": MaskedLayer}, {"kind": "layer", "attention": {"kind": "full"}}, width=D)
