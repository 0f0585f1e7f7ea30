"""The four parts joined: words and answers they do not know, tied weights, losses and errors."""

from typing import Any

import pytest
import torch
from network_stories import EXAMPLES, SIZES, STORIES, WORDS, model, network_of, rows, same
from torch.nn import functional

from mnemic.data.babi.batches import encode_examples
from mnemic.data.babi.dataset import GeneratedStories
from mnemic.data.babi.format import StoryExample
from mnemic.evaluate.by_task import percent_by_task
from mnemic.evaluate.error_rate import compute_task_errors, find_wrong_answers, predict_answers
from mnemic.models import IGNORE, build_model
from mnemic.models.ensemble import StackedNetworks
from mnemic.objectives.answer import AnswerLoss, cross_entropy
from mnemic.recipe import ConfigError

# Words -----------------------------------------------------------------------------------------


def reworded(example: StoryExample, extra: str) -> StoryExample:
    sentences = tuple(f"{extra} {text}" for text in example.sentences)
    return example._replace(sentences=sentences, question=f"{extra} {example.question}")


def test_unknown_words_are_left_out_as_if_they_had_not_been_said() -> None:
    network, strange = network_of(), [reworded(example, "zyzzyva qux") for example in EXAMPLES[:5]]
    assert all(word not in WORDS for word in ("zyzzyva", "qux"))
    every = torch.arange(5)
    plain, odd = encode_examples(EXAMPLES[:5], WORDS), encode_examples(strange, WORDS)
    assert torch.equal(plain.texts, odd.texts)
    assert WORDS.unknown not in odd.texts
    same(network(plain.batch(every).inputs).logits, network(odd.batch(every).inputs).logits)


def test_a_text_of_unknown_words_only_is_an_empty_text() -> None:
    odd = encode_examples([StoryExample(("Zyzzyva qux.",), "Qux?", "milk", (0,), 1)], WORDS)
    assert odd.texts.eq(0).all()
    output = network_of()(odd.batch(rows(0)).inputs)
    assert output.logits.isfinite().all()


def test_an_answer_the_vocabulary_lacks_is_always_wrong_and_never_learned() -> None:
    strange = [example._replace(answer="zyzzyva") for example in EXAMPLES[:4]]
    stories, network = encode_examples(strange, WORDS), network_of()
    assert stories.answer.tolist() == [IGNORE] * 4
    assert find_wrong_answers(network, stories, torch.arange(4)).all()
    assert compute_task_errors(network, stories) == {1: 100.0}
    loss = AnswerLoss()(network, stories.batch(torch.arange(4)))
    assert loss.total == 0
    assert loss.num_targets == 0


def test_an_answer_of_several_words_is_one_entry() -> None:
    lists = [example for example in EXAMPLES if example.task == 8 and "," in example.answer]
    assert lists
    for row, example in enumerate(encode_examples(lists, WORDS).answer.tolist()):
        assert WORDS.vocabulary[example] == lists[row].answer


# Tying -----------------------------------------------------------------------------------------


def test_a_tied_matrix_is_one_weight_with_both_gradients() -> None:
    tied, apart = network_of(tied=True), network_of(tied=False)
    assert tied.respond.table is tied.encode.tables[-1]
    assert len(list(apart.parameters())) == len(list(tied.parameters())) + 1
    with torch.no_grad():
        for mine, other in zip(apart.encode.tables, tied.encode.tables, strict=True):
            mine.copy_(other)
        for mine, other in zip(apart.memory.time, tied.memory.time, strict=True):
            mine.copy_(other)
        apart.respond.table.copy_(tied.respond.table)
    batch = STORIES.batch(torch.arange(10))
    for network in (tied, apart):
        AnswerLoss()(network, batch).total.backward()
    used = apart.encode.tables[-1].grad, apart.respond.table.grad
    assert all(gradient.abs().sum() > 0 for gradient in used)
    same(tied.encode.tables[-1].grad, used[0] + used[1])


def test_every_weight_of_a_whole_network_gets_a_gradient() -> None:
    network = network_of(tied=False)
    AnswerLoss()(network, STORIES.batch(torch.arange(10))).total.backward()
    for name, weight in network.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name
        assert weight.grad.abs().sum() > 0, name


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"depth": 3}, r"\[model\] does not take 'depth'; it takes width, encode"),
        ({"memory": None}, r"a part is a table such as \{ kind = \"blended\" \}, not None"),
        ({"width": 0}, "model.width is a whole number from 1 on, not 0"),
        ({"width": True}, "model.width is a whole number from 1 on, not True"),
    ],
)
def test_a_wrong_model_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        build_model({**model(), **change}, SIZES)


def test_a_model_without_a_part_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"\[model\] needs respond"):
        build_model({k: v for k, v in model().items() if k not in ("memory", "respond")}, SIZES)


# Losses and errors -----------------------------------------------------------------------------


def test_cross_entropy_is_torchs_and_skips_what_is_not_asked() -> None:
    scores, targets = torch.randn(3, 4, 9), torch.randint(9, (3, 4))
    targets[0, 1] = targets[2, 3] = IGNORE
    total, count = cross_entropy(scores, targets)
    expected = functional.cross_entropy(scores.flatten(0, 1), targets.flatten(), reduction="sum")
    same(total, expected)
    assert count == 10


def test_prediction_is_the_best_word_however_the_questions_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    network, every = network_of().train(), torch.arange(len(STORIES))
    network.eval()
    best = network(STORIES.batch(every).inputs).logits[:, 0].argmax(-1)
    network.train()
    assert torch.equal(predict_answers(network, STORIES, every), best)
    assert network.training  # left as it was
    monkeypatch.setattr("mnemic.evaluate.error_rate.QUESTIONS_PER_BATCH", 7)
    assert torch.equal(predict_answers(network, STORIES, every), best)
    assert torch.equal(find_wrong_answers(network, STORIES, every), best != STORIES.answer)


def test_prediction_rests_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """No dropout while answering."""
    network, modes = network_of().train(), []
    forward = network.forward
    monkeypatch.setattr(network, "forward", lambda inputs: (modes.append(network.training), forward(inputs))[1])
    predict_answers(network, STORIES, rows(0, 1))
    assert modes == [False]


def test_errors_are_counted_task_by_task() -> None:
    tasks = torch.tensor([3, 1, 3, 3, 1])
    assert percent_by_task(torch.tensor([True, False, True, False, False]), tasks) == pytest.approx(
        {1: 0.0, 3: 200 / 3}
    )


def test_a_set_without_questions_is_survived() -> None:
    """Nothing was held back for validation: no questions, no errors."""
    data = GeneratedStories(count=10, tasks=[1], validation=0.0).load()
    assert len(data.validation) == 0
    network = build_model(model(slots=50), data.sizes)
    none = torch.arange(0)
    assert predict_answers(network, data.validation, none).shape == (0,)
    assert compute_task_errors(network, data.validation) == {}
    many = StackedNetworks([network, network])
    assert predict_answers(many, data.validation, none.expand(2, 0)).shape == (2, 0)
