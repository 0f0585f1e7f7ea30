"""The dual objective and its heads: slow twins, gradients, weights.

Shapes: b batch, n tokens, m places, d width, v vocabulary.
"""

import pytest
import torch
from torch import nn

from mnemic.data.corpora.batches import CorpusBatch
from mnemic.encode import TransformerEncoder
from mnemic.models import IGNORE, TextModel
from mnemic.objectives.masking import TokenMasking, WordMasking
from mnemic.objectives.pretraining import PretrainingLoss, mask_batch, next_sentence_losses
from mnemic.objectives.unigram import count_targets, unigram_loss
from mnemic.recipe import ConfigError
from mnemic.respond.pretraining import PretrainingHeads
from mnemic.respond.vocabulary import VocabularyHead

V, D = 30, 16
ROWS = ("tokens", "mask", "segments", "word_starts", "unmaskable", "next_sentence_labels", "mask_seeds")


def bert(pairs: bool = True) -> TextModel:
    """An encoder and the heads: what a network of pre-training is."""
    encode = TransformerEncoder(D, V, embeddings={"kind": "sum", "segments": 2})
    return TextModel(encode, PretrainingHeads(D, V, encode.embeddings.tokens, next_sentence=pairs))


def batch_of(follows: list[int], n: int = 12) -> CorpusBatch:
    """Random ids, [CLS] (2) before and [SEP] (3) behind, the last row padded."""
    b = len(follows)
    tokens = torch.randint(5, V, (b, n), generator=torch.Generator().manual_seed(0))
    tokens[:, 0], tokens[:, -1] = 2, 3
    tokens[-1, n // 2 :] = 0
    tokens[-1, n // 2] = 3
    return CorpusBatch(
        tokens=tokens,
        mask=tokens != 0,
        segments=(torch.arange(n) > n // 2).long().expand(b, n) * (tokens != 0),
        word_starts=torch.ones(b, n, dtype=torch.bool),
        unmaskable=tokens < 5,
        next_sentence_labels=torch.tensor(follows),
        mask_seeds=torch.arange(b),
        mask_id=torch.tensor(4),
        ordinary_ids=torch.arange(5, V),
    )


def test_the_head_is_what_the_paper_says() -> None:
    """Slow twin: one place and one word at a time."""
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
    network = bert()
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


@pytest.mark.parametrize("room", [0, 46])
def test_only_what_is_asked_is_scored_and_summed(room: int) -> None:
    """The masked loss is the cross-entropy over all scores, at the targets alone.

    With a room for them, places that are left over are asked for nothing.
    """
    network, batch = bert(), batch_of([1, 0, 1, 0])._replace(max_tokens=room)
    masked = mask_batch(batch, TokenMasking(rate=0.5))
    real = masked.targets != IGNORE
    positions = masked.inputs.answer_mask[real]
    assert 5 < len(positions) < 35
    assert len(masked.targets) == (46 if room else len(positions))
    assert (masked.inputs.answer_mask[~real] == batch.tokens.numel()).all()
    states = network.encode(masked.inputs.tokens, batch.mask, segments=batch.segments)
    logits = network.respond.vocabulary(states).flatten(0, 1)  # (b n) v
    expected = torch.full_like(batch.tokens, IGNORE).flatten()
    expected[positions] = batch.tokens.flatten()[positions]
    slow = nn.functional.cross_entropy(logits, expected, ignore_index=IGNORE, reduction="sum")
    objective = PretrainingLoss(masking={"kind": "tokens", "rate": 0.5})
    total, targets, *_ = objective(network, batch)
    torch.testing.assert_close(total, slow)
    assert targets == len(positions)
    assert not batch.unmaskable.flatten()[positions].any()


def test_nothing_flows_from_places_that_are_not_asked() -> None:
    """The gradient of the loss by the last states is zero but at the masked places."""
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
    flows = states.grad.abs().sum(-1) > 0
    assert torch.equal(flows, targets != IGNORE)


def test_next_sentence_scores_are_in_the_published_order() -> None:
    """The first score is for a text that follows; IGNORE is not asked."""
    logits = torch.tensor([[2.0, -1.0], [0.5, 0.1], [3.0, 4.0]])
    losses = next_sentence_losses(logits, torch.tensor([1, 0, IGNORE]))
    slow = [-logits[0].log_softmax(0)[0], -logits[1].log_softmax(0)[1], torch.tensor(0.0)]
    torch.testing.assert_close(losses, torch.stack(slow))
    with pytest.raises(ConfigError, match=r"set model\.respond\.next_sentence=true"):
        next_sentence_losses(None, torch.tensor([1]))


@pytest.mark.parametrize(("mlm", "nsp"), [(1.0, 1.0), (0.3, 2.0), (1.0, 0.0), (0.0, 0.7)])
def test_the_dual_objective_is_the_weighted_sum(mlm: float, nsp: float) -> None:
    """A pair counts by the tokens that are masked in it on average: rate times those there are."""
    network, batch = bert(), batch_of([1, 0, 1, IGNORE])
    masking = {"kind": "words", "rate": 0.4}
    loss = PretrainingLoss(mlm=mlm, nsp=nsp, masking=masking)(network, batch, {"m": torch.ones(1)})
    mlm_loss = PretrainingLoss(masking=masking)(network, batch)
    logits = network(mask_batch(batch, WordMasking(rate=0.4)).inputs).logits
    nsp_losses = next_sentence_losses(logits.nsp_logits, batch.next_sentence_labels)
    count = (~batch.unmaskable).sum(1) * 0.4 if mlm else torch.ones(4)
    torch.testing.assert_close(loss.total, mlm * mlm_loss.total + nsp * (count * nsp_losses).sum())
    assert loss.num_targets == (mlm_loss.num_targets if mlm else 3)
    assert loss.carried == {"m": torch.ones(1)}


def test_the_losses_of_parts_add_up() -> None:
    """So that accumulation and many processes train on exactly the same loss."""
    network, batch = bert(), batch_of([1, 0, 1, 0, 1, 0])
    objective = PretrainingLoss(nsp=0.7, masking={"kind": "tokens", "rate": 0.4})
    batch_loss = objective(network, batch)
    rows = [slice(0, 1), slice(1, 4), slice(4, 6)]
    shard_losses = [objective(network, batch._replace(**{n: getattr(batch, n)[shard] for n in ROWS})) for shard in rows]
    torch.testing.assert_close(sum(loss.total for loss in shard_losses), batch_loss.total)
    assert sum(loss.num_targets for loss in shard_losses) == batch_loss.num_targets


def test_every_weight_of_the_network_learns() -> None:
    network = bert()
    objective = PretrainingLoss(nsp=1.0, masking={"kind": "tokens", "rate": 0.5})
    loss = objective(network, batch_of([1, 0, 1]))
    (loss.total / loss.num_targets).backward()
    dead = [name for name, weight in network.named_parameters() if weight.grad is None]
    assert not dead


def test_without_pairs_there_is_no_head_for_them() -> None:
    network, batch = bert(pairs=False), batch_of([IGNORE, IGNORE])
    assert not [name for name, _ in network.named_parameters() if "follows" in name]
    loss = PretrainingLoss(nsp=0.0, masking={"kind": "tokens", "rate": 0.5})(network, batch)
    loss.total.backward()
    assert all(weight.grad is not None for weight in network.parameters())


def test_a_batch_that_asks_for_nothing_costs_nothing() -> None:
    network, batch = bert(), batch_of([IGNORE, IGNORE])
    nothing = batch._replace(unmaskable=torch.ones_like(batch.unmaskable))
    loss = PretrainingLoss(nsp=1.0)(network, nothing)
    loss.total.backward()
    assert (loss.total, loss.num_targets) == (0, 0)
    assert all(torch.isfinite(w.grad).all() for w in network.parameters() if w.grad is not None)


def test_padding_changes_nothing() -> None:
    network, batch = bert(), batch_of([1, 0, 1])
    objective = PretrainingLoss(masking={"kind": "tokens", "rate": 0.4})
    wide = batch._replace(
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
    torch.testing.assert_close(objective(network, wide).total, objective(network, batch).total)


def test_weights_are_checked() -> None:
    with pytest.raises(ConfigError, match="the weight nsp is a number from 0 on, not -1"):
        PretrainingLoss(nsp=-1.0)
    with pytest.raises(ConfigError, match="one of the weights mlm, nsp has to be above 0"):
        PretrainingLoss(mlm=0.0)
    with pytest.raises(ConfigError, match="no kind 'word' here"):
        PretrainingLoss(masking={"kind": "word"})


def test_the_unigram_baseline() -> None:
    """Evenly distributed ids cost log v; what was seen costs its entropy, nearly."""
    targets = torch.arange(V).repeat(100)
    targets = torch.cat([targets, torch.full((7,), IGNORE)])
    counts = count_targets(targets, V)
    assert counts.tolist() == [100] * V
    assert unigram_loss(counts, counts) == pytest.approx(torch.tensor(V).log().item())
    rare = count_targets(torch.tensor([5]), V)
    assert unigram_loss(count_targets(torch.zeros(1000, dtype=torch.long), V), rare) > 6
