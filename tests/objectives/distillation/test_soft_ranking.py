"""Rankings of a cross-encoder: exact values, candidates, pairs, gradients, temperatures."""

from math import exp, log
from pathlib import Path
from typing import Any

import pytest
import text_files
import torch
from learn_runs import TINY_READER
from torch import Tensor, nn

from mnemic.data.text_tasks.retrieval_batches import RetrievalBatch
from mnemic.data.text_tasks.retrieval_pairs import make_pairs
from mnemic.models import WindowBatch, build_model
from mnemic.objectives import OBJECTIVES
from mnemic.objectives.distillation.soft_labels import average_probabilities
from mnemic.objectives.distillation.soft_ranking import choose_candidates, ranking_divergence, score_candidates
from mnemic.objectives.retrieve_and_read import compare_texts
from mnemic.recipe import ConfigError, Recipe, build, load_recipe
from mnemic.text import WindowOptions
from mnemic.text.windows import make_question_windows
from mnemic.train.run import load_data

TINY = [
    *TINY_READER, "data.passages=3",
    "model.encode.stack.dropout=0.0", "model.encode.embeddings.dropout=0.0", "model.respond.dropout=0.0",
    'objective={kind="distil-ranking", hard={kind="retrieve-and-read"}, candidates=3}',
]  # fmt: skip


def ranking_recipe(folder: Path, *sets: str) -> Recipe:
    text_files.retrieval(folder, 40)
    return load_recipe("reader", [*TINY, f"data.folder={folder}", "teacher.folder=none", *sets])


def first_batch(recipe: Recipe) -> tuple[Any, RetrievalBatch]:
    data = load_data(recipe)
    generator = torch.Generator().manual_seed(0)
    return data, data.train.batch(torch.arange(4), torch.rand(4, data.train.num_uniforms, generator=generator))


class SlowRanker(nn.Module):
    """A cross-encoder whose score depends on every token and on where it stands."""

    def __init__(self) -> None:
        super().__init__()
        self.respond = nn.Identity()
        self.respond.pools_text = True  # type: ignore[assignment]
        self.calls: list[WindowBatch] = []

    def forward(self, inputs: WindowBatch) -> Any:
        self.calls.append(inputs)
        column = torch.arange(1.0, inputs.tokens.shape[1] + 1)
        values = (inputs.tokens + 3 * inputs.segment_ids + 0.5 * inputs.answer_mask) * inputs.mask
        return type("Output", (), {"logits": ((values * column.sin()).sum(1, keepdim=True) / 50)})


def test_a_ranking_by_hand() -> None:
    """Scores 2·ln 3 and 0 at temperature 2: 3/4 and 1/4. Cosines 0.1 and 0 at τ = 0.1: e and 1."""
    probabilities = average_probabilities([torch.tensor([[2 * log(3), 0.0]])], 2.0)
    loss = ranking_divergence(torch.tensor([[0.1, 0.0]]) / 0.1, probabilities)
    student = exp(1) / (exp(1) + 1)
    expected = 0.75 * log(0.75 / student) + 0.25 * log(0.25 / (1 - student))
    assert loss.total.item() == pytest.approx(expected, abs=1e-6)
    assert int(loss.num_targets) == 1
    assert ranking_divergence(probabilities.log(), probabilities).total.item() == pytest.approx(0, abs=1e-6)


def test_the_gradient_is_the_difference_of_probabilities() -> None:
    torch.manual_seed(0)
    logits, scores = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4)
    ranking_divergence(logits, average_probabilities([scores], 1.5)).total.backward()
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, logits.detach().softmax(1) - (scores / 1.5).softmax(1))


def test_the_limits_of_the_temperature() -> None:
    """Cold: the cross-entropy of the teacher's best. Hot: every candidate is as good."""
    torch.manual_seed(0)
    logits, scores = torch.randn(3, 4), torch.randn(3, 4)
    cold = ranking_divergence(logits, average_probabilities([scores], 1e-3)).total
    torch.testing.assert_close(cold, nn.functional.cross_entropy(logits, scores.argmax(1), reduction="sum"))
    hot = ranking_divergence(logits, average_probabilities([scores], 1e5)).total
    expected = -(logits.log_softmax(1).mean(1) + log(4)).sum()
    torch.testing.assert_close(hot, expected, rtol=1e-4, atol=1e-4)


def test_candidates_are_the_right_passage_and_the_nearest() -> None:
    similarities = torch.tensor([[0.1, 0.9, 0.5, 0.8], [0.9, 0.2, 0.3, 0.1]])
    gold, ids = torch.tensor([0, 3]), torch.tensor([7, 7, 8, 9])  # passage 1 is a copy of passage 0
    assert choose_candidates(similarities, gold, ids, 3).tolist() == [[0, 3, 2], [3, 0, 2]]
    assert choose_candidates(similarities, gold, ids, 9).shape == (2, 4)


def test_pairs_are_the_windows_of_the_tokenizer(tmp_path: Path) -> None:
    """Every question before every passage, as if it had been tokenized so."""
    data, batch = first_batch(ranking_recipe(tmp_path))
    tokenizer, dataset = data.tokenizer, data.train
    num_questions, num_texts = len(batch.gold_texts), len(batch.text_ids)
    questions, texts = torch.cartesian_prod(torch.arange(num_questions), torch.arange(num_texts)).unbind(1)
    pairs = make_pairs(batch, questions, texts)
    edges = batch.inputs.mask.cu_seqlens.tolist()

    def words_of(window: int) -> str:
        rank = int(batch.window_ranks[window])
        return tokenizer.decode(batch.inputs.tokens[0, edges[rank] + 1 : edges[rank + 1] - 1].tolist())

    options = WindowOptions(dataset.mix.max_tokens, 0, "first")
    for row, (question, text) in enumerate(zip(questions.tolist(), texts.tolist())):
        first, second = words_of(4 + question), words_of(4 + num_questions + text)
        (window,) = make_question_windows(tokenizer, first, second, options).windows
        size = len(window.ids)
        assert pairs.tokens[row, :size].tolist() == window.ids
        assert pairs.segment_ids[row, :size].tolist() == window.segments
        assert pairs.mask[row].tolist() == [True] * size + [False] * (pairs.mask.shape[1] - size)
        special = torch.tensor([token in tokenizer.special_ids for token in window.ids])
        assert torch.equal(pairs.answer_mask[row, :size], ~special)


def test_a_long_passage_leaves_space_for_the_question(tmp_path: Path) -> None:
    text_files.retrieval(tmp_path, 40, lines=6)
    sets = [*TINY, f"data.folder={tmp_path}", "teacher.folder=none"]
    _, batch = first_batch(load_recipe("reader", sets))
    questions = torch.arange(len(batch.gold_texts))
    pairs = make_pairs(batch, questions, batch.gold_texts)
    assert (pairs.mask.sum(1) == 24).all()
    ends = pairs.tokens.gather(1, pairs.mask.sum(1, keepdim=True) - 1)
    assert (ends == batch.inputs.tokens[0, -1]).all()  # [SEP]


def test_only_candidates_are_scored_and_each_in_its_place(tmp_path: Path) -> None:
    recipe = ranking_recipe(tmp_path)
    _, batch = first_batch(recipe)
    generator = torch.Generator().manual_seed(1)
    candidates = torch.randint(len(batch.text_ids), (len(batch.gold_texts), 3), generator=generator)
    ranker = SlowRanker()
    scores = score_candidates(ranker, batch, candidates)
    assert sum(len(call.tokens) for call in ranker.calls) == candidates.numel()
    for question, row in enumerate(candidates.tolist()):
        for column, text in enumerate(row):
            alone = make_pairs(batch, torch.tensor([question]), torch.tensor([text]))
            assert scores[question, column] == pytest.approx(float(ranker(alone).logits), abs=1e-4)


def slow_ranking(student: Any, rankers: list[SlowRanker], batch: Any, temperature: float) -> Tensor:
    """The mean over questions of the KL, question by question and candidate by candidate."""
    cosines, total = compare_texts(student(batch.inputs), batch), torch.zeros(())
    for question, gold in enumerate(batch.gold_texts.tolist()):
        keys = cosines["keys"][question].detach()
        copies = [t for t in range(len(keys)) if batch.text_ids[t] == batch.text_ids[gold] and t != gold]
        nearest = sorted((t for t in range(len(keys)) if t != gold and t not in copies), key=lambda t: -keys[t])
        chosen_texts = torch.tensor([gold, *nearest][:3])
        pairs = make_pairs(batch, torch.full((3,), question), chosen_texts)
        mean = sum((r(pairs).logits[:, 0] / temperature).softmax(0) for r in rankers) / len(rankers)
        for name, weight in (("keys", 5 / 6), ("passages", 1 / 6)):
            log_probs = (cosines[name][question, chosen_texts] / 0.05).log_softmax(0)
            total = total + weight * sum(p * (p.log() - q) for p, q in zip(mean, log_probs)) / len(batch.gold_texts)
    return total


def test_the_loss_and_its_gradient_have_a_slow_twin(tmp_path: Path) -> None:
    recipe = ranking_recipe(tmp_path, "objective.weight=0.7", "objective.temperature=3.0")
    data, batch = first_batch(recipe)
    torch.manual_seed(0)
    student, rankers = build_model(recipe["model"], data.sizes).train(), [SlowRanker(), SlowRanker()]
    objective = build(OBJECTIVES, recipe["objective"], teachers=rankers)
    loss = objective(student, batch)
    expected = slow_ranking(student, rankers, batch, 3.0)
    torch.testing.assert_close(loss.means["ranking"], expected.detach(), rtol=1e-4, atol=1e-6)
    hard = build(OBJECTIVES, {"kind": "retrieve-and-read"})(student, batch)
    mean = loss.total / loss.num_targets
    torch.testing.assert_close(mean, hard.total / hard.num_targets + 0.7 * expected, rtol=1e-4, atol=1e-6)
    gradient = torch.autograd.grad(mean, student.encode.embeddings.tokens)[0]
    slow_mean = hard.total / hard.num_targets + 0.7 * slow_ranking(student, rankers, batch, 3.0)
    slow_gradient = torch.autograd.grad(slow_mean, student.encode.embeddings.tokens)[0]
    torch.testing.assert_close(gradient, slow_gradient, rtol=1e-3, atol=1e-6)
    assert loss.means.keys() == {"hard", "ranking", "spans", "keys", "passages"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hard": {"kind": "spans"}}, "no kind 'spans' here"),
        ({"hard": {"kind": "retrieve-and-read"}, "candidates": 1}, "2 or more candidates, not .* candidates = 1"),
        ({"hard": {"kind": "retrieve-and-read"}, "temperature": 0}, "a temperature > 0"),
        ({"hard": {"kind": "retrieve-and-read", "keys": 0, "passages": 0}}, "keys or passages above 0"),
        ({"hard": {"kind": "retrieve-and-read"}, "delay": -1}, "delay and ramp_up are numbers of steps"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(OBJECTIVES, {"kind": "distil-ranking", **options}, teachers=())
