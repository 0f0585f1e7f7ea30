"""Which sentence was read most, whether it proves the answer, and whether the answer needs it.

Shapes: b batch, n sentences, m queries, s slots, k hops, h heads.
"""

import pytest
import torch
from evidence_by_task import measure_faithfulness, measure_supporting_facts
from torch import Tensor, nn

from mnemic.data.babi.batches import StoryDataset
from mnemic.data.contract import LoadedData
from mnemic.evaluate.evidence import (
    compute_read_weights,
    find_most_read,
    find_stored_mask,
    remove_sentence,
    run_ablations,
)
from mnemic.memory import Reading, Written
from mnemic.models import MemoryNetwork, ModelOutput, StoryInputs
from mnemic.models.contract import BaseNetwork
from mnemic.predict import compute_sentence_weights
from mnemic.recipe import load_recipe
from mnemic.reproduce.train_ensemble import create_networks, train_ensemble
from mnemic.train.run import load_data


def output_of(read: Tensor, written: Tensor, scores: Tensor | None = None) -> ModelOutput:
    """``read`` b k h m s, ``written`` b n s."""
    reading = Reading(torch.zeros(0), read, read)
    return ModelOutput(torch.zeros(0) if scores is None else scores, reading, Written((), written))


# Made by hand ----------------------------------------------------------------------------------


def test_the_hop_that_read_most_of_a_sentence_counts() -> None:
    read = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.0, 0.9]])[None, :, None, None]  # 1 2 1 1 3
    output = output_of(read, torch.eye(3)[None])
    torch.testing.assert_close(compute_read_weights(output), torch.tensor([[[0.5, 0.3, 0.9]]]))
    assert find_most_read(output, torch.arange(3)[None]).tolist() == [[2]]


def test_heads_of_a_hop_are_taken_together() -> None:
    """One head alone may stare at a sentence that the others ignore."""
    read = torch.tensor([[0.0, 1.0], [0.7, 0.3], [0.9, 0.1]])[None, None, :, None]  # 1 1 3 1 2
    output = output_of(read, torch.eye(2)[None])
    torch.testing.assert_close(compute_read_weights(output)[0, 0], torch.tensor([1.6, 1.4]) / 3)


def test_slots_are_followed_back_to_sentences() -> None:
    """Slot 0 holds sentence 2, slot 1 a little of 0 and 1: reading slot 0 is reading sentence 2."""
    written = torch.tensor([[0.0, 0.5], [0.0, 0.2], [1.0, 0.0]])[None]
    read = torch.tensor([0.4, 0.6])[None, None, None, None]
    output = output_of(read, written)
    torch.testing.assert_close(compute_read_weights(output), torch.tensor([[[0.3, 0.12, 0.4]]]))
    assert find_most_read(output, torch.arange(3)[None]).tolist() == [[2]]


def test_what_is_not_in_memory_is_never_most_read() -> None:
    """Sentence 0 was pushed out and place 3 is padding; even a read of nothing names another."""
    written = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])[None]
    output = output_of(torch.tensor([-1.0, -2.0])[None, None, None, None], written)
    story = torch.tensor([[4, 5, 6, -1]])
    assert find_stored_mask(output, story).tolist() == [[False, True, True, False]]
    assert find_most_read(output, story).tolist() == [[1]]


def test_every_question_of_a_story_has_its_own() -> None:
    read = torch.eye(3)[None, None, None]  # question m reads slot m
    assert find_most_read(output_of(read, torch.eye(3)[None]), torch.arange(3)[None]).tolist() == [[0, 1, 2]]


def test_a_removed_sentence_is_gone_and_the_rest_stays() -> None:
    story = torch.tensor([[4, 5, 6], [7, 8, -1]])
    inputs = StoryInputs(torch.zeros(9, 2).long(), torch.ones(9, 2).bool(), story, torch.zeros(2, 1))
    removed = remove_sentence(inputs, torch.tensor([1, 0]))
    assert removed.story.tolist() == [[4, -1, 6], [-1, 8, -1]]
    assert story.tolist() == [[4, 5, 6], [7, 8, -1]]
    assert removed.texts is inputs.texts


class FirstWord(BaseNetwork):
    """Reads the sentence whose first word is largest and answers with that word."""

    def __init__(self, reads: bool = True) -> None:
        super().__init__()
        self.reads = reads

    def forward(self, inputs: StoryInputs) -> ModelOutput:
        first = inputs.texts[inputs.story.clamp(min=0), 0].where(inputs.story >= 0, 0)  # b n
        best = first.argmax(1, keepdim=True)  # b 1
        read_ids = best if self.reads else first.masked_fill(inputs.story < 0, 99).argmin(1)[:, None]
        read_weights = nn.functional.one_hot(read_ids, first.shape[1]).float()  # b 1 n
        logits = nn.functional.one_hot(first.gather(1, best), 9).float()  # b 1 9
        write_weights = (inputs.story >= 0).unsqueeze(2) * torch.eye(first.shape[1])
        return output_of(read_weights[:, None, None], write_weights, logits)


def stories_of(rows: list[list[int]], facts: list[list[int]], tasks: list[int]) -> StoryDataset:
    """Sentence i is the word i alone; the question is the word 1."""
    width = max(len(row) for row in rows)
    story = torch.tensor([row + [-1] * (width - len(row)) for row in rows])
    proof = torch.zeros(len(rows), width, dtype=torch.bool)
    for row, sentences in enumerate(facts):
        proof[row, sentences] = True
    count = len(rows)
    return StoryDataset(
        texts=torch.arange(9)[:, None],
        story=story,
        question=torch.ones(count, dtype=torch.long),
        answer=torch.ones(count, dtype=torch.long),
        task=torch.tensor(tasks),
        facts=proof,
        chain=torch.zeros(count, 0, dtype=torch.long),
    )


SET = stories_of([[3, 8, 5], [7, 2], [4, 6, 5], [4]], facts=[[1], [1], [0, 1], []], tasks=[1, 1, 2, 3])


def test_supporting_facts_are_counted_task_by_task() -> None:
    assert measure_supporting_facts(FirstWord(), SET) == {1: 50.0, 2: 100.0, 3: 0.0}


def test_the_answer_hangs_on_what_was_read_and_on_nothing_else() -> None:
    """Task 3 has a single sentence: there is no other one to compare with, so it is left out."""
    faithfulness = measure_faithfulness(FirstWord(), SET, torch.Generator().manual_seed(0))
    assert faithfulness.most_read == {1: 100.0, 2: 100.0}
    assert faithfulness.random_other == {1: 0.0, 2: 0.0}


def test_a_network_that_shows_something_else_is_found_out() -> None:
    liar = FirstWord(reads=False)
    assert measure_supporting_facts(liar, SET)[2] == 100.0  # that sentence happens to be a fact
    stories = stories_of([[3, 8]] * 40, [[1]] * 40, [1] * 40)
    faithfulness = measure_faithfulness(liar, stories, torch.Generator().manual_seed(0))
    assert faithfulness.most_read == {1: 0.0}
    assert faithfulness.random_other == {1: 100.0}


def test_the_other_sentence_falls_as_the_dice_do() -> None:
    """Of three others one matters: a third of the time the answer changes."""
    stories = stories_of([[1, 8, 2, 3]] * 3000, [[1]] * 3000, [1] * 3000)
    liar = FirstWord(reads=False)  # shows sentence 0, answers from sentence 1
    generator = torch.Generator().manual_seed(0)
    first = measure_faithfulness(liar, stories, generator).random_other[1]
    assert abs(first - 100 / 3) < 3
    again = measure_faithfulness(liar, stories, torch.Generator().manual_seed(0)).random_other[1]
    assert again == first
    assert measure_faithfulness(liar, stories, generator).random_other[1] != first


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_is_put_back(training: bool) -> None:
    network, modes = FirstWord().train(training), list[bool]()
    network.register_forward_pre_hook(lambda module, _: modes.append(module.training))
    run_ablations(network, SET, torch.Generator())
    assert set(modes) == {False}
    assert network.training == training


# A trained network -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained_network() -> tuple[MemoryNetwork, LoadedData[StoryDataset]]:
    data_override = 'data={kind="generated", tasks=[1], count=1000}'
    short = ["phases.0.train.epochs=5", "train.epochs=15", "train.schedule.every=5"]
    recipe = load_recipe("memn2n", [data_override, *short, "model.memory.hops=1"])
    data = load_data(recipe)
    networks = create_networks(recipe, data, [0])
    rows_per_run = [torch.arange(len(data.train))]
    for _ in train_ensemble(recipe, data, networks, seeds=[0], rows_per_run=rows_per_run, device=torch.device("cpu")):
        pass
    return networks[0], data


def test_it_reads_the_proof_and_needs_it(trained_network: tuple[MemoryNetwork, LoadedData[StoryDataset]]) -> None:
    network, data = trained_network
    assert measure_supporting_facts(network, data.test)[1] > 90
    faithfulness = measure_faithfulness(network, data.test, torch.Generator().manual_seed(0))
    assert faithfulness.most_read[1] > 50
    assert faithfulness.most_read[1] > 5 * faithfulness.random_other[1]


def test_it_agrees_with_what_is_shown_to_an_asker(
    trained_network: tuple[MemoryNetwork, LoadedData[StoryDataset]],
) -> None:
    network, data = trained_network
    with torch.no_grad():
        inputs = data.test.batch(torch.tensor([17])).inputs
        output = network.eval()(inputs)
    weights_by_sentence = {sentence: max(weights) for sentence, weights in compute_sentence_weights(output).items()}
    assert find_most_read(output, inputs.story).item() == max(
        weights_by_sentence, key=lambda sentence: weights_by_sentence[sentence]
    )
