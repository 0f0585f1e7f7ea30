"""Memory networks: unknown words and answers, tied weights, losses and errors."""

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


def add_words(example: StoryExample, extra: str) -> StoryExample:
    sentences = tuple(f"{extra} {text}" for text in example.sentences)
    return example._replace(sentences=sentences, question=f"{extra} {example.question}")


def test_unknown_words_are_left_out_as_if_they_had_not_been_said() -> None:
    network, with_unknown = network_of(), [add_words(example, "zyzzyva qux") for example in EXAMPLES[:5]]
    assert all(word not in WORDS for word in ("zyzzyva", "qux"))
    all_rows = torch.arange(5)
    plain_dataset, unknown_dataset = encode_examples(EXAMPLES[:5], WORDS), encode_examples(with_unknown, WORDS)
    assert torch.equal(plain_dataset.texts, unknown_dataset.texts)
    assert WORDS.unknown not in unknown_dataset.texts
    same(network(plain_dataset.batch(all_rows).inputs).logits, network(unknown_dataset.batch(all_rows).inputs).logits)


def test_a_text_of_unknown_words_only_is_an_empty_text() -> None:
    dataset = encode_examples([StoryExample(("Zyzzyva qux.",), "Qux?", "milk", (0,), 1)], WORDS)
    assert dataset.texts.eq(0).all()
    output = network_of()(dataset.batch(rows(0)).inputs)
    assert output.logits.isfinite().all()


def test_an_answer_the_vocabulary_lacks_is_always_wrong_and_never_learned() -> None:
    examples = [example._replace(answer="zyzzyva") for example in EXAMPLES[:4]]
    stories, network = encode_examples(examples, WORDS), network_of()
    assert stories.answer.tolist() == [IGNORE] * 4
    assert find_wrong_answers(network, stories, torch.arange(4)).all()
    assert compute_task_errors(network, stories) == {1: 100.0}
    loss = AnswerLoss()(network, stories.batch(torch.arange(4)))
    assert loss.total == 0
    assert loss.num_targets == 0


def test_an_answer_of_several_words_is_one_entry() -> None:
    lists = [example for example in EXAMPLES if example.task == 8 and "," in example.answer]
    assert lists
    for row, answer_id in enumerate(encode_examples(lists, WORDS).answer.tolist()):
        assert WORDS.vocabulary[answer_id] == lists[row].answer


# Tying -----------------------------------------------------------------------------------------


def test_a_tied_matrix_is_one_weight_with_both_gradients() -> None:
    tied, untied = network_of(tied=True), network_of(tied=False)
    assert tied.respond.table is tied.encode.tables[-1]
    assert len(list(untied.parameters())) == len(list(tied.parameters())) + 1
    with torch.no_grad():
        for copy_weight, tied_weight in zip(untied.encode.tables, tied.encode.tables, strict=True):
            copy_weight.copy_(tied_weight)
        for copy_weight, tied_weight in zip(untied.memory.time, tied.memory.time, strict=True):
            copy_weight.copy_(tied_weight)
        untied.respond.table.copy_(tied.respond.table)
    batch = STORIES.batch(torch.arange(10))
    for network in (tied, untied):
        AnswerLoss()(network, batch).total.backward()
    gradients = untied.encode.tables[-1].grad, untied.respond.table.grad
    assert all(gradient.abs().sum() > 0 for gradient in gradients)
    same(tied.encode.tables[-1].grad, gradients[0] + gradients[1])


def test_every_weight_of_a_whole_network_gets_a_gradient() -> None:
    network = network_of(tied=False)
    AnswerLoss()(network, STORIES.batch(torch.arange(10))).total.backward()
    for name, weight in network.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name
        assert weight.grad.abs().sum() > 0, name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": 3}, r"\[model\] does not take 'depth'; it takes width, encode"),
        ({"memory": None}, r"a part is a table such as \{ kind = \"blended\" \}, not None"),
        ({"width": 0}, "model.width is a whole number from 1 on, not 0"),
        ({"width": True}, "model.width is a whole number from 1 on, not True"),
    ],
)
def test_a_wrong_model_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_model({**model(), **change}, SIZES)


def test_a_model_without_a_part_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"\[model\] needs respond"):
        build_model({key: value for key, value in model().items() if key not in ("memory", "respond")}, SIZES)


# Losses and errors -----------------------------------------------------------------------------


def test_cross_entropy_equals_torchs_and_skips_ignored_targets() -> None:
    logits, targets = torch.randn(3, 4, 9), torch.randint(9, (3, 4))
    targets[0, 1] = targets[2, 3] = IGNORE
    total, count = cross_entropy(logits, targets)
    expected = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
    same(total, expected)
    assert count == 10


def test_prediction_is_the_best_word_however_the_questions_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    network, all_rows = network_of().train(), torch.arange(len(STORIES))
    network.eval()
    expected = network(STORIES.batch(all_rows).inputs).logits[:, 0].argmax(-1)
    network.train()
    assert torch.equal(predict_answers(network, STORIES, all_rows), expected)
    assert network.training  # the mode is restored
    monkeypatch.setattr("mnemic.evaluate.error_rate.QUESTIONS_PER_BATCH", 7)
    assert torch.equal(predict_answers(network, STORIES, all_rows), expected)
    assert torch.equal(find_wrong_answers(network, STORIES, all_rows), expected != STORIES.answer)


def test_prediction_uses_evaluation_mode(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_dataset_without_questions_gives_no_errors() -> None:
    """Without a validation split there are no questions and no errors."""
    data = GeneratedStories(count=10, tasks=[1], validation=0.0).load()
    assert len(data.validation) == 0
    network = build_model(model(slots=50), data.sizes)
    no_rows = torch.arange(0)
    assert predict_answers(network, data.validation, no_rows).shape == (0,)
    assert compute_task_errors(network, data.validation) == {}
    stacked = StackedNetworks([network, network])
    assert predict_answers(stacked, data.validation, no_rows.expand(2, 0)).shape == (2, 0)
