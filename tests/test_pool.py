"""Tokens to sentences: equal to a loop, each sentence by itself, and roles that a mean mixes up."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.network import assemble
from mnemic.network.pool import POOLS, Heads
from mnemic.network.segments import Segments
from mnemic.recipe import ConfigError, build

WIDTH, COUNT = 12, 4
KINDS = pytest.mark.parametrize("kind", list(POOLS))


def made(kind: str, **options: Any) -> nn.Module:
    torch.manual_seed(0)
    heads = {"heads": 4} if kind == "heads" else {}
    return build(POOLS, {"kind": kind, **heads, **options}, width=WIDTH)


def texts() -> tuple[Tensor, Tensor]:
    """Two rows of states; the third sentence is in none of them, -1 is between sentences."""
    states = torch.randn(2, 7, WIDTH, generator=torch.Generator().manual_seed(1))
    return states, torch.tensor([[-1, 0, 0, 1, 1, 1, -1], [0, 3, 3, 3, -1, 1, 1]])


def slowly(pool: Any, states: Tensor) -> Tensor:
    """One sentence, n d → d."""
    mean = states.mean(0)
    if not isinstance(pool, Heads):
        return mean
    parts = []
    for head, values in enumerate(pool.value(states).chunk(pool.heads, -1)):
        parts.append(pool.score(states)[:, head].softmax(0) @ values)
    return mean + pool.join(torch.cat(parts))


@KINDS
def test_each_sentence_is_what_a_loop_makes_of_it(kind: str) -> None:
    pool, (states, sentences) = made(kind), texts()
    found = pool(states, sentences, COUNT)
    assert found.shape == (2, COUNT, WIDTH)
    for row in range(2):
        for number in range(COUNT):
            own = states[row][sentences[row] == number]
            wanted = slowly(pool, own) if len(own) else torch.zeros(WIDTH)
            torch.testing.assert_close(found[row, number], wanted)


@KINDS
def test_other_sentences_change_nothing(kind: str) -> None:
    pool, (states, sentences) = made(kind), texts()
    before = pool(states, sentences, COUNT)
    after = pool(states + (sentences != 1).unsqueeze(-1), sentences, COUNT)
    assert torch.equal(before[:, 1], after[:, 1])


def test_heads_keep_roles_apart() -> None:
    """A mean of x at one place and y at another is that of y and x."""
    one, two = torch.eye(WIDTH)[:2]
    places = torch.zeros(2, WIDTH)
    places[:, -1] = torch.tensor([3.0, -3.0])
    told = torch.stack([torch.stack(own) + places for own in ([one, two], [two, one])])  # 2 2 d
    sentences = torch.zeros(2, 2, dtype=torch.long)
    mean, heads = made("mean")(told, sentences, 1), made("heads")(told, sentences, 1)
    torch.testing.assert_close(mean[0], mean[1])
    assert (heads[0] - heads[1]).abs().max() > 0.05


@pytest.mark.parametrize("unit", ["tokens", "sentences"])
def test_a_question_is_pooled_as_a_sentence_is(unit: str) -> None:
    torch.manual_seed(0)
    carry = {"unit": unit, "query": "pool", "pooling": {"kind": "heads", "heads": 4}}
    model = {
        "width": WIDTH, "encode": {"kind": "transformer"}, "memory": {"kind": "keeps"},
        "respond": {"kind": "predictor"}, "carry": carry,
    }  # fmt: skip
    network = assemble(model, {"vocab": 30, "longest": 8}).eval()
    tokens = torch.tensor([[[1, 5, 6, 7, 8, 2]]])
    question, asked = torch.tensor([[5, 9, 0]]), torch.tensor([[True, True, False]])
    inside = tokens > 2
    inputs = Segments(
        tokens, tokens > 0, inside, question, asked, question, sentences=inside.long() - 1
    )
    longer = inputs._replace(question=torch.tensor([[5, 9, 7]]))  # behind what is asked
    assert torch.equal(network(inputs).scores, network(longer).scores)
    with pytest.raises(ConfigError, match="heads that divide the width 12, not 5"):
        made("heads", heads=5)
