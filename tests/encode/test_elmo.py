"""ELMo: no direction sees the other, layers are mixed as in the paper, frozen features teach.

Shapes: b batch, n tokens, d width, c = d / 2.
"""

from pathlib import Path

import pytest
import text_files
import torch
from app_runs import run, sets
from torch import Tensor, nn

from mnemic.checkpoint.folder import load_checkpoint, weights_of
from mnemic.data.language_modeling.batches import TokenBatch
from mnemic.encode.elmo import ELMoEncoder, LayerMix
from mnemic.models import IGNORE, TextModel, WindowBatch, build_model
from mnemic.objectives.both_directions import BothDirectionsLoss, find_previous
from mnemic.recipe import ConfigError, build
from mnemic.respond.both_directions import BothDirectionsHead
from mnemic.train.optim.optimizers import OPTIMIZERS
from mnemic.train.optim.parameter_groups import number_layers

D, VOCAB, N = 12, 20, 6


def make_encoder(mix: bool = False, depth: int = 2) -> ELMoEncoder:
    torch.manual_seed(0)
    return ELMoEncoder(D, VOCAB, mix=mix, depth=depth).double().eval()


def random_tokens(*shape: int) -> Tensor:
    return torch.randint(VOCAB, shape, generator=torch.Generator().manual_seed(1))


def test_no_direction_sees_the_other() -> None:
    """Through both layers: the first half knows only what is before, the second what is after."""
    encoder, tokens = make_encoder(), random_tokens(1, N)
    before = encoder(tokens, tokens >= 0)[0].unflatten(-1, (2, -1))  # n 2 c
    for column in range(N):
        changed = tokens.clone()
        changed[0, column] = (changed[0, column] + 1) % VOCAB
        after = encoder(changed, tokens >= 0)[0].unflatten(-1, (2, -1))
        depends = (after != before).any(-1)
        assert depends[:, 0].tolist() == [row >= column for row in range(N)]
        assert depends[:, 1].tolist() == [row <= column for row in range(N)]


def test_a_token_changes_no_logit_of_its_own() -> None:
    """Neither the next token's logits nor the previous one's know the token that they are of."""
    encoder, tokens = make_encoder(), random_tokens(1, N)
    network = TextModel(encoder, BothDirectionsHead(D, VOCAB, encoder.embeddings.tokens).double())

    def score(tokens: Tensor) -> Tensor:
        return network(WindowBatch(tokens, tokens >= 0, tokens, tokens >= 0)).logits[0]  # n 2 v

    for column in range(N):
        changed = tokens.clone()
        changed[0, column] = (changed[0, column] + 1) % VOCAB
        before, after = score(tokens), score(changed)
        if column:
            assert torch.equal(before[column - 1, 0], after[column - 1, 0])
        if column + 1 < N:
            assert torch.equal(before[column + 1, 1], after[column + 1, 1])


def test_layers_are_those_of_two_plain_networks() -> None:
    """With torch's LSTMs, run by hand: the second layer adds its input; h₀ is [x; x]."""
    encoder, tokens = make_encoder(), random_tokens(2, N)
    layers = list(encoder.iterate_states(tokens, tokens >= 0))
    x = encoder.embeddings.tokens[tokens]
    torch.testing.assert_close(layers[0], torch.cat([x, x], -1))
    for number, direction in enumerate(encoder.directions):
        state = x if number == 0 else x.flip(1)
        for layer_number, layer in enumerate(direction):
            output = layer.layers["networks"][0](state)[0]
            state = output + state if layer_number else output
            in_order = state if number == 0 else state.flip(1)
            torch.testing.assert_close(layers[layer_number + 1].unflatten(-1, (2, -1))[:, :, number], in_order)


def test_the_mix_is_that_of_the_paper() -> None:
    mix = LayerMix(3)
    with torch.no_grad():
        mix.scores.copy_(torch.tensor([0.0, 1.0, -2.0]))
        mix.scale.fill_(0.5)
    layers = [torch.tensor([[[float(number)]]]) for number in (1, 2, 4)]
    weights = [1.0, 2.718281828, 0.1353352832]
    expected = 0.5 * sum(weight * value for weight, value in zip(weights, (1, 2, 4))) / sum(weights)
    assert mix(layers).item() == pytest.approx(expected, rel=1e-6)
    encoder, tokens = make_encoder(mix=True), random_tokens(2, N)
    mean = sum(encoder.iterate_states(tokens, tokens >= 0)) / 3
    torch.testing.assert_close(encoder(tokens, tokens >= 0), mean)


def test_decay_pulls_the_mix_to_equal_shares() -> None:
    """Section 3.3: a penalty on s, and none on γ."""
    mix = LayerMix(3)
    with torch.no_grad():
        mix.scores.copy_(torch.tensor([0.0, 1.0, -2.0]))
        mix.scale.fill_(0.5)
    optimizer = build(OPTIMIZERS, {"kind": "adamw", "decay": 0.5}, parameters=mix.parameters(), rate=0.1, runs=False)
    for parameter in mix.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    torch.testing.assert_close(mix.scores.detach(), 0.95 * torch.tensor([[0.0, 1.0, -2.0]]))
    assert mix.scale.item() == 0.5


def test_layers_of_both_directions_have_the_same_number() -> None:
    """Rates by layer and gradual unfreezing treat both language models alike."""
    encode = ELMoEncoder(D, VOCAB, depth=2)
    layers = number_layers(TextModel(encode, BothDirectionsHead(D, VOCAB)))
    for number in range(2):
        for direction in encode.directions:
            assert {layers[parameter] for parameter in direction[number].parameters()} == {number + 1}


def test_both_directions_are_scored_by_one_table() -> None:
    torch.manual_seed(0)
    words = nn.Parameter(torch.randn(VOCAB, D // 2))
    head = BothDirectionsHead(D, VOCAB, words)
    states = torch.randn(2, N, D)
    logits = head(None, None, states, states[..., 0] != 0)
    torch.testing.assert_close(logits[:, :, 0], states[..., : D // 2] @ words.T)
    torch.testing.assert_close(logits[:, :, 1], states[..., D // 2 :] @ words.T)


def test_the_loss_is_the_sum_of_both() -> None:
    encoder, tokens = make_encoder(), random_tokens(2, N)
    network = TextModel(encoder, BothDirectionsHead(D, VOCAB, encoder.embeddings.tokens).double())
    mask = torch.arange(N) < torch.tensor([[N], [N - 2]])
    inputs = WindowBatch(tokens, mask, tokens, mask)
    targets = tokens.roll(-1, 1).masked_fill(~mask, IGNORE)
    assert find_previous(inputs)[1].tolist() == [IGNORE, *tokens[1, : N - 3].tolist(), IGNORE, IGNORE]
    loss = BothDirectionsLoss()(network, TokenBatch(inputs, targets))
    log_probabilities = network(inputs).logits.log_softmax(-1)
    expected, count = torch.zeros((), dtype=torch.float64), 0
    for row, length in enumerate((N, N - 2)):
        for position in range(length):
            expected = expected - log_probabilities[row, position, 0, targets[row, position]]
            count += 1
            if position:
                expected = expected - log_probabilities[row, position, 1, tokens[row, position - 1]]
                count += 1
    torch.testing.assert_close(loss.total, expected.float())
    assert loss.num_targets == count


def test_wrong_sizes_are_refused() -> None:
    model = {"width": 8, "encode": {"kind": "elmo", "mix": True}, "respond": {"kind": "both-directions"}}
    with pytest.raises(ConfigError, match=r'model\.encode\.kind is "elmo", without mix'):
        build_model(model, {"vocab": VOCAB, "max_length": N})
    with pytest.raises(ConfigError, match=r"model\.encode\.depth is at least 1, not 0"):
        ELMoEncoder(8, VOCAB, depth=0)
    with pytest.raises(ConfigError, match="an even number, not 7"):
        ELMoEncoder(7, VOCAB)
    with pytest.raises(ConfigError, match="directions is forward"):
        ELMoEncoder(8, VOCAB, recurrent={"kind": "lstm", "directions": "sum"})


TINY = ("data.vocab=16", "data.length=12", "data.context=6", "data.validation=0.1", "train.batch=16")


def test_both_directions_learn_and_their_layers_are_features(tmp_path: Path) -> None:
    """Far below the unigram's perplexity; then a tagger learns on frozen layers, and their mix."""
    files = text_files.language_modeling(tmp_path / "words", 60)
    tiny = sets(*TINY, "model.width=64", "train.epochs=6", "train.rate=0.01", "train.validate=3")
    trained = run("train", "elmo-words", "--data", files, "--out", tmp_path / "elmo", "--device", "cpu", *tiny)
    assert trained.code == 0, trained.err
    figures = load_checkpoint(tmp_path / "elmo").progress.history[-1]["figures"]
    assert max(figures["forward"], figures["backward"]) < 6  # the unigram's is above 10
    assert figures["forward"] < figures["backward"] * 1.5

    tagged = text_files.tags(tmp_path / "tags", 60)
    frozen = 'train.frozen=["encode.embeddings", "encode.directions"]'
    options = sets("model.encode.mix=true", frozen, "train.epochs=2", "train.rate=0.05", "train.keep=last")
    arguments = ("train", "bert-tags", "--data", tagged, "--start", tmp_path / "elmo", "--out", tmp_path / "tagger")
    tuned = run(*arguments, "--device", "cpu", "--json", *options)
    assert tuned.code == 0, tuned.err
    before, after = (weights_of(load_checkpoint(tmp_path / name).network) for name in ("elmo", "tagger"))
    for name, weight in after.items():
        if name.startswith(("encode.embeddings", "encode.directions")):
            assert torch.equal(weight, before[name])
    assert not torch.equal(after["encode.mix.scores"], before["encode.mix.scores"])
    assert float(after["encode.mix.scale"]) != 1
