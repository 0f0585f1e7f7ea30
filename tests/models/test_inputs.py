"""Stories as tensors: the layout of the inputs never shows.

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


def evidence(output: ModelOutput) -> Tensor:
    """How much of each sentence every hop read: b k n."""
    return (output.reading.weights[:, :, 0] @ output.written.weights[:, None].mT).squeeze(2)


# One text once ---------------------------------------------------------------------------------


def test_a_text_that_stands_once_or_often_gives_the_same() -> None:
    """Inputs as rows of a table of different texts, or every text of every story by itself."""
    network = network_of()
    once = STORIES.batch(rows(0, 5, 14, 25)).inputs
    story, question = once.story, once.question
    texts = torch.cat([once.texts[story.clamp(min=0)].flatten(0, 1), once.texts[question[:, 0]]])
    places = torch.arange(story.numel()).view_as(story)
    often = StoryInputs(
        texts, texts > 0, torch.where(story >= 0, places, -1), torch.arange(len(question)).unsqueeze(1) + story.numel()
    )
    assert len(often.texts) > len(once.texts)
    same(network(often).logits, network(once).logits)
    same(evidence(network(often)), evidence(network(once)))


def test_the_order_of_the_texts_does_not_matter() -> None:
    network = network_of()
    plain = STORIES.batch(rows(1, 13, 22)).inputs
    order = torch.randperm(len(plain.texts))
    back = order.argsort()
    story = torch.where(plain.story >= 0, back[plain.story.clamp(min=0)], -1)
    mixed = StoryInputs(plain.texts[order], plain.mask[order], story, back[plain.question])
    same(network(mixed).logits, network(plain).logits)


def test_a_compact_batch_gives_what_a_full_one_gives() -> None:
    network = network_of(slots=50)
    for chosen in (rows(0), rows(3, 3, 20), torch.arange(len(STORIES))):
        small, full = STORIES.batch(chosen), STORIES.batch(chosen, compact=False)
        assert torch.equal(small.answers, full.answers)
        same(network(small.inputs).logits, network(full.inputs).logits)
        read, whole = evidence(network(small.inputs)), evidence(network(full.inputs))
        same(read, whole[..., : read.shape[-1]])
        assert whole[..., read.shape[-1] :].eq(0).all()


def test_a_compact_batch_holds_nothing_twice_and_no_padding() -> None:
    inputs = STORIES.batch(rows(0, 1, 2)).inputs
    assert len(inputs.texts.unique(dim=0)) == len(inputs.texts)
    used = torch.cat([inputs.story.flatten(), inputs.question.flatten()]).unique()
    assert used[used >= 0].tolist() == list(range(len(inputs.texts)))
    assert inputs.mask.any(0).all()
    assert (inputs.story >= 0).any(0).all()
    assert torch.equal(inputs.mask, inputs.texts > 0)


def test_full_batches_have_the_same_shapes_whatever_is_drawn() -> None:
    """As a CUDA graph needs them."""
    first, second = (STORIES.batch(chosen, compact=False) for chosen in (rows(0, 1), rows(25, 9)))
    for one, other in zip(first.inputs[:4], second.inputs[:4]):
        assert one.shape == other.shape


@pytest.mark.parametrize("compact", [True, False])
def test_a_batch_with_less_room_gives_the_same(compact: bool) -> None:
    network, most = network_of(slots=50), int(STORIES.lengths.median())
    short = (STORIES.lengths <= most).nonzero().flatten()
    small = STORIES.batch(short, compact=compact, max_length=most)
    assert small.inputs.story.shape[-1] == most
    same(network(small.inputs).logits, network(STORIES.batch(short).inputs).logits)
    stacked = STORIES.batch(short.view(1, -1), compact=compact, max_length=most)
    assert torch.equal(stacked.inputs.story[0], small.inputs.story)


def test_a_full_batch_holds_each_text_once_where_that_is_less() -> None:
    places = STORIES.story.shape[1] + 1
    few = len(STORIES.texts) // places  # questions
    less, more = (STORIES.batch(torch.zeros(n).long(), compact=False) for n in (few, few + 1))
    assert len(less.inputs.texts) == few * places
    assert torch.equal(more.inputs.texts, STORIES.texts)
    stacked = STORIES.batch(torch.zeros(3, few + 1).long(), compact=False).inputs
    assert stacked.texts.shape == (3, *STORIES.texts.shape)


@pytest.mark.parametrize("compact", [True, False])
def test_stacked_batches_are_each_runs_own(compact: bool) -> None:
    """A runs axis in front, for one program that trains many networks."""
    networks = [network_of(seed, noise=0.5) for seed in range(3)]
    chosen = torch.tensor([[0, 1, 2, 3], [20, 21, 22, 25], [14, 14, 0, 9]])
    rolls = torch.rand(3, 4, networks[0].num_uniforms)
    together = STORIES.batch(chosen, rolls, compact=compact)
    scores = StackedNetworks(networks).train()(together.inputs).logits
    for run, network in enumerate(networks):
        own = STORIES.batch(chosen[run], rolls[run])
        assert torch.equal(together.answers[run], own.answers)
        same(scores[run], network.train()(own.inputs).logits)


def test_take_is_indexing_with_its_gradient() -> None:
    states = torch.randn(5, 2, 3, requires_grad=True)
    chosen = torch.tensor([[0, 4, 4], [2, 0, 4]])
    weights = torch.randn(2, 3, 2, 3)
    found = gather_rows(states, chosen)
    assert torch.equal(found, states[chosen])
    (first,) = torch.autograd.grad((found * weights).sum(), states)
    (second,) = torch.autograd.grad((states[chosen] * weights).sum(), states)
    same(first, second)


# Long stories and short ones -------------------------------------------------------------------


def test_a_story_longer_than_memory_is_its_end() -> None:
    """Cut while reading the data or dropped by the memory: the newest sentences count."""
    network = network_of()
    cut = encode_examples(EXAMPLES, WORDS, max_sentences=SLOTS)
    assert STORIES.story.shape[1] > SLOTS
    assert cut.story.shape[1] == SLOTS
    every = torch.arange(len(EXAMPLES))
    same(network(cut.batch(every).inputs).logits, network(STORIES.batch(every).inputs).logits)


def test_facts_point_at_their_sentences_after_cutting() -> None:
    cut = encode_examples(EXAMPLES, WORDS, max_sentences=SLOTS)
    texts = list(dict.fromkeys(t for e in EXAMPLES for t in (*e.sentences[-SLOTS:], e.question)))
    lost = 0
    for row, example in enumerate(EXAMPLES):
        kept = range(max(len(example.sentences) - SLOTS, 0), len(example.sentences))
        expected = {example.sentences[fact] for fact in example.facts if fact in kept}
        found = cut.story[row, cut.facts[row]]
        assert {texts[text] for text in found.tolist()} == expected
        assert int(cut.facts[row].sum()) == sum(fact in kept for fact in set(example.facts))
        lost += sum(fact not in kept for fact in example.facts)
    assert lost  # the cut matters here


def test_a_question_before_any_sentence() -> None:
    asked = StoryExample((), EXAMPLES[0].question, EXAMPLES[0].answer, (), 1)
    for examples in ([asked], [EXAMPLES[0], asked]):
        stories = encode_examples(examples, WORDS)
        scores = network_of()(stories.batch(torch.arange(len(examples))).inputs).logits
        assert scores.isfinite().all()


def test_only_keeps_questions_and_shares_texts() -> None:
    some = STORIES.select(rows(4, 2))
    assert len(some) == 2
    assert some.texts is STORIES.texts
    network = network_of()
    same(network(some.batch(rows(0, 1)).inputs).logits, network(STORIES.batch(rows(4, 2)).inputs).logits)


# What the stories say --------------------------------------------------------------------------


def test_the_last_tenth_of_each_task_is_held_back() -> None:
    data = GeneratedStories(count=50, tasks=[1, 2], validation=0.1).load()
    for task in (1, 2):
        examples = generate_examples(task, 50, 0)
        cut = 45
        for part, expected in ((data.train, examples[:cut]), (data.validation, examples[cut:])):
            own = part.select((part.task == task).nonzero().squeeze(1))
            answers = [data.tokenizer.vocabulary[answer] for answer in own.answer.tolist()]
            assert answers == [example.answer.lower() for example in expected]
            questions = [data.tokenizer.decode(own.texts[row].tolist()) for row in own.question.tolist()]
            assert questions == [data.tokenizer.decode(data.tokenizer.encode(e.question).ids) for e in expected]


def test_a_batch_is_what_the_stories_say() -> None:
    """Back from numbers to words: sentences in order, the question, the answer."""
    batch: StoryBatch = STORIES.batch(rows(17, 2))
    for row, number in enumerate((17, 2)):
        example = EXAMPLES[number]
        told = [text for text in batch.inputs.story[row].tolist() if text >= 0]
        for text, sentence in zip(told, example.sentences, strict=True):
            assert words_of(batch.inputs.texts[text]) == plain(sentence)
        assert words_of(batch.inputs.texts[batch.inputs.question[row, 0]]) == plain(example.question)
        assert WORDS.vocabulary[batch.answers[row, 0]] == example.answer.lower()


def words_of(ids: Tensor) -> str:
    return WORDS.decode(ids.tolist())


def plain(text: str) -> str:
    return " ".join(text.lower().replace(".", " ").replace("?", " ").split())


def test_stories_are_values() -> None:
    assert isinstance(WORDS, WordTokenizer)
    moved = STORIES.to("cpu")
    assert isinstance(moved, StoryDataset)
    assert all(torch.equal(one, other) for one, other in zip(vars(moved).values(), vars(STORIES).values(), strict=True))
