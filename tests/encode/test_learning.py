"""Tiny encoders learn: texts by heart, looking up, remembering, turning round."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from mnemic.encode import CausalEncoder, DecoderStack, Embeddings, RecurrentEncoder, TransformerEncoder


def all_of(tokens: Tensor) -> Tensor:
    return torch.ones(tokens.shape[:2], dtype=torch.bool)


def train(parts: list[nn.Module], loss_of: Callable[[], Tensor], steps: int, rate: float) -> None:
    optimiser = torch.optim.Adam([w for part in parts for w in part.parameters()], lr=rate)
    for _ in range(steps):
        optimiser.zero_grad()
        loss_of().backward()
        optimiser.step()


def test_a_tiny_language_model_learns_sixteen_examples() -> None:
    """Two causal layers learn sixteen texts by heart and say them from their first token."""
    torch.manual_seed(0)
    texts = torch.randint(4, 20, (16, 8), generator=torch.Generator().manual_seed(0))
    texts[:, 0] = torch.arange(16) + 4  # so that the beginning tells which text it is
    encoder = CausalEncoder(32, 20, stack={"kind": "transformer", "norm": "pre"})
    head = nn.Linear(32, 20)

    def loss() -> Tensor:
        scores = head(encoder(texts[:, :-1], all_of(texts[:, :-1])))
        return nn.functional.cross_entropy(scores.flatten(0, 1), texts[:, 1:].flatten())

    train([encoder, head], loss, steps=100, rate=0.01)
    said, cache = texts[:, :1], None
    for _ in range(7):
        decoded = encoder.encode_with_state(said[:, -1:], all_of(said[:, -1:]), cache)
        said, cache = torch.cat([said, head(decoded.states).argmax(-1)], 1), decoded.cache
    assert torch.equal(said, texts)


def test_a_tiny_encoder_learns_to_look_something_up() -> None:
    """The first token names a place; its word is asked for. Held-out texts are answered too."""
    torch.manual_seed(0)
    dice = torch.Generator().manual_seed(0)
    words = torch.randint(5, 9, (512, 5), generator=dice)
    words[:, 0] = torch.randint(1, 5, (512,), generator=dice)
    answers = words.gather(1, words[:, :1]).squeeze(1)
    encoder = TransformerEncoder(32, 9, stack={"kind": "encoder", "norm": "pre"})
    head = nn.Linear(32, 9)
    dealt = iter(torch.randint(256, (250, 32), generator=dice))

    def loss() -> Tensor:
        own = next(dealt)
        scores = head(encoder(words[own], all_of(words[own]))[:, 0])
        return nn.functional.cross_entropy(scores, answers[own])

    train([encoder, head], loss, steps=250, rate=0.003)
    unseen = head(encoder(words[256:], all_of(words[256:]))[:, 0]).argmax(-1)
    assert (unseen == answers[256:]).float().mean() > 0.95


def test_a_tiny_translator_learns_to_turn_texts_round() -> None:
    """Encoder and decoder together: sixteen texts, each said backwards."""
    torch.manual_seed(0)
    source = torch.randint(1, 9, (16, 5), generator=torch.Generator().manual_seed(0))
    encoder = TransformerEncoder(32, 9, stack={"kind": "encoder", "norm": "pre"})
    words, decoder = Embeddings(32, 9), DecoderStack(32, norm="pre")
    head = nn.Linear(32, 9)
    target = source.flip(1)
    begun = torch.cat([torch.zeros(16, 1, dtype=torch.long), target[:, :-1]], 1)

    def scores(given: Tensor) -> Tensor:
        x = words(given, all_of(given))
        states = encoder(source, all_of(source))
        return head(decoder(x, all_of(x), decoder.empty_cache(x, states, all_of(source))).states)

    def loss() -> Tensor:
        return nn.functional.cross_entropy(scores(begun).flatten(0, 1), target.flatten())

    train([encoder, words, decoder, head], loss, steps=80, rate=0.005)
    said = begun[:, :1]
    for _ in range(5):
        said = torch.cat([said, scores(said)[:, -1:].argmax(-1)], 1)
    assert torch.equal(said[:, 1:], target)


def test_a_tiny_lstm_learns_to_remember() -> None:
    """The first of six tokens has to be named at the end: sixteen examples."""
    dice = torch.Generator().manual_seed(0)
    tokens = torch.randint(8, (16, 6), generator=dice)
    torch.manual_seed(0)
    encoder = RecurrentEncoder(32, 8, recurrent={"kind": "lstm"})
    head = nn.Linear(32, 8)

    def scores() -> Tensor:
        return head(encoder.encode_with_state(tokens, all_of(tokens)).last)

    def loss() -> Tensor:
        return nn.functional.cross_entropy(scores(), tokens[:, 0])

    train([encoder, head], loss, steps=80, rate=0.02)
    assert (scores().argmax(-1) == tokens[:, 0]).all()
