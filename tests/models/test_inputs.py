"""Stories as tensors: the layout of the inputs does not change the output.

Shapes: u texts, w words, b batch, n sentences, m questions, v vocabulary.
"""

import pytest
import torch
from network_stories import EXAMPLES, SLOTS, STORIES, WORDS, network_of, rows, same
from torch import Tensor

from mnemic.data.babi.batches import StoryBatch, StoryDataset, encode_examples
from mnemic.data.babi.dataset import GeneratedStories, generate_examples
from mnemic.data.babi.format import StoryExample
from mnemic.models import ModelOutput, StoryInputs, gather_rows
from mnemic.models.ensemble import StackedNetworks
from mnemic.text import WordTokenizer


def sentence_weights(output: ModelOutput) -> Tensor:
    """Compute how much of each sentence each hop read: b k n."""
    return (output.reading.weights[:, :, 0] @ output.written.weights[:, None].mT).squeeze(2)


# Layouts ---------------------------------------------------------------------------------------


def test_sharing_equal_texts_does_not_change_the_output() -> None:
    """Inputs as rows of a table of different texts, or with one row per occurrence."""
    network = network_of()
    shared = STORIES.batch(rows(0, 5, 14, 25)).inputs
    story, question = shared.story, shared.question
    texts = torch.cat([shared.texts[story.clamp(min=0)].flatten(0, 1), shared.texts[question[:, 0]]])
    indices = torch.arange(story.numel()).view_as(story)
    repeated = StoryInputs(
        texts, texts > 0, torch.where(story >= 0, indices, -1), torch.arange(len(question)).unsqueeze(1) + story.numel()
    )
    assert len(repeated.texts) > len(shared.texts)
    same(network(repeated).logits, network(shared).logits)
    same(sentence_weights(network(repeated)), sentence_weights(network(shared)))


def test_the_order_of_the_texts_does_not_matter() -> None:
    network = network_of()
    ordered = STORIES.batch(rows(1, 13, 22)).inputs
    order = torch.randperm(len(ordered.texts))
    inverse = order.argsort()
    story = torch.where(ordered.story >= 0, inverse[ordered.story.clamp(min=0)], -1)
    shuffled = StoryInputs(ordered.texts[order], ordered.mask[order], story, inverse[ordered.question])
    same(network(shuffled).logits, network(ordered).logits)


def test_a_compact_batch_gives_what_a_full_one_gives() -> None:
    network = network_of(slots=50)
    for batch_rows in (rows(0), rows(3, 3, 20), torch.arange(len(STORIES))):
        compact, full = STORIES.batch(batch_rows), STORIES.batch(batch_rows, compact=False)
        assert torch.equal(compact.answers, full.answers)
        same(network(compact.inputs).logits, network(full.inputs).logits)
        compact_weights, full_weights = (
            sentence_weights(network(compact.inputs)),
            sentence_weights(network(full.inputs)),
        )
        same(compact_weights, full_weights[..., : compact_weights.shape[-1]])
        assert full_weights[..., compact_weights.shape[-1] :].eq(0).all()


def test_a_compact_batch_holds_nothing_twice_and_no_padding() -> None:
    inputs = STORIES.batch(rows(0, 1, 2)).inputs
    assert len(inputs.texts.unique(dim=0)) == len(inputs.texts)
    used = torch.cat([inputs.story.flatten(), inputs.question.flatten()]).unique()
    assert used[used >= 0].tolist() == list(range(len(inputs.texts)))
    assert inputs.mask.any(0).all()
    assert (inputs.story >= 0).any(0).all()
    assert torch.equal(inputs.mask, inputs.texts > 0)


def test_full_batches_have_the_same_shapes_whatever_is_drawn() -> None:
    """CUDA graphs need constant shapes."""
    first, second = (STORIES.batch(batch_rows, compact=False) for batch_rows in (rows(0, 1), rows(25, 9)))
    for first_tensor, second_tensor in zip(first.inputs[:4], second.inputs[:4]):
        assert first_tensor.shape == second_tensor.shape


@pytest.mark.parametrize("compact", [True, False])
def test_a_batch_with_less_room_gives_the_same(compact: bool) -> None:
    network, max_length = network_of(slots=50), int(STORIES.lengths.median())
    short = (STORIES.lengths <= max_length).nonzero().flatten()
    small = STORIES.batch(short, compact=compact, max_length=max_length)
    assert small.inputs.story.shape[-1] == max_length
    same(network(small.inputs).logits, network(STORIES.batch(short).inputs).logits)
    stacked = STORIES.batch(short.view(1, -1), compact=compact, max_length=max_length)
    assert torch.equal(stacked.inputs.story[0], small.inputs.story)


def test_a_full_batch_uses_the_text_table_if_that_is_smaller() -> None:
    texts_per_question = STORIES.story.shape[1] + 1
    num_questions = len(STORIES.texts) // texts_per_question  # questions
    small, large = (
        STORIES.batch(torch.zeros(count).long(), compact=False) for count in (num_questions, num_questions + 1)
    )
    assert len(small.inputs.texts) == num_questions * texts_per_question
    assert torch.equal(large.inputs.texts, STORIES.texts)
    stacked = STORIES.batch(torch.zeros(3, num_questions + 1).long(), compact=False).inputs
    assert stacked.texts.shape == (3, *STORIES.texts.shape)


@pytest.mark.parametrize("compact", [True, False])
def test_stacked_batches_are_each_runs_own(compact: bool) -> None:
    """A leading axis of runs, for one program that trains many networks."""
    networks = [network_of(seed, noise=0.5) for seed in range(3)]
    rows_per_run = torch.tensor([[0, 1, 2, 3], [20, 21, 22, 25], [14, 14, 0, 9]])
    uniforms = torch.rand(3, 4, networks[0].num_uniforms)
    together = STORIES.batch(rows_per_run, uniforms, compact=compact)
    logits = StackedNetworks(networks).train()(together.inputs).logits
    for run, network in enumerate(networks):
        run_batch = STORIES.batch(rows_per_run[run], uniforms[run])
        assert torch.equal(together.answers[run], run_batch.answers)
        same(logits[run], network.train()(run_batch.inputs).logits)


def test_gather_rows_is_indexing_with_its_gradient() -> None:
    states = torch.randn(5, 2, 3, requires_grad=True)
    indices = torch.tensor([[0, 4, 4], [2, 0, 4]])
    weights = torch.randn(2, 3, 2, 3)
    gathered = gather_rows(states, indices)
    assert torch.equal(gathered, states[indices])
    (first,) = torch.autograd.grad((gathered * weights).sum(), states)
    (second,) = torch.autograd.grad((states[indices] * weights).sum(), states)
    same(first, second)


# Long and short stories ------------------------------------------------------------------------


def test_of_a_story_longer_than_memory_only_the_end_counts() -> None:
    """Cut in the dataset or dropped by the memory: only the newest sentences count."""
    network = network_of()
    cut = encode_examples(EXAMPLES, WORDS, max_sentences=SLOTS)
    assert STORIES.story.shape[1] > SLOTS
    assert cut.story.shape[1] == SLOTS
    all_rows = torch.arange(len(EXAMPLES))
    same(network(cut.batch(all_rows).inputs).logits, network(STORIES.batch(all_rows).inputs).logits)


def test_facts_point_at_their_sentences_after_cutting() -> None:
    cut = encode_examples(EXAMPLES, WORDS, max_sentences=SLOTS)
    texts = list(dict.fromkeys(text for story in EXAMPLES for text in (*story.sentences[-SLOTS:], story.question)))
    num_dropped = 0
    for row, example in enumerate(EXAMPLES):
        remaining = range(max(len(example.sentences) - SLOTS, 0), len(example.sentences))
        expected = {example.sentences[fact] for fact in example.facts if fact in remaining}
        text_ids = cut.story[row, cut.facts[row]]
        assert {texts[text_id] for text_id in text_ids.tolist()} == expected
        assert int(cut.facts[row].sum()) == sum(fact in remaining for fact in set(example.facts))
        num_dropped += sum(fact not in remaining for fact in example.facts)
    assert num_dropped  # the cut matters here


def test_a_question_before_any_sentence() -> None:
    example = StoryExample((), EXAMPLES[0].question, EXAMPLES[0].answer, (), 1)
    for case in ([example], [EXAMPLES[0], example]):
        stories = encode_examples(case, WORDS)
        logits = network_of()(stories.batch(torch.arange(len(case))).inputs).logits
        assert logits.isfinite().all()


def test_select_keeps_questions_and_shares_texts() -> None:
    selected = STORIES.select(rows(4, 2))
    assert len(selected) == 2
    assert selected.texts is STORIES.texts
    network = network_of()
    same(network(selected.batch(rows(0, 1)).inputs).logits, network(STORIES.batch(rows(4, 2)).inputs).logits)


# Contents --------------------------------------------------------------------------------------


def test_the_last_tenth_of_each_task_is_held_back() -> None:
    data = GeneratedStories(count=50, tasks=[1, 2], validation=0.1).load()
    for task in (1, 2):
        examples = generate_examples(task, 50, 0)
        cut = 45
        for dataset, expected in ((data.train, examples[:cut]), (data.validation, examples[cut:])):
            task_dataset = dataset.select((dataset.task == task).nonzero().squeeze(1))
            answers = [data.tokenizer.vocabulary[answer] for answer in task_dataset.answer.tolist()]
            assert answers == [example.answer.lower() for example in expected]
            questions = [
                data.tokenizer.decode(task_dataset.texts[row].tolist()) for row in task_dataset.question.tolist()
            ]
            assert questions == [
                data.tokenizer.decode(data.tokenizer.encode(example.question).ids) for example in expected
            ]


def test_a_batch_is_what_the_stories_say() -> None:
    """Decoded ids give the sentences in order, the question and the answer."""
    batch: StoryBatch = STORIES.batch(rows(17, 2))
    for row, index in enumerate((17, 2)):
        example = EXAMPLES[index]
        text_ids = [text for text in batch.inputs.story[row].tolist() if text >= 0]
        for text_id, sentence in zip(text_ids, example.sentences, strict=True):
            assert decode_ids(batch.inputs.texts[text_id]) == normalize_text(sentence)
        assert decode_ids(batch.inputs.texts[batch.inputs.question[row, 0]]) == normalize_text(example.question)
        assert WORDS.vocabulary[batch.answers[row, 0]] == example.answer.lower()


def decode_ids(ids: Tensor) -> str:
    return WORDS.decode(ids.tolist())


def normalize_text(text: str) -> str:
    return " ".join(text.lower().replace(".", " ").replace("?", " ").split())


def test_a_dataset_moves_to_a_device_with_equal_values() -> None:
    assert isinstance(WORDS, WordTokenizer)
    moved = STORIES.to("cpu")
    assert isinstance(moved, StoryDataset)
    assert all(
        moved_value is value is None or torch.equal(moved_value, value)
        for moved_value, value in zip(vars(moved).values(), vars(STORIES).values(), strict=True)
    )
