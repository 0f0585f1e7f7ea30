"""Responses from a text's states alone, networks without a memory, and windows put together.

Shapes: w windows, n tokens, c classes, d width.
"""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mnemic.models import TextModel, WindowBatch, build_model, check_parts_fit
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.classes import squared_error
from mnemic.objectives.spans import span_loss
from mnemic.recipe import ConfigError, select_kinds
from mnemic.respond import RESPONSES
from mnemic.respond.classes import ClassHead
from mnemic.respond.merge_windows import average_windows, find_best_spans, select_best_span

ENCODE: dict[str, Any] = {"kind": "transformer", "embeddings": {"kind": "sum", "segments": 2}}
SIZES = {"vocab": 20, "classes": 3, "max_length": 12}


def network(kind: str, **encode: Any) -> TextModel:
    base = {"kind": "causal"} if kind == "next-token" else ENCODE  # which may not look ahead
    model = {"width": 8, "encode": base | encode, "respond": {"kind": kind}}
    return build_model(model, SIZES).eval()


def windows(count: int = 3, size: int = 7, padding: int = 0) -> WindowBatch:
    """A first special token, two tokens of a question, the text, a last special token."""
    tokens = torch.randint(5, 20, (count, size), generator=torch.Generator().manual_seed(1))
    real = torch.arange(size + padding) < size
    tokens = torch.nn.functional.pad(tokens, (0, padding), value=9)
    place = torch.arange(size + padding)
    inside = (place >= 3) & (place < size - 1)
    rows = [own.expand(count, -1) for own in (real, (place >= 3).long(), inside)]
    return WindowBatch(tokens, *rows)


def read_by(kind: str, padding: int = 0, count: int = 3) -> WindowBatch:
    """Windows, with what was said so far, or the hidden places, for a response that needs it."""
    own = WindowBatch(*(part[:count] for part in windows(padding=padding)[:4]))
    if kind == "seq2seq":
        return own._replace(decoder_tokens=own.tokens[:, :4])
    hidden = own.answer_mask.flatten().nonzero().squeeze(1)
    return own._replace(answer_mask=hidden) if kind == "masked" else own


def scores_of(own: TextModel, read: WindowBatch) -> Tensor:
    scores = own(read).logits
    return scores if isinstance(scores, Tensor) else scores.masked_logits


@pytest.mark.parametrize("kind", select_kinds(RESPONSES, source="text"))
def test_padding_and_neighbours_change_nothing(kind: str) -> None:
    own = network(kind)
    alone, padded = (scores_of(own, read_by(kind, padding)) for padding in (0, 4))
    cut = {"spans": padded[..., :8], "tags": padded[:, :7], "next-token": padded[:, :7]}.get(kind, padded)
    torch.testing.assert_close(cut, alone)
    first = scores_of(own, read_by(kind, count=1))
    torch.testing.assert_close(first, alone[: len(first)])


@pytest.mark.parametrize("kind", select_kinds(RESPONSES, source="text"))
def test_every_weight_learns(kind: str) -> None:
    own = network(kind)
    scores = scores_of(own, read_by(kind))
    scores.masked_fill(scores < -1e30, 0).square().sum().backward()
    assert not [name for name, p in own.named_parameters() if p.grad is None]


def test_only_the_text_can_hold_an_answer() -> None:
    scores = network("spans")(windows()).logits  # w 2 1+n
    assert scores.shape == (3, 2, 8)
    real = scores > -1e30
    assert real[:, :, 0].all()  # "no answer"
    assert real[0, 0, 1:].tolist() == [False, False, False, True, True, True, False]


def test_segments_are_told_apart_where_the_encoder_can() -> None:
    own, other = windows(), windows()
    other = other._replace(segment_ids=torch.zeros_like(other.segment_ids))
    told = network("classes")
    assert not torch.allclose(told(own).logits, told(other).logits)
    deaf = network("classes", embeddings={"kind": "sum"})
    torch.testing.assert_close(deaf(own).logits, deaf(other).logits)


def test_pooling_by_hand() -> None:
    torch.manual_seed(0)
    states, mask = torch.randn(2, 4, 8), torch.tensor([[0, 1, 1, 0], [0, 0, 0, 0]]) > 0
    mean, first = ClassHead(8, 3, dropout=0.0), ClassHead(8, 3, pool="first", dropout=0.0)
    first.load_state_dict(mean.state_dict())
    torch.testing.assert_close(
        mean(None, None, states, mask)[0], first(None, None, states[:, 1:3].mean(1, keepdim=True), mask)[0]
    )
    assert torch.isfinite(mean(None, None, states, mask)).all()  # a text without tokens


def test_recurrent_encoders_read_texts_too() -> None:
    model = {"width": 8, "encode": {"kind": "recurrent"}, "respond": {"kind": "tags"}}
    assert build_model(model, SIZES)(windows()).logits.shape == (3, 7, 3)


def test_parts_that_do_not_fit() -> None:
    with pytest.raises(ConfigError, match=r"'word' needs a memory: add model\.memory, or"):
        network("word")
    short = network("tags", embeddings={"kind": "sum", "positions": {"kind": "learned", "length": 9}})
    with pytest.raises(ConfigError, match="there are 9 learned positions"):
        check_parts_fit(short, SIZES)
    model = {"width": 8, "encode": {"kind": "bag"}, "memory": {"kind": "memn2n"}}
    with pytest.raises(ConfigError, match="no kind 'tags' here"):
        build_model(model | {"respond": {"kind": "tags"}}, SIZES)


# Windows put together --------------------------------------------------------------------------


def test_the_mean_of_a_texts_windows() -> None:
    scores = torch.randn(5, 3)
    merged = average_windows(scores, torch.tensor([0, 1, 1, 1, 2]), 3)
    twin = torch.stack([scores[0], scores[1:4].mean(0), scores[4]])
    torch.testing.assert_close(merged, twin)
    padded = torch.cat([scores, torch.full((2, 3), 9.0)])  # windows that are of no text
    again = average_windows(padded, torch.tensor([0, 1, 1, 1, 2, 3, 3]), 3)
    torch.testing.assert_close(again, twin)


def test_how_long_an_answer_may_be_is_no_matter_of_how_long_texts_are() -> None:
    def spans(**options: object) -> Any:
        respond = {"kind": "spans", **options}
        return build_model({"width": 8, "encode": ENCODE, "respond": respond}, SIZES).respond

    assert spans().max_tokens == 30
    assert spans(max_tokens=5).max_tokens == 5
    with pytest.raises(ConfigError, match=r"at least 1 token: model.respond.max_tokens is 0"):
        spans(max_tokens=0)


@given(seed=st.integers(0, 10**6), tokens=st.integers(1, 9), longest=st.integers(1, 9))
@settings(max_examples=50, deadline=None)
def test_the_best_span_is_that_of_a_slow_search(seed: int, tokens: int, longest: int) -> None:
    scores = torch.randn(3, 2, tokens + 1, generator=torch.Generator().manual_seed(seed))
    ends, none = find_best_spans(scores, longest)
    chance = scores.log_softmax(-1)
    for window, (first, last, score) in enumerate(ends.tolist()):
        slow = max(
            (float(chance[window, 0, i + 1] + chance[window, 1, j + 1]), -i, -j)
            for i in range(tokens)
            for j in range(i, min(i + longest, tokens))
        )
        assert (score, -first, -last) == pytest.approx(slow)
        assert float(none[window]) == pytest.approx(float(chance[window, :, 0].sum()))


def test_the_best_over_windows_and_how_likely_none_is() -> None:
    """A window without the answer is sure of "none"; that does not speak against the other."""
    ends = torch.tensor([[2.0, 3.0, -9.0], [1.0, 1.0, -0.1]])
    found = select_best_span(ends, torch.tensor([-0.01, -5.0]))
    assert found[:3] == (1, 1, 1)
    assert found.no_answer_probability == pytest.approx(float(torch.sigmoid(torch.tensor(-4.9))))
    nothing = select_best_span(ends[:1], torch.tensor([-0.01]))
    assert nothing.no_answer_probability > 0.99


# Losses ----------------------------------------------------------------------------------------


def test_losses_by_hand() -> None:
    scores, targets = torch.randn(3, 2, 8), torch.tensor([[1, 4], [0, 0], [7, 7]])
    total, count = span_loss(scores, targets)
    twin = torch.nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten())
    torch.testing.assert_close(total / count, twin)
    assert float(count) == 3
    said, true = torch.tensor([[1.0], [2.0], [0.0]]), torch.tensor([3.0, 2.0, -100.0])
    assert [float(own) for own in squared_error(said, true)] == [4.0, 2.0]


def test_what_is_not_asked_costs_nothing() -> None:
    def loss(scores: Tensor) -> Tensor:
        return cross_entropy(scores, torch.tensor([[1, -100]]))[0]

    scores = torch.randn(1, 2, 3)
    changed = scores.clone()
    changed[:, 1] += torch.randn(3)
    assert torch.equal(loss(scores), loss(changed))
