"""Greedy search, beam search and sampling against brute force over a small language."""

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from mnemic.encode import CausalEncoder
from mnemic.respond.generate import beam_search, filter_probabilities, greedy_search, sample_texts

VOCAB, END, MAX_TOKENS = 4, 0, 4


def random_language(seed: int) -> Tensor:
    """Make logits by batch row, position and previous word: b n v v."""
    return 2 * torch.randn(3, MAX_TOKENS, VOCAB, VOCAB, generator=torch.Generator().manual_seed(seed))


def make_step(table: Tensor) -> Any:
    """The state contains each row's table, so beams must reorder it."""

    def step(words: Tensor, state: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        rows = torch.arange(len(words))
        logits = state["table"][rows, state["place"], words]
        return logits, {"table": state["table"], "place": state["place"] + 1}

    return step, {"table": table, "place": torch.zeros(len(table), dtype=torch.long)}


def score_all_texts(table: Tensor, row: int, start: int) -> dict[tuple[int, ...], float]:
    """Return all texts that end or have maximum length, with their log-probability."""
    scores = {}
    for words in product(range(VOCAB), repeat=MAX_TOKENS):
        if END in words[:-1] and any(words[words.index(END) :]):
            continue  # goes on after its end
        text = words[: words.index(END) + 1] if END in words else words
        score, last = 0.0, start
        for position, word in enumerate(text):
            score += table[row, position, last].log_softmax(-1)[word].item()
            last = word
        scores[text] = score
    return scores


@pytest.mark.parametrize("penalty", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_finds_the_best_of_all_texts(seed: int, penalty: float) -> None:
    table, start = random_language(seed), torch.tensor([1, 2, 3])
    step, state = make_step(table)
    generated = beam_search(
        step, state, start, end_id=END, max_tokens=MAX_TOKENS, num_beams=300, length_penalty=penalty
    )
    for row in range(3):
        texts = score_all_texts(table, row, int(start[row]))
        ranked = sorted(texts, key=lambda text: -texts[text] / ((5 + len(text)) / 6) ** penalty)
        for rank, text in enumerate(ranked[:5]):
            length = int(generated.lengths[row, rank])
            assert tuple(generated.tokens[row, rank, :length].tolist()) == text
            assert generated.log_probabilities[row, rank].item() == pytest.approx(texts[text], abs=1e-5)
            assert generated.tokens[row, rank, length:].eq(END).all()


@pytest.mark.parametrize("seed", range(4))
def test_greedy_takes_the_likeliest_word_each_time(seed: int) -> None:
    table, start = random_language(seed), torch.tensor([1, 2, 3])
    step, state = make_step(table)
    generated = greedy_search(step, state, start, end_id=END, max_tokens=MAX_TOKENS)
    for row in range(3):
        last, text = int(start[row]), []
        while len(text) < MAX_TOKENS and (not text or last != END):
            last = int(table[row, len(text), last].argmax())
            text.append(last)
        assert generated.tokens[row, 0, : generated.lengths[row, 0]].tolist() == text


def test_a_wide_beam_is_never_worse_than_greedy() -> None:
    """And it is better than greedy somewhere."""
    num_better = 0
    for seed in range(20):
        step, state = make_step(random_language(seed))
        start = torch.tensor([1, 2, 3])
        greedy = greedy_search(step, state, start, end_id=END, max_tokens=MAX_TOKENS).log_probabilities[:, 0]
        beam = beam_search(step, state, start, end_id=END, max_tokens=MAX_TOKENS, num_beams=64).log_probabilities[:, 0]
        assert (beam >= greedy - 1e-5).all()
        num_better += int((beam > greedy + 1e-5).sum())
    assert num_better > 0


def test_a_decoders_cache_is_a_state() -> None:
    """Generated texts have the score of a forward pass over the complete text."""
    torch.manual_seed(0)
    encoder, head = CausalEncoder(8, 6).eval(), torch.randn(8, 6)

    def step(words: Tensor, cache: Any) -> tuple[Tensor, Any]:
        encoded = encoder.encode_with_state(words.unsqueeze(1), torch.ones_like(words).bool().unsqueeze(1), cache)
        return encoded.states[:, 0] @ head, encoded.cache

    start = torch.tensor([2, 3])
    empty = encoder.stack.empty_cache(torch.zeros(2, 1, 8))
    generated = beam_search(step, empty, start, end_id=0, max_tokens=5, num_beams=3)
    for row, beam in product(range(2), range(3)):
        length = int(generated.lengths[row, beam])
        words = generated.tokens[row, beam, :length]
        text = torch.cat([start[row : row + 1], words])[None]
        log_probabilities = (encoder(text, torch.ones_like(text).bool())[0] @ head).log_softmax(-1)
        score = log_probabilities[:-1].gather(1, words.unsqueeze(1)).sum().item()
        assert generated.log_probabilities[row, beam].item() == pytest.approx(score, abs=1e-4)


def test_samples_follow_the_probabilities() -> None:
    logits = torch.tensor([0.0, 1.0, 2.0, -1.0])
    start = torch.zeros(4000, dtype=torch.long)

    def step(words: Tensor, state: None) -> tuple[Tensor, None]:
        return logits.expand(len(words), -1), None

    def sample_frequencies(**options: Any) -> Tensor:
        generator = torch.Generator().manual_seed(0)
        generated = sample_texts(step, None, start, end_id=0, max_tokens=1, generator=generator, **options)
        expected = logits.log_softmax(-1)[generated.tokens[:, 0, 0]]
        torch.testing.assert_close(generated.log_probabilities[:, 0], expected)
        return generated.tokens.flatten().bincount(minlength=4) / 4000

    torch.testing.assert_close(sample_frequencies(), logits.softmax(-1), atol=0.03, rtol=0)
    torch.testing.assert_close(sample_frequencies(temperature=0.5), (2 * logits).softmax(-1), atol=0.03, rtol=0)
    assert sample_frequencies(top_k=1).tolist() == [0, 0, 1, 0]
    assert sample_frequencies(temperature=1e-3).tolist() == [0, 0, 1, 0]
    assert sample_frequencies(top_p=0.6).tolist() == [0, 0, 1, 0]
    assert sample_frequencies(top_p=0.7)[[0, 3]].tolist() == [0, 0]


def test_filter_probabilities_keeps_top_k_and_top_p() -> None:
    probabilities = torch.tensor([[0.1, 0.5, 0.15, 0.25]])
    torch.testing.assert_close(filter_probabilities(probabilities, 0, 0.6), torch.tensor([[0, 0.5, 0, 0.25]]))
    torch.testing.assert_close(filter_probabilities(probabilities, 3, 1.0), torch.tensor([[0, 0.5, 0.15, 0.25]]))
    torch.testing.assert_close(filter_probabilities(probabilities, 0, 1.0), probabilities)


def test_bad_sizes_are_refused() -> None:
    step, state = make_step(random_language(0))
    start = torch.tensor([1, 2, 3])
    with pytest.raises(ValueError, match="max_tokens and num_beams ≥ 1"):
        beam_search(step, state, start, end_id=0, max_tokens=0)
    with pytest.raises(ValueError, match="temperature > 0"):
        sample_texts(step, state, start, end_id=0, max_tokens=3, generator=torch.Generator(), temperature=0.0)
