"""Tiny encoders learn: memorizing texts, looking up, remembering, reversing."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from mnemic.encode import CausalEncoder, DecoderStack, Embeddings, RecurrentEncoder, TransformerEncoder


def full_mask(tokens: Tensor) -> Tensor:
    return torch.ones(tokens.shape[:2], dtype=torch.bool)


def train(modules: list[nn.Module], compute_loss: Callable[[], Tensor], steps: int, rate: float) -> None:
    optimizer = torch.optim.Adam([weight for module in modules for weight in module.parameters()], lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        compute_loss().backward()
        optimizer.step()


def test_a_tiny_language_model_learns_sixteen_examples() -> None:
    """Two causal layers memorize sixteen texts and generate them from their first token."""
    torch.manual_seed(0)
    texts = torch.randint(4, 20, (16, 8), generator=torch.Generator().manual_seed(0))
    texts[:, 0] = torch.arange(16) + 4  # so that the first token identifies the text
    encoder = CausalEncoder(32, 20, stack={"kind": "transformer", "norm": "pre"})
    head = nn.Linear(32, 20)

    def loss() -> Tensor:
        logits = head(encoder(texts[:, :-1], full_mask(texts[:, :-1])))
        return nn.functional.cross_entropy(logits.flatten(0, 1), texts[:, 1:].flatten())

    train([encoder, head], loss, steps=100, rate=0.01)
    generated, cache = texts[:, :1], None
    for _ in range(7):
        decoded = encoder.encode_with_state(generated[:, -1:], full_mask(generated[:, -1:]), cache)
        generated, cache = torch.cat([generated, head(decoded.states).argmax(-1)], 1), decoded.cache
    assert torch.equal(generated, texts)


def test_a_tiny_encoder_learns_to_look_something_up() -> None:
    """The first token gives a position; its word is the answer. Unseen texts work too."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    words = torch.randint(5, 9, (512, 5), generator=generator)
    words[:, 0] = torch.randint(1, 5, (512,), generator=generator)
    answers = words.gather(1, words[:, :1]).squeeze(1)
    encoder = TransformerEncoder(32, 9, stack={"kind": "encoder", "norm": "pre"})
    head = nn.Linear(32, 9)
    batches = iter(torch.randint(256, (250, 32), generator=generator))

    def loss() -> Tensor:
        rows = next(batches)
        logits = head(encoder(words[rows], full_mask(words[rows]))[:, 0])
        return nn.functional.cross_entropy(logits, answers[rows])

    train([encoder, head], loss, steps=250, rate=0.003)
    predictions = head(encoder(words[256:], full_mask(words[256:]))[:, 0]).argmax(-1)
    assert (predictions == answers[256:]).float().mean() > 0.95


def test_a_tiny_translator_learns_to_turn_texts_round() -> None:
    """Encoder and decoder together: sixteen texts, each reversed."""
    torch.manual_seed(0)
    source = torch.randint(1, 9, (16, 5), generator=torch.Generator().manual_seed(0))
    encoder = TransformerEncoder(32, 9, stack={"kind": "encoder", "norm": "pre"})
    words, decoder = Embeddings(32, 9), DecoderStack(32, norm="pre")
    head = nn.Linear(32, 9)
    target = source.flip(1)
    decoder_inputs = torch.cat([torch.zeros(16, 1, dtype=torch.long), target[:, :-1]], 1)

    def compute_logits(inputs: Tensor) -> Tensor:
        x = words(inputs, full_mask(inputs))
        states = encoder(source, full_mask(source))
        return head(decoder(x, full_mask(x), decoder.empty_cache(x, states, full_mask(source))).states)

    def loss() -> Tensor:
        return nn.functional.cross_entropy(compute_logits(decoder_inputs).flatten(0, 1), target.flatten())

    train([encoder, words, decoder, head], loss, steps=80, rate=0.005)
    generated = decoder_inputs[:, :1]
    for _ in range(5):
        generated = torch.cat([generated, compute_logits(generated)[:, -1:].argmax(-1)], 1)
    assert torch.equal(generated[:, 1:], target)


def test_a_tiny_lstm_learns_to_remember() -> None:
    """The first of six tokens is predicted at the end: sixteen examples."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(8, (16, 6), generator=generator)
    torch.manual_seed(0)
    encoder = RecurrentEncoder(32, 8, recurrent={"kind": "lstm"})
    head = nn.Linear(32, 8)

    def compute_logits() -> Tensor:
        return head(encoder.encode_with_state(tokens, full_mask(tokens)).last)

    def loss() -> Tensor:
        return nn.functional.cross_entropy(compute_logits(), tokens[:, 0])

    train([encoder, head], loss, steps=80, rate=0.02)
    assert (compute_logits().argmax(-1) == tokens[:, 0]).all()
