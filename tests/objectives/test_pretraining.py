"""The pre-training objective and its heads: plain loops, gradients, weights.

Shapes: b batch, n tokens, m positions, d width, v vocabulary.
"""

import pytest
import torch
from pretraining_runs import VOCAB, make_corpus_batch
from torch import nn

from mnemic.encode import TransformerEncoder
from mnemic.models import IGNORE, TextModel
from mnemic.objectives.pretraining.masked import PretrainingLoss, mask_batch, next_sentence_losses
from mnemic.objectives.pretraining.token_masking import TokenMasking, WordMasking
from mnemic.objectives.unigram import count_targets, unigram_loss
from mnemic.recipe import ConfigError
from mnemic.respond.pretraining.masked import PretrainingHeads
from mnemic.respond.vocabulary import VocabularyHead

V, D = VOCAB, 16
ROW_FIELDS = ("tokens", "mask", "segments", "word_starts", "unmaskable", "next_sentence_labels", "mask_seeds")


def make_bert(next_sentence: bool = True) -> TextModel:
    """Make an encoder with pre-training heads."""
    encode = TransformerEncoder(D, V, embeddings={"kind": "sum", "segments": 2})
    return TextModel(encode, PretrainingHeads(D, V, encode.embeddings.tokens, next_sentence=next_sentence))


def test_the_head_is_what_the_paper_says() -> None:
    """Against a plain loop over positions and words."""
    head = VocabularyHead(D, V, epsilon=1e-12)
    nn.init.normal_(head.bias)
    nn.init.normal_(head.norm.weight)
    states = torch.randn(2, 3, D)
    logits = head(states)
    assert logits.shape == (2, 3, V)
    for row in range(2):
        for position in range(3):
            x = head.dense.weight @ states[row, position] + head.dense.bias
            x = x * 0.5 * (1 + torch.erf(x / 2**0.5))
            x = (x - x.mean()) / (x.var(correction=0) + 1e-12).sqrt()
            x = x * head.norm.weight + head.norm.bias
            for word in range(V):
                logit = (x * head.words[word]).sum() + head.bias[word]
                torch.testing.assert_close(logits[row, position, word], logit)


def test_gathering_first_changes_nothing() -> None:
    head = VocabularyHead(D, V)
    states = torch.randn(3, 5, D)
    positions = torch.tensor([0, 4, 7, 14])
    torch.testing.assert_close(head(states, positions), head(states).flatten(0, 1)[positions])
    assert head(states, positions[:0]).shape == (0, V)


def test_the_head_is_tied() -> None:
    network = make_bert()
    words = network.encode.embeddings.tokens
    assert network.respond.vocabulary.words is words
    assert sum(parameter is words for parameter in network.parameters()) == 1
    head = network.respond.vocabulary
    head(torch.randn(1, 2, D)).square().sum().backward()
    assert words.grad is not None
    assert words.grad.abs().min() > 0


def test_word_vectors_may_be_narrower() -> None:
    words = nn.Parameter(torch.randn(V, 4))
    head = VocabularyHead(D, V, words=words)
    assert head(torch.randn(2, 3, D)).shape == (2, 3, V)
    with pytest.raises(ValueError, match="got 30 word vectors for a vocabulary of 31"):
        VocabularyHead(D, V + 1, words=words)


@pytest.mark.parametrize("capacity", [0, 46])
def test_only_masked_positions_enter_the_loss(capacity: int) -> None:
    """The masked loss is the cross-entropy at the targets alone.

    With a fixed capacity, unused positions have no target.
    """
    network, batch = make_bert(), make_corpus_batch([1, 0, 1, 0])._replace(max_tokens=capacity)
    masked = mask_batch(batch, TokenMasking(rate=0.5))
    is_target = masked.targets != IGNORE
    positions = masked.inputs.answer_mask[is_target]
    assert 5 < len(positions) < 35
    assert len(masked.targets) == (46 if capacity else len(positions))
    assert (masked.inputs.answer_mask[~is_target] == batch.tokens.numel()).all()
    states = network.encode(masked.inputs.tokens, batch.mask, segments=batch.segments)
    logits = network.respond.vocabulary(states).flatten(0, 1)  # (b n) v
    expected = torch.full_like(batch.tokens, IGNORE).flatten()
    expected[positions] = batch.tokens.flatten()[positions]
    expected_loss = nn.functional.cross_entropy(logits, expected, ignore_index=IGNORE, reduction="sum")
    objective = PretrainingLoss(masking={"kind": "tokens", "rate": 0.5})
    total, targets, *_ = objective(network, batch)
    torch.testing.assert_close(total, expected_loss)
    assert targets == len(positions)
    assert not batch.unmaskable.flatten()[positions].any()


def test_only_masked_positions_get_a_gradient() -> None:
    """The gradient with respect to the last states is zero at all other positions."""
    heads = PretrainingHeads(D, V)
    states = torch.randn(3, 8, D, requires_grad=True)
    targets = torch.full((3, 8), IGNORE)
    targets[0, 2], targets[2, 5] = 9, 11
    positions, words = (targets != IGNORE).flatten().nonzero().squeeze(1), targets[targets != IGNORE]
    assert positions.tolist() == [2, 21]
    logits = heads(None, None, states, positions)
    assert torch.equal(logits.masked_logits, heads(None, None, states, targets != IGNORE).masked_logits)
    nn.functional.cross_entropy(logits.masked_logits, words, reduction="sum").backward()
    assert states.grad is not None
    has_gradient = states.grad.abs().sum(-1) > 0
    assert torch.equal(has_gradient, targets != IGNORE)


def test_next_sentence_scores_are_in_the_published_order() -> None:
    """The first logit is for a text that follows; IGNORE costs nothing."""
    logits = torch.tensor([[2.0, -1.0], [0.5, 0.1], [3.0, 4.0]])
    losses = next_sentence_losses(logits, torch.tensor([1, 0, IGNORE]))
    expected = [-logits[0].log_softmax(0)[0], -logits[1].log_softmax(0)[1], torch.tensor(0.0)]
    torch.testing.assert_close(losses, torch.stack(expected))
    with pytest.raises(ConfigError, match=r"set model\.respond\.next_sentence=true"):
        next_sentence_losses(None, torch.tensor([1]))


@pytest.mark.parametrize(("mlm", "nsp"), [(1.0, 1.0), (0.3, 2.0), (1.0, 0.0), (0.0, 0.7)])
def test_the_dual_objective_is_the_weighted_sum(mlm: float, nsp: float) -> None:
    """A pair counts as much as the expected number of masked tokens in it."""
    network, batch = make_bert(), make_corpus_batch([1, 0, 1, IGNORE])
    masking = {"kind": "words", "rate": 0.4}
    loss = PretrainingLoss(mlm=mlm, nsp=nsp, masking=masking)(network, batch, {"m": torch.ones(1)})
    mlm_loss = PretrainingLoss(masking=masking)(network, batch)
    logits = network(mask_batch(batch, WordMasking(rate=0.4)).inputs).logits
    nsp_losses = next_sentence_losses(logits.nsp_logits, batch.next_sentence_labels)
    count = (~batch.unmaskable).sum(1) * 0.4 if mlm else torch.ones(4)
    torch.testing.assert_close(loss.total, mlm * mlm_loss.total + nsp * (count * nsp_losses).sum())
    assert loss.num_targets == (mlm_loss.num_targets if mlm else 3)
    assert loss.carried == {"m": torch.ones(1)}


def test_the_losses_of_shards_add_up() -> None:
    """So gradient accumulation and several processes train on the same loss."""
    network, batch = make_bert(), make_corpus_batch([1, 0, 1, 0, 1, 0])
    objective = PretrainingLoss(nsp=0.7, masking={"kind": "tokens", "rate": 0.4})
    batch_loss = objective(network, batch)
    shards = [slice(0, 1), slice(1, 4), slice(4, 6)]
    shard_losses = [
        objective(network, batch._replace(**{name: getattr(batch, name)[shard] for name in ROW_FIELDS}))
        for shard in shards
    ]
    torch.testing.assert_close(sum(loss.total for loss in shard_losses), batch_loss.total)
    assert sum(loss.num_targets for loss in shard_losses) == batch_loss.num_targets


def test_every_weight_of_the_network_learns() -> None:
    network = make_bert()
    objective = PretrainingLoss(nsp=1.0, masking={"kind": "tokens", "rate": 0.5})
    loss = objective(network, make_corpus_batch([1, 0, 1]))
    (loss.total / loss.num_targets).backward()
    without_gradient = [name for name, weight in network.named_parameters() if weight.grad is None]
    assert not without_gradient


def test_without_pairs_there_is_no_head_for_them() -> None:
    network, batch = make_bert(next_sentence=False), make_corpus_batch([IGNORE, IGNORE])
    assert not [name for name, _ in network.named_parameters() if "follows" in name]
    loss = PretrainingLoss(nsp=0.0, masking={"kind": "tokens", "rate": 0.5})(network, batch)
    loss.total.backward()
    assert all(weight.grad is not None for weight in network.parameters())


def test_a_batch_without_targets_costs_nothing() -> None:
    network, batch = make_bert(), make_corpus_batch([IGNORE, IGNORE])
    without_targets = batch._replace(unmaskable=torch.ones_like(batch.unmaskable))
    loss = PretrainingLoss(nsp=1.0)(network, without_targets)
    loss.total.backward()
    assert (loss.total, loss.num_targets) == (0, 0)
    assert all(torch.isfinite(weight.grad).all() for weight in network.parameters() if weight.grad is not None)


def test_padding_changes_nothing() -> None:
    network, batch = make_bert(), make_corpus_batch([1, 0, 1])
    objective = PretrainingLoss(masking={"kind": "tokens", "rate": 0.4})
    padded = batch._replace(
        **{
            name: torch.cat([tensor, torch.full((3, 5), value, dtype=tensor.dtype)], 1)
            for name, tensor, value in [
                ("tokens", batch.tokens, 0),
                ("mask", batch.mask, False),
                ("segments", batch.segments, 0),
                ("word_starts", batch.word_starts, True),
                ("unmaskable", batch.unmaskable, True),
            ]
        }
    )
    torch.testing.assert_close(objective(network, padded).total, objective(network, batch).total)


def test_weights_are_checked() -> None:
    with pytest.raises(ConfigError, match="the weight nsp is a number from 0 on, not -1"):
        PretrainingLoss(nsp=-1.0)
    with pytest.raises(ConfigError, match="one of the weights mlm, nsp, sbo, repeats has to be above 0"):
        PretrainingLoss(mlm=0.0)
    with pytest.raises(ConfigError, match="no kind 'word' here"):
        PretrainingLoss(masking={"kind": "word"})


def test_the_unigram_baseline() -> None:
    """Uniform ids cost log v; unseen ids cost much more."""
    targets = torch.arange(V).repeat(100)
    targets = torch.cat([targets, torch.full((7,), IGNORE)])
    counts = count_targets(targets, V)
    assert counts.tolist() == [100] * V
    assert unigram_loss(counts, counts) == pytest.approx(torch.tensor(V).log().item())
    rare = count_targets(torch.tensor([5]), V)
    assert unigram_loss(count_targets(torch.zeros(1000, dtype=torch.long), V), rare) > 6
