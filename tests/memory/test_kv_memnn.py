"""The key-value memory: equations, keys, key hashing, and questions with several right answers.

Shapes: b batch, m queries, s slots, k hops, d width, c candidates, v vocabulary.
"""

from typing import Any

import pytest
import torch

from mnemic.data.knowledge.batches import encode_base, encode_questions
from mnemic.data.knowledge.format import Fact, KnowledgeQuestion
from mnemic.data.knowledge.slots import KeyValuePair, make_fact_pairs
from mnemic.memory.kv_memnn import KeyValueMemory
from mnemic.memory.parts.key_hash import KeyHash, select_slots
from mnemic.models import IGNORE, build_model
from mnemic.objectives.answers import AnswersLoss, marginal_nll, sample_evenly
from mnemic.text import WordTokenizer

FACTS = [
    Fact("The Bat", "directed_by", "Ada Berg"),
    Fact("The Bat", "release_year", "1959"),
    Fact("Bat", "directed_by", "Bo Carr"),
    Fact("The Owl", "directed_by", "Ada Berg"),
    Fact("The Owl", "starred_actors", "Bo Carr"),
    Fact("The Owl", "starred_actors", "Cy Dahl"),
]
QUESTIONS = [
    KnowledgeQuestion("who directed [The Bat]", ("Ada Berg",)),
    KnowledgeQuestion("what did [Ada Berg] direct", ("The Bat", "The Owl")),
    KnowledgeQuestion("who acted in [The Owl]", ("Cy Dahl", "Bo Carr")),
    KnowledgeQuestion("who directed [The Fox]", ("Nobody Known",)),
]
MODEL: dict[str, Any] = {
    "width": 16,
    "encode": {"kind": "bag", "position": False},
    "memory": {"kind": "key-value"},
    "respond": {"kind": "word", "tied": True},
}


def build_tokenizer_of(facts: list[Fact]) -> WordTokenizer:
    extra_words = {f"[{entity}]" for fact in facts for entity in (fact.subject, fact.object)}
    extra_words |= {prefix + fact.relation for fact in facts for prefix in ("", "!")}
    return WordTokenizer.from_texts([question.text for question in QUESTIONS], extra=extra_words)


def make_dataset(max_slots: int = 200) -> Any:
    tokenizer = build_tokenizer_of(FACTS)
    base = encode_base(make_fact_pairs(FACTS), tokenizer)
    return encode_questions(QUESTIONS, base, tokenizer, KeyHash(base.keys, max_slots=max_slots))


# The equations -------------------------------------------------------------------------------


def test_reading_is_the_papers_equations_slot_by_slot() -> None:
    torch.manual_seed(0)
    memory = KeyValueMemory(5, hops=3).requires_grad_(False)
    memory.update.maps.normal_()
    states, query = torch.randn(2, 7, 2, 5), torch.randn(2, 3, 2, 5)
    mask = torch.tensor([[True] * 7, [True, True, False, True, False, False, False]])
    reading = memory.read(memory.write(memory.empty(2, states), states, mask).state, query)
    for row in range(2):
        real_slots = mask[row].nonzero().flatten().tolist()
        for query_index in range(3):
            state = query[row, query_index, 0]
            for hop in range(3):
                scores = {s: float(state @ states[row, s, 0]) for s in real_slots}
                max_score = max(scores.values())
                exponentials = {s: torch.tensor(score - max_score).exp() for s, score in scores.items()}
                weights = {s: exponential / sum(exponentials.values()) for s, exponential in exponentials.items()}
                output = sum((weights[s] * states[row, s, 1] for s in real_slots), torch.zeros(5))
                state = memory.update.maps[hop] @ (state + output)
                for s in real_slots:
                    torch.testing.assert_close(reading.weights[row, hop, 0, query_index, s], weights[s])
                    assert float(reading.scores[row, hop, 0, query_index, s]) == pytest.approx(
                        scores[s], rel=1e-3, abs=1e-3
                    )
            torch.testing.assert_close(reading.found[row, query_index], state, rtol=1e-4, atol=1e-4)
    assert reading.weights[1, ..., [2, 4, 5, 6]].eq(0).all()


def test_a_query_equal_to_key_three_reads_value_three() -> None:
    """The read returns the value, not the key that matched."""
    memory = KeyValueMemory(8, hops=1)
    keys, values = 9 * torch.eye(8), torch.randn(8, 8)
    states = torch.stack([keys, values], 1).unsqueeze(0)  # 1 8 2 8
    written = memory.write(memory.empty(1, states), states, torch.ones(1, 8, dtype=torch.bool))
    query = torch.stack([keys[3], torch.zeros(8)]).view(1, 1, 2, 8)
    reading = memory.read(written.state, query)
    assert reading.weights[0, 0, 0, 0].argmax() == 3
    torch.testing.assert_close(reading.found[0, 0] - keys[3], values[3])


def test_an_impossible_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="hops and slots ≥ 1, not 0 and 200"):
        KeyValueMemory(8, hops=0)


def test_the_value_is_of_another_text_than_the_key() -> None:
    """The first embedding table is for texts of keys, the second for values."""
    dataset = make_dataset()
    network = build_model(MODEL, {"vocab": len(build_tokenizer_of(FACTS)), "max_length": 9})
    inputs = dataset.batch(torch.arange(len(dataset))).inputs
    story, mask, _ = network.encode_inputs(inputs)
    key, value = network.encode.tables
    for row, slots in enumerate(dataset.slots.tolist()):
        for position, slot in enumerate(slot for slot in slots if slot >= 0):
            key_words = dataset.texts[dataset.key_rows[slot]]
            torch.testing.assert_close(story[row, position, 0], key[key_words[key_words > 0]].sum(0))
            torch.testing.assert_close(story[row, position, 1], value[dataset.texts[dataset.value_rows[slot], 0]])
    assert torch.equal(mask.sum(1), (dataset.slots >= 0).sum(1))


# Keys ----------------------------------------------------------------------------------------


def test_a_fact_is_found_from_both_ends() -> None:
    assert list(make_fact_pairs(FACTS[:1])) == [
        KeyValuePair("[The Bat] directed_by", "[Ada Berg]"),
        KeyValuePair("[Ada Berg] !directed_by", "[The Bat]"),
    ]


# Selecting -----------------------------------------------------------------------------------


def test_select_returns_exactly_the_slots_that_share_the_entity() -> None:
    tokenizer = build_tokenizer_of(FACTS)
    pairs = list(make_fact_pairs(FACTS))
    base = encode_base(pairs, tokenizer)
    select = KeyHash(base.keys)
    for name in ("The Bat", "Bat", "Ada Berg", "Bo Carr", "1959"):
        question = torch.tensor([tokenizer.encode(f"who directed [{name}]").ids])
        slots = select(question)[0].tolist()
        assert slots == [slot for slot, pair in enumerate(pairs) if pair.key.startswith(f"[{name}]")]
    assert select(torch.tensor([tokenizer.encode("who directed it").ids])).shape == (1, 0)


def test_the_rarest_word_comes_first_and_common_words_select_nothing() -> None:
    keys = torch.tensor([[5, 7], [5, 8], [5, 7], [6, 9], [6, 0]])
    assert KeyHash(keys)(torch.tensor([[5, 8, 9]])).tolist() == [[1, 3, 0, 2]]
    assert KeyHash(keys, max_slots=2)(torch.tensor([[5, 8, 0]])).tolist() == [[1, 0]]
    assert KeyHash(keys, max_frequency=2)(torch.tensor([[5, 6, 0], [1, 0, 0]])).tolist() == [[3, 4], [-1, -1]]
    with pytest.raises(ValueError, match="max_slots and max_frequency ≥ 1"):
        KeyHash(keys, max_slots=0)


def test_slots_picked_from_one_shared_memory_are_those_written_alone() -> None:
    """``select_slots`` before ``read``: one shared base, and a few slots per question."""
    torch.manual_seed(0)
    memory = KeyValueMemory(6).requires_grad_(False)
    states, query = torch.randn(1, 9, 2, 6), torch.randn(2, 1, 2, 6)
    shared = memory.write(memory.empty(1, states), states, torch.ones(1, 9, dtype=torch.bool)).state
    slots = torch.tensor([[2, 7, 4], [8, -1, -1]])
    selected_states = states[0, slots.clamp(min=0)]
    separate = memory.write(memory.empty(2, selected_states), selected_states, slots >= 0).state
    selected, written = memory.read(select_slots(shared, slots), query), memory.read(separate, query)
    torch.testing.assert_close(selected.found, written.found)
    torch.testing.assert_close(selected.weights, written.weights)
    assert select_slots(shared, slots).sources.tolist() == slots.tolist()


# Several right answers -----------------------------------------------------------------------


def test_every_right_answer_counts_as_right() -> None:
    dataset, tokenizer = make_dataset(), build_tokenizer_of(FACTS)
    rows = torch.arange(4)
    for name, right_rows in (("The Bat", [1]), ("The Owl", [1]), ("Bo Carr", [2]), ("Ada Berg", [0])):
        logits = torch.zeros(4, len(tokenizer))
        logits[:, tokenizer.id_of(f"[{name}]")] = 1.0
        logits[:, tokenizer.id_of("who")] = 2.0  # the highest logit, but no entity
        assert (~dataset.is_wrong(logits, rows)).nonzero().flatten().tolist() == right_rows
    assert dataset.num_unknown == 1
    assert dataset.num_unreachable == 1


def test_the_loss_uses_the_sum_over_all_right_answers() -> None:
    candidates = torch.tensor([3, 5, 8, 9])
    logits = torch.tensor([[[1.0, 2.0, 0.5, -1.0]], [[0.0, 0.0, 0.0, 0.0]]])
    answers = torch.tensor([[[9, 5, IGNORE]], [[IGNORE, IGNORE, IGNORE]]])
    total, targets = marginal_nll(logits, answers, candidates)
    probabilities = logits[0, 0].softmax(0)
    torch.testing.assert_close(total, -(probabilities[1] + probabilities[3]).log())
    assert targets == 1
    # One confident right answer is enough: the others are not wrong answers.
    confident = torch.tensor([[[0.0, 50.0, 0.0, 0.0]]])
    assert marginal_nll(confident, answers[:1], candidates)[0] < 1e-6


def test_other_entities_are_spread_and_change_with_the_batch() -> None:
    ids = torch.arange(100, 200)
    samples = [sample_evenly(ids, 10, torch.tensor(start)) for start in range(10)]
    assert [len(sample) for sample in samples] == [10] * 10
    assert torch.equal(torch.cat(samples).sort().values, ids)
    assert not len(sample_evenly(ids, 0, torch.tensor(3)))
    assert torch.equal(sample_evenly(ids, 1000, torch.tensor(3)), ids)
    with pytest.raises(ValueError, match="negatives ≥ 0, not -1"):
        AnswersLoss(negatives=-1)


def test_neither_the_batch_nor_padding_changes_an_answer() -> None:
    dataset = make_dataset()
    network = build_model(MODEL, {"vocab": len(build_tokenizer_of(FACTS)), "max_length": 9}).eval()
    together = network(dataset.batch(torch.arange(4)).inputs)
    for row in range(4):
        alone = network(dataset.batch(torch.tensor([row])).inputs)
        torch.testing.assert_close(alone.logits[0], together.logits[row])
        slots = alone.reading.weights.shape[-1]
        torch.testing.assert_close(alone.reading.weights[0], together.reading.weights[row, ..., :slots])
    subset = torch.tensor([4, 7])
    subset_logits = network(dataset.batch(torch.arange(4)).inputs._replace(candidates=subset)).logits
    torch.testing.assert_close(subset_logits, together.logits[..., subset])
