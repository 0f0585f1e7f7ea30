"""Responses from a text's states, networks without a memory, and merged windows.

Shapes: w windows, n tokens, c classes, d width.
"""

from math import exp
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mnemic.models import TextModel, WindowBatch, build_model, check_parts_fit
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.text_tasks import span_loss, squared_error
from mnemic.recipe import ConfigError, select_kinds
from mnemic.respond import RESPONSES
from mnemic.respond.classes import ClassHead
from mnemic.respond.merge_windows import average_windows, find_best_spans, select_best_span
from mnemic.respond.pretraining.restored import RestoredLogits

ENCODE: dict[str, Any] = {"kind": "transformer", "embeddings": {"kind": "sum", "segments": 2}}
PER_TOKEN = ("both-directions", "next-token", "replaced", "tags")
SIZES = {"vocab": 20, "classes": 3, "max_length": 12}


def make_network(kind: str, **encode: Any) -> TextModel:
    base = {"next-token": {"kind": "causal"}, "both-directions": {"kind": "elmo"}}.get(kind, ENCODE)
    model = {"width": 8, "encode": base | encode, "respond": {"kind": kind}}
    return build_model(model, SIZES).eval()


def make_windows(count: int = 3, size: int = 7, padding: int = 0) -> WindowBatch:
    """Make windows of [CLS], two tokens of a question, the text and [SEP]."""
    tokens = torch.randint(5, 20, (count, size), generator=torch.Generator().manual_seed(1))
    is_real = torch.arange(size + padding) < size
    tokens = torch.nn.functional.pad(tokens, (0, padding), value=9)
    position = torch.arange(size + padding)
    text_mask = (position >= 3) & (position < size - 1)
    rows = [row.expand(count, -1) for row in (is_real, (position >= 3).long(), text_mask)]
    return WindowBatch(tokens, *rows)


def make_inputs(kind: str, padding: int = 0, count: int = 3) -> WindowBatch:
    """Windows with decoder tokens or masked positions, for a response that needs them."""
    inputs = WindowBatch(*(field[:count] for field in make_windows(padding=padding)[:4]))
    if kind == "seq2seq":
        return inputs._replace(decoder_tokens=inputs.tokens[:, :4])
    masked_positions = inputs.answer_mask.flatten().nonzero().squeeze(1)
    return inputs._replace(answer_mask=masked_positions) if kind in ("masked", "permuted") else inputs


def compute_logits(network: TextModel, inputs: WindowBatch) -> Tensor:
    logits = network(inputs).logits
    if isinstance(logits, RestoredLogits):
        return torch.cat([logits.word_logits, logits.copy_logits.unsqueeze(-1)], -1)
    return logits if isinstance(logits, Tensor) else logits.masked_logits


@pytest.mark.parametrize("kind", select_kinds(RESPONSES, source="text"))
def test_padding_and_neighbours_change_nothing(kind: str) -> None:
    network = make_network(kind)
    alone, padded = (compute_logits(network, make_inputs(kind, padding)) for padding in (0, 4))
    cut = {"spans": padded[..., :8]} | dict.fromkeys(PER_TOKEN, padded[:, :7])
    torch.testing.assert_close(cut.get(kind, padded), alone)
    first = compute_logits(network, make_inputs(kind, count=1))
    torch.testing.assert_close(first, alone[: len(first)])


@pytest.mark.parametrize("kind", select_kinds(RESPONSES, source="text"))
def test_every_weight_learns(kind: str) -> None:
    network = make_network(kind)
    logits = compute_logits(network, make_inputs(kind))
    logits.masked_fill(logits < -1e30, 0).square().sum().backward()
    assert not [name for name, parameter in network.named_parameters() if parameter.grad is None]


def test_only_the_text_can_hold_an_answer() -> None:
    logits = make_network("spans")(make_windows()).logits  # w 2 1+n
    assert logits.shape == (3, 2, 8)
    is_allowed = logits > -1e30
    assert is_allowed[:, :, 0].all()  # "no answer"
    assert is_allowed[0, 0, 1:].tolist() == [False, False, False, True, True, True, False]


def test_segments_matter_only_with_segment_embeddings() -> None:
    inputs, without_segments = make_windows(), make_windows()
    without_segments = without_segments._replace(segment_ids=torch.zeros_like(without_segments.segment_ids))
    with_embeddings = make_network("classes")
    assert not torch.allclose(with_embeddings(inputs).logits, with_embeddings(without_segments).logits)
    without_embeddings = make_network("classes", embeddings={"kind": "sum"})
    torch.testing.assert_close(without_embeddings(inputs).logits, without_embeddings(without_segments).logits)


def test_pooling_by_hand() -> None:
    torch.manual_seed(0)
    states, mask = torch.randn(2, 4, 8), torch.tensor([[0, 1, 1, 0], [0, 0, 0, 0]]) > 0
    mean, first = ClassHead(8, 3, dropout=0.0), ClassHead(8, 3, pool="first", dropout=0.0)
    first.load_state_dict(mean.state_dict())
    torch.testing.assert_close(
        mean(None, None, states, mask)[0], first(None, None, states[:, 1:3].mean(1, keepdim=True), mask)[0]
    )
    assert torch.isfinite(mean(None, None, states, mask)).all()  # a text without tokens
    last = ClassHead(8, 3, pool="last", dropout=0.0)
    last.load_state_dict(mean.state_dict())
    torch.testing.assert_close(last(None, None, states, mask), first(None, None, states[[0, 1], [2, 0]][:, None], mask))


def test_recurrent_encoders_read_texts_too() -> None:
    model = {"width": 8, "encode": {"kind": "recurrent"}, "respond": {"kind": "tags"}}
    assert build_model(model, SIZES)(make_windows()).logits.shape == (3, 7, 3)


def test_parts_that_do_not_fit() -> None:
    with pytest.raises(ConfigError, match=r"'word' needs a memory: add model\.memory, or"):
        make_network("word")
    short_network = make_network("tags", embeddings={"kind": "sum", "positions": {"kind": "learned", "length": 9}})
    with pytest.raises(ConfigError, match="there are 9 learned positions"):
        check_parts_fit(short_network, SIZES)
    model = {"width": 8, "encode": {"kind": "bag"}, "memory": {"kind": "memn2n"}}
    with pytest.raises(ConfigError, match="no kind 'tags' here"):
        build_model(model | {"respond": {"kind": "tags"}}, SIZES)


# Merging windows -------------------------------------------------------------------------------


def test_average_windows_is_the_mean_per_text() -> None:
    logits = torch.randn(5, 3)
    merged = average_windows(logits, torch.tensor([0, 1, 1, 1, 2]), 3)
    expected = torch.stack([logits[0], logits[1:4].mean(0), logits[4]])
    torch.testing.assert_close(merged, expected)
    padded = torch.cat([logits, torch.full((2, 3), 9.0)])  # windows of no text
    with_padding = average_windows(padded, torch.tensor([0, 1, 1, 1, 2, 3, 3]), 3)
    torch.testing.assert_close(with_padding, expected)


def test_the_maximum_answer_length_is_independent_of_text_length() -> None:
    def make_span_head(**options: object) -> Any:
        respond = {"kind": "spans", **options}
        return build_model({"width": 8, "encode": ENCODE, "respond": respond}, SIZES).respond

    assert make_span_head().max_tokens == 30
    assert make_span_head(max_tokens=5).max_tokens == 5
    with pytest.raises(ConfigError, match=r"at least 1 token: model.respond.max_tokens is 0"):
        make_span_head(max_tokens=0)


def token_range_f1(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Compute the F1 of two ranges of tokens, with their ends."""
    overlap = max(min(first[1], second[1]) - max(first[0], second[0]) + 1, 0)
    return 2 * overlap / (first[1] - first[0] + second[1] - second[0] + 2)


@given(seed=st.integers(0, 10**6), tokens=st.integers(1, 9), max_tokens=st.integers(1, 9))
@settings(max_examples=50, deadline=None)
def test_the_best_span_is_that_of_a_slow_search(seed: int, tokens: int, max_tokens: int) -> None:
    logits = torch.randn(3, 2, tokens + 1, generator=torch.Generator().manual_seed(seed))
    ends, no_answer = find_best_spans(logits, max_tokens)
    log_probabilities = logits.log_softmax(-1)
    for window, (first, last, score, similar) in enumerate(ends.tolist()):
        spans = {
            (start, end): float(log_probabilities[window, 0, start + 1] + log_probabilities[window, 1, end + 1])
            for start in range(tokens)
            for end in range(start, min(start + max_tokens, tokens))
        }
        assert (score, -first, -last) == pytest.approx(max((value, -s, -e) for (s, e), value in spans.items()))
        assert exp(similar) == pytest.approx(
            sum(exp(value) for span, value in spans.items() if token_range_f1(span, (first, last)) >= 0.5), rel=1e-4
        )
        assert float(no_answer[window]) == pytest.approx(float(log_probabilities[window, :, 0].sum()))


def test_the_best_span_over_windows_and_the_probability_of_no_answer() -> None:
    """A window without the answer is sure of "none"; the other window still wins."""
    ends = torch.tensor([[2.0, 3.0, -9.0, -8.0], [1.0, 1.0, -0.1, -0.05]])
    best = select_best_span(ends, torch.tensor([-0.01, -5.0]))
    assert best[:3] == (1, 1, 1)
    assert best.similar_log_probability == pytest.approx(-0.05)
    assert best.no_answer_probability == pytest.approx(float(torch.sigmoid(torch.tensor(-4.9))))
    without_answer = select_best_span(ends[:1], torch.tensor([-0.01]))
    assert without_answer.no_answer_probability > 0.99


# Losses ----------------------------------------------------------------------------------------


def test_losses_by_hand() -> None:
    logits, targets = torch.randn(3, 2, 8), torch.tensor([[1, 4], [0, 0], [7, 7]])
    total, count = span_loss(logits, targets)
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    torch.testing.assert_close(total / count, expected)
    assert float(count) == 3
    predictions, targets_of_scores = torch.tensor([[1.0], [2.0], [0.0]]), torch.tensor([3.0, 2.0, -100.0])
    assert [float(value) for value in squared_error(predictions, targets_of_scores)] == [4.0, 2.0]


def test_ignored_targets_cost_nothing() -> None:
    def compute_loss(logits: Tensor) -> Tensor:
        return cross_entropy(logits, torch.tensor([[1, -100]]))[0]

    logits = torch.randn(1, 2, 3)
    changed = logits.clone()
    changed[:, 1] += torch.randn(3)
    assert torch.equal(compute_loss(logits), compute_loss(changed))
