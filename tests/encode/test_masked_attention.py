"""Masked self-attention: only masked positions ask (SYSTEMS: MASS), and the layer around it."""

import pytest
import torch
from torch import Tensor

from mnemic.encode.attention import FullAttention, MaskedAttention
from mnemic.encode.masked_layer import MaskedLayer, find_masked_positions
from mnemic.recipe import ConfigError, build

D, HEADS = 16, 4


def make(keys: str, seed: int = 0) -> MaskedAttention:
    torch.manual_seed(seed)
    return MaskedAttention(D, keys=keys).eval()  # type: ignore[arg-type]


def some(rows: list[str]) -> Tensor:
    """``["x?x", "?.."]``: ? is masked, x is not, a dot is padding."""
    return torch.tensor([[sign == "?" for sign in row] for row in rows])


def real(rows: list[str]) -> Tensor:
    return torch.tensor([[sign != "." for sign in row] for row in rows])


def asked(attention: MaskedAttention, states: Tensor, rows: list[str]) -> Tensor:
    """What comes out at the masked positions, put back where they stand: b n d."""
    places = find_masked_positions(some(rows))
    visible = real(rows)[:, None, None] & places.is_real[:, None, :, None]
    found = attention(places.gather_rows(states), states, visible, places.columns)
    out = torch.zeros_like(states)
    for row, column in places.is_real.nonzero().tolist():
        out[row, places.columns[row, column]] = found[row, column]
    return out


def slow(attention: MaskedAttention, states: Tensor, rows: list[str]) -> Tensor:
    """Its definition, one head of one masked position at a time."""
    project, size = attention.full.project, D // HEADS
    out = torch.zeros_like(states)
    for b, row in enumerate(rows):
        for n in [place for place, sign in enumerate(row) if sign == "?"]:
            seen = [m for m, sign in enumerate(row) if sign != "."]
            if attention.keys != "all":
                seen = [m for m in seen if m != n]
            if attention.keys == "masked":
                seen = [m for m in seen if row[m] == "?"] or [n]
            heads = []
            for h in range(HEADS):
                own = slice(h * size, (h + 1) * size)
                query = project.query(states[b, n])[own]
                keys = [project.key(states[b, m])[own] for m in seen]
                values = [project.value(states[b, m])[own] for m in seen]
                scores = torch.stack([query.dot(key) for key in keys]) / size**0.5
                heads.append(sum(w * v for w, v in zip(scores.softmax(0), values)))
            out[b, n] = project.out(torch.cat(heads))
    return out


@pytest.mark.parametrize("keys", ["others", "masked", "all"])
def test_it_is_the_slow_loop(keys: str) -> None:
    attention, states = make(keys), torch.randn(3, 7, D)
    rows = ["x?x??x?", "??xx...", "x?xxx.."]  # the last row's masked position is a lone one
    torch.testing.assert_close(asked(attention, states, rows), slow(attention, states, rows))


def test_all_keys_are_the_rows_of_full_attention() -> None:
    attention, states = make("all"), torch.randn(2, 9, D)
    full = FullAttention(D).eval()
    full.load_state_dict(attention.full.state_dict())
    rows = ["x?xx??xx?", "?xx?x...."]
    wanted = full(states, states, real(rows)[:, None, None]) * some(rows).unsqueeze(-1)
    torch.testing.assert_close(asked(attention, states, rows), wanted)


@pytest.mark.parametrize("keys", ["others", "masked"])
def test_the_position_itself_is_not_looked_at(keys: str) -> None:
    """Its own value changes, the query stays: nothing changes but for a lone one."""
    attention, states = make(keys), torch.randn(1, 6, D)
    rows = ["x?x?xx"]
    places = find_masked_positions(some(rows))
    visible = real(rows)[:, None, None]
    query, other = places.gather_rows(states), states.clone()
    other[0, 1] += 1.0
    before = attention(query, states, visible, places.columns)
    after = attention(query, other, visible, places.columns)
    torch.testing.assert_close(after[0, 0], before[0, 0])
    assert (after[0, 1] != before[0, 1]).any()


def test_masked_keys_do_not_see_the_words() -> None:
    attention, states = make("masked"), torch.randn(1, 6, D)
    rows, other = ["x?x?xx"], torch.randn(1, 6, D)
    other[0, [1, 3]] = states[0, [1, 3]]
    torch.testing.assert_close(asked(attention, other, rows), asked(attention, states, rows))
    everything = make("others")
    assert (asked(everything, other, rows) != asked(everything, states, rows)).any()


def test_a_lone_masked_position_keeps_its_own_value() -> None:
    attention, states = make("masked"), torch.randn(1, 4, D).requires_grad_()
    project = attention.full.project
    found = asked(attention, states, ["xx?x"])[0, 2]
    torch.testing.assert_close(found, project.out(project.value(states[0, 2])))
    found.sum().backward()
    assert states.grad is not None
    assert states.grad.isfinite().all()


@pytest.mark.parametrize("keys", ["others", "masked", "all"])
def test_a_row_without_a_masked_position_asks_nothing(keys: str) -> None:
    attention, states = make(keys), torch.randn(2, 4, D)
    out = asked(attention, states, ["xxxx", "x?x."])
    assert (out[0] == 0).all()
    assert asked(attention, states, ["xxxx", "xx.."]).shape == (2, 4, D)


def test_places() -> None:
    places = find_masked_positions(some(["x??x", "?...", "...."]))
    assert places.columns.tolist() == [[1, 2], [0, -1], [-1, -1]]
    taken = places.gather_rows(torch.arange(12).view(3, 4))
    assert taken.tolist() == [[1, 2], [4, 0], [0, 0]]


def test_the_layer_with_all_keys_is_a_block_of_an_encoder() -> None:
    """At the masked positions it gives what a whole layer of the same weights gives there."""
    from mnemic.encode.block import EncoderBlock

    torch.manual_seed(0)
    layer = MaskedLayer(D, attention={"kind": "masked", "keys": "all"}).eval()
    block = EncoderBlock(layer.attention.full, layer.feed, lambda: layer.around_attention)
    block.around_feed = layer.around_feed
    states, rows = torch.randn(2, 6, D), ["x?x??x", "?x...."]
    whole = block(states, real(rows)[:, None, None])
    places = find_masked_positions(some(rows))
    torch.testing.assert_close(layer(states, real(rows), places), places.gather_rows(whole))


def test_a_tiny_model_learns_the_hidden_word() -> None:
    """The masked word is that of the position before it: one layer of masked attention finds it."""
    torch.manual_seed(0)
    words = torch.nn.Parameter(torch.randn(12, D))
    spots = torch.nn.Parameter(torch.randn(6, D))
    layer, out = MaskedLayer(D), torch.nn.Linear(D, 11)
    parts = [words, spots, *layer.parameters(), *out.parameters()]
    optimiser = torch.optim.Adam(parts, lr=0.01)
    for _ in range(150):
        ids = torch.randint(1, 11, (64, 6))
        column = torch.randint(1, 6, (64,))
        rows = torch.arange(64)
        target = ids[rows, column - 1]
        shown = ids.clone()
        shown[rows, column] = 11  # the mask
        hidden = torch.zeros(64, 6, dtype=torch.bool)
        hidden[rows, column] = True
        states = words[shown] + spots
        scores = out(layer(states, torch.ones(64, 6, dtype=torch.bool), find_masked_positions(hidden)))[:, 0]
        loss = torch.nn.functional.cross_entropy(scores, target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss < 0.3


def test_only_masked_attention_fits_the_layer() -> None:
    with pytest.raises(ConfigError, match="known kinds: masked"):
        build({"layer": MaskedLayer}, {"kind": "layer", "attention": {"kind": "full"}}, width=D)
