"""Greedy, beam search and sampling against brute force over a small language."""

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from mnemic.encode import CausalEncoder
from mnemic.respond.generate import beam_search, filter_probabilities, greedy_search, sample_texts

VOCAB, END, MOST = 4, 0, 4


def language(seed: int) -> Tensor:
    """Scores of the next word by place, word before and batch row: b n v v."""
    return 2 * torch.randn(3, MOST, VOCAB, VOCAB, generator=torch.Generator().manual_seed(seed))


def step_of(table: Tensor) -> Any:
    """The state is each row's own part of the table, so that beams must carry it along."""

    def step(words: Tensor, state: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        rows = torch.arange(len(words))
        scores = state["table"][rows, state["place"], words]
        return scores, {"table": state["table"], "place": state["place"] + 1}

    return step, {"table": table, "place": torch.zeros(len(table), dtype=torch.long)}


def all_texts(table: Tensor, row: int, start: int) -> dict[tuple[int, ...], float]:
    """Every text that ends or is as long as may be, with its log-probability."""
    found = {}
    for words in product(range(VOCAB), repeat=MOST):
        if END in words[:-1] and any(words[words.index(END) :]):
            continue  # goes on after its end
        said = words[: words.index(END) + 1] if END in words else words
        score, last = 0.0, start
        for place, word in enumerate(said):
            score += table[row, place, last].log_softmax(-1)[word].item()
            last = word
        found[said] = score
    return found


@pytest.mark.parametrize("penalty", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_finds_the_best_of_all_texts(seed: int, penalty: float) -> None:
    table, start = language(seed), torch.tensor([1, 2, 3])
    step, state = step_of(table)
    said = beam_search(step, state, start, end_id=END, max_tokens=MOST, num_beams=300, length_penalty=penalty)
    for row in range(3):
        texts = all_texts(table, row, int(start[row]))
        ranked = sorted(texts, key=lambda text: -texts[text] / ((5 + len(text)) / 6) ** penalty)
        for place, text in enumerate(ranked[:5]):
            length = int(said.lengths[row, place])
            assert tuple(said.tokens[row, place, :length].tolist()) == text
            assert said.log_probabilities[row, place].item() == pytest.approx(texts[text], abs=1e-5)
            assert said.tokens[row, place, length:].eq(END).all()


@pytest.mark.parametrize("seed", range(4))
def test_greedy_takes_the_likeliest_word_each_time(seed: int) -> None:
    table, start = language(seed), torch.tensor([1, 2, 3])
    step, state = step_of(table)
    said = greedy_search(step, state, start, end_id=END, max_tokens=MOST)
    for row in range(3):
        last, text = int(start[row]), []
        while len(text) < MOST and (not text or last != END):
            last = int(table[row, len(text), last].argmax())
            text.append(last)
        assert said.tokens[row, 0, : said.lengths[row, 0]].tolist() == text


def test_a_beam_never_ends_below_greedy_if_all_its_words_were_kept() -> None:
    """And it is better than greedy somewhere, or searching would be for nothing."""
    better = 0
    for seed in range(20):
        step, state = step_of(language(seed))
        start = torch.tensor([1, 2, 3])
        narrow = greedy_search(step, state, start, end_id=END, max_tokens=MOST).log_probabilities[:, 0]
        wide = beam_search(step, state, start, end_id=END, max_tokens=MOST, num_beams=64).log_probabilities[:, 0]
        assert (wide >= narrow - 1e-5).all()
        better += int((wide > narrow + 1e-5).sum())
    assert better > 0


def test_a_decoders_cache_is_a_state() -> None:
    """Texts from a causal transformer have the score that reading them at once gives."""
    torch.manual_seed(0)
    encoder, head = CausalEncoder(8, 6).eval(), torch.randn(8, 6)

    def step(words: Tensor, cache: Any) -> tuple[Tensor, Any]:
        told = encoder.encode_with_state(words.unsqueeze(1), torch.ones_like(words).bool().unsqueeze(1), cache)
        return told.states[:, 0] @ head, told.cache

    start = torch.tensor([2, 3])
    empty = encoder.stack.empty_cache(torch.zeros(2, 1, 8))
    said = beam_search(step, empty, start, end_id=0, max_tokens=5, num_beams=3)
    for row, place in product(range(2), range(3)):
        length = int(said.lengths[row, place])
        words = said.tokens[row, place, :length]
        whole = torch.cat([start[row : row + 1], words])[None]
        scores = (encoder(whole, torch.ones_like(whole).bool())[0] @ head).log_softmax(-1)
        score = scores[:-1].gather(1, words.unsqueeze(1)).sum().item()
        assert said.log_probabilities[row, place].item() == pytest.approx(score, abs=1e-4)


def test_dice_fall_as_the_network_says() -> None:
    scores = torch.tensor([0.0, 1.0, 2.0, -1.0])
    start = torch.zeros(4000, dtype=torch.long)

    def step(words: Tensor, state: None) -> tuple[Tensor, None]:
        return scores.expand(len(words), -1), None

    def shares(**options: Any) -> Tensor:
        dice = torch.Generator().manual_seed(0)
        said = sample_texts(step, None, start, end_id=0, max_tokens=1, generator=dice, **options)
        expected = scores.log_softmax(-1)[said.tokens[:, 0, 0]]
        torch.testing.assert_close(said.log_probabilities[:, 0], expected)
        return said.tokens.flatten().bincount(minlength=4) / 4000

    torch.testing.assert_close(shares(), scores.softmax(-1), atol=0.03, rtol=0)
    torch.testing.assert_close(shares(temperature=0.5), (2 * scores).softmax(-1), atol=0.03, rtol=0)
    assert shares(top_k=1).tolist() == [0, 0, 1, 0]
    assert shares(temperature=1e-3).tolist() == [0, 0, 1, 0]
    assert shares(top_p=0.6).tolist() == [0, 0, 1, 0]
    assert shares(top_p=0.7)[[0, 3]].tolist() == [0, 0]


def test_likely_keeps_what_makes_up_the_share() -> None:
    chances = torch.tensor([[0.1, 0.5, 0.15, 0.25]])
    torch.testing.assert_close(filter_probabilities(chances, 0, 0.6), torch.tensor([[0, 0.5, 0, 0.25]]))
    torch.testing.assert_close(filter_probabilities(chances, 3, 1.0), torch.tensor([[0, 0.5, 0.15, 0.25]]))
    torch.testing.assert_close(filter_probabilities(chances, 0, 1.0), chances)


def test_bad_sizes_are_refused() -> None:
    step, state = step_of(language(0))
    start = torch.tensor([1, 2, 3])
    with pytest.raises(ValueError, match="max_tokens and num_beams ≥ 1"):
        beam_search(step, state, start, end_id=0, max_tokens=0)
    with pytest.raises(ValueError, match="temperature > 0"):
        sample_texts(step, state, start, end_id=0, max_tokens=3, generator=torch.Generator(), temperature=0.0)
