"""The key-value memory, its key forms, key hashing, and sets of right answers.

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
ASKED = [
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


def words_of(facts: list[Fact]) -> WordTokenizer:
    items = {f"[{end}]" for fact in facts for end in (fact.subject, fact.object)}
    items |= {sign + fact.relation for fact in facts for sign in ("", "!")}
    return WordTokenizer.from_texts([question.text for question in ASKED], extra=items)


def questions(most: int = 200) -> Any:
    words = words_of(FACTS)
    base = encode_base(make_fact_pairs(FACTS), words)
    return encode_questions(ASKED, base, words, KeyHash(base.keys, max_slots=most))


# The equations -------------------------------------------------------------------------------


def test_reading_is_the_papers_equations_slot_by_slot() -> None:
    torch.manual_seed(0)
    memory = KeyValueMemory(5, hops=3).requires_grad_(False)
    memory.update.maps.normal_()
    states, query = torch.randn(2, 7, 2, 5), torch.randn(2, 3, 2, 5)
    mask = torch.tensor([[True] * 7, [True, True, False, True, False, False, False]])
    reading = memory.read(memory.write(memory.empty(2, states), states, mask).state, query)
    for row in range(2):
        real = mask[row].nonzero().flatten().tolist()
        for number in range(3):
            q = query[row, number, 0]
            for hop in range(3):
                scores = {s: float(q @ states[row, s, 0]) for s in real}
                best = max(scores.values())
                shares = {s: torch.tensor(x - best).exp() for s, x in scores.items()}
                p = {s: share / sum(shares.values()) for s, share in shares.items()}
                o = sum((p[s] * states[row, s, 1] for s in real), torch.zeros(5))
                q = memory.update.maps[hop] @ (q + o)
                for s in real:
                    torch.testing.assert_close(reading.weights[row, hop, 0, number, s], p[s])
                    assert float(reading.scores[row, hop, 0, number, s]) == pytest.approx(scores[s], rel=1e-3, abs=1e-3)
            torch.testing.assert_close(reading.found[row, number], q, rtol=1e-4, atol=1e-4)
    assert reading.weights[1, ..., [2, 4, 5, 6]].eq(0).all()


def test_a_query_equal_to_key_three_reads_value_three() -> None:
    """And not key three: what is found is another thing than what it is found by."""
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
    """In the network the first table is of the key's text, the second of the value's."""
    asked = questions()
    network = build_model(MODEL, {"vocab": len(words_of(FACTS)), "max_length": 9})
    inputs = asked.batch(torch.arange(len(asked))).inputs
    story, seen, _ = network.encode_inputs(inputs)
    key, value = network.encode.tables
    for row, slots in enumerate(asked.slots.tolist()):
        for place, slot in enumerate(slot for slot in slots if slot >= 0):
            words = asked.texts[asked.key_rows[slot]]
            torch.testing.assert_close(story[row, place, 0], key[words[words > 0]].sum(0))
            torch.testing.assert_close(story[row, place, 1], value[asked.texts[asked.value_rows[slot], 0]])
    assert torch.equal(seen.sum(1), (asked.slots >= 0).sum(1))


# Keys ----------------------------------------------------------------------------------------


def test_a_fact_is_found_from_both_ends() -> None:
    assert list(make_fact_pairs(FACTS[:1])) == [
        KeyValuePair("[The Bat] directed_by", "[Ada Berg]"),
        KeyValuePair("[Ada Berg] !directed_by", "[The Bat]"),
    ]


# Selecting -----------------------------------------------------------------------------------


def test_select_returns_exactly_the_slots_that_share_the_entity() -> None:
    words = words_of(FACTS)
    pairs = list(make_fact_pairs(FACTS))
    base = encode_base(pairs, words)
    select = KeyHash(base.keys)
    for name in ("The Bat", "Bat", "Ada Berg", "Bo Carr", "1959"):
        question = torch.tensor([words.encode(f"who directed [{name}]").ids])
        found = select(question)[0].tolist()
        assert found == [n for n, pair in enumerate(pairs) if pair.key.startswith(f"[{name}]")]
    assert select(torch.tensor([words.encode("who directed it").ids])).shape == (1, 0)


def test_the_rarest_word_comes_first_and_common_words_select_nothing() -> None:
    keys = torch.tensor([[5, 7], [5, 8], [5, 7], [6, 9], [6, 0]])
    assert KeyHash(keys)(torch.tensor([[5, 8, 9]])).tolist() == [[1, 3, 0, 2]]
    assert KeyHash(keys, max_slots=2)(torch.tensor([[5, 8, 0]])).tolist() == [[1, 0]]
    assert KeyHash(keys, max_frequency=2)(torch.tensor([[5, 6, 0], [1, 0, 0]])).tolist() == [[3, 4], [-1, -1]]
    with pytest.raises(ValueError, match="max_slots and max_frequency ≥ 1"):
        KeyHash(keys, max_slots=0)


def test_slots_picked_from_one_shared_memory_are_those_written_alone() -> None:
    """``pick`` before ``read``: a base that is written once, and the slots of each question."""
    torch.manual_seed(0)
    memory = KeyValueMemory(6).requires_grad_(False)
    states, query = torch.randn(1, 9, 2, 6), torch.randn(2, 1, 2, 6)
    whole = memory.write(memory.empty(1, states), states, torch.ones(1, 9, dtype=torch.bool)).state
    chosen = torch.tensor([[2, 7, 4], [8, -1, -1]])
    own = states[0, chosen.clamp(min=0)]
    alone = memory.write(memory.empty(2, own), own, chosen >= 0).state
    picked, written = memory.read(select_slots(whole, chosen), query), memory.read(alone, query)
    torch.testing.assert_close(picked.found, written.found)
    torch.testing.assert_close(picked.weights, written.weights)
    assert select_slots(whole, chosen).sources.tolist() == chosen.tolist()


# Several right answers -----------------------------------------------------------------------


def test_every_right_answer_counts_as_right() -> None:
    asked, words = questions(), words_of(FACTS)
    rows = torch.arange(4)
    for name, right in (("The Bat", [1]), ("The Owl", [1]), ("Bo Carr", [2]), ("Ada Berg", [0])):
        scores = torch.zeros(4, len(words))
        scores[:, words.id_of(f"[{name}]")] = 1.0
        scores[:, words.id_of("who")] = 2.0  # the best word, but no entity
        assert (~asked.is_wrong(scores, rows)).nonzero().flatten().tolist() == right
    assert asked.num_unknown == 1
    assert asked.num_unreachable == 1


def test_the_loss_is_of_the_set() -> None:
    candidates = torch.tensor([3, 5, 8, 9])
    scores = torch.tensor([[[1.0, 2.0, 0.5, -1.0]], [[0.0, 0.0, 0.0, 0.0]]])
    answers = torch.tensor([[[9, 5, IGNORE]], [[IGNORE, IGNORE, IGNORE]]])
    total, targets = marginal_nll(scores, answers, candidates)
    p = scores[0, 0].softmax(0)
    torch.testing.assert_close(total, -(p[1] + p[3]).log())
    assert targets == 1
    # One of them being sure is enough: the others are not wrong answers.
    sure = torch.tensor([[[0.0, 50.0, 0.0, 0.0]]])
    assert marginal_nll(sure, answers[:1], candidates)[0] < 1e-6


def test_other_entities_are_spread_and_change_with_the_batch() -> None:
    ids = torch.arange(100, 200)
    parts = [sample_evenly(ids, 10, torch.tensor(start)) for start in range(10)]
    assert [len(part) for part in parts] == [10] * 10
    assert torch.equal(torch.cat(parts).sort().values, ids)
    assert not len(sample_evenly(ids, 0, torch.tensor(3)))
    assert torch.equal(sample_evenly(ids, 1000, torch.tensor(3)), ids)
    with pytest.raises(ValueError, match="negatives ≥ 0, not -1"):
        AnswersLoss(negatives=-1)


def test_neither_the_batch_nor_padding_changes_an_answer() -> None:
    asked = questions()
    network = build_model(MODEL, {"vocab": len(words_of(FACTS)), "max_length": 9}).eval()
    together = network(asked.batch(torch.arange(4)).inputs)
    for row in range(4):
        alone = network(asked.batch(torch.tensor([row])).inputs)
        torch.testing.assert_close(alone.logits[0], together.logits[row])
        slots = alone.reading.weights.shape[-1]
        torch.testing.assert_close(alone.reading.weights[0], together.reading.weights[row, ..., :slots])
    subset = torch.tensor([4, 7])
    few = network(asked.batch(torch.arange(4)).inputs._replace(candidates=subset)).logits
    torch.testing.assert_close(few, together.logits[..., subset])
