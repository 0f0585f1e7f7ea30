"""The dual objective and its heads: slow twins, gradients, weights.

Shapes: b batch, n tokens, m places, d width, v vocabulary.
"""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.data.corpora import Batch
from mnemic.encode import TransformerEncoder
from mnemic.network import IGNORE
from mnemic.objectives import Loss
from mnemic.objectives.pretraining import PretrainingLoss, asked, next_loss, weighted
from mnemic.objectives.unigram import counts_of, unigram_loss
from mnemic.recipe import ConfigError
from mnemic.respond.pretraining import PretrainingHeads, Said
from mnemic.respond.vocabulary import VocabularyHead

V, D = 30, 16


class Bert(nn.Module):
    """An encoder and the heads: what a network of pre-training has to be."""

    def __init__(self, pairs: bool = True) -> None:
        super().__init__()
        self.encode = TransformerEncoder(D, V, embeddings={"kind": "sum", "segments": 2})
        words = self.encode.embeddings.tokens
        self.respond = PretrainingHeads(D, V, words=words, pairs=pairs)

    def forward(self, tokens: Tensor, mask: Tensor, *, segments: Tensor, places: Tensor) -> Said:
        return self.respond(self.encode(tokens, mask, segments=segments), places)


def batch_of(follows: list[int], n: int = 12) -> Batch:
    """Random ids, [CLS] (2) before and [SEP] (3) behind, the last row padded."""
    b = len(follows)
    tokens = torch.randint(5, V, (b, n), generator=torch.Generator().manual_seed(0))
    tokens[:, 0], tokens[:, -1] = 2, 3
    tokens[-1, n // 2 :] = 0
    tokens[-1, n // 2] = 3
    return Batch(
        tokens=tokens,
        mask=tokens != 0,
        segments=(torch.arange(n) > n // 2).long().expand(b, n) * (tokens != 0),
        starts=torch.ones(b, n, dtype=torch.bool),
        fixed=tokens < 5,
        follows=torch.tensor(follows),
        keys=torch.arange(b),
        hidden=torch.tensor(4),
        ordinary=torch.arange(5, V),
    )


def test_the_head_is_what_the_paper_says() -> None:
    """Slow twin: one place and one word at a time."""
    head = VocabularyHead(D, V, epsilon=1e-12)
    nn.init.normal_(head.bias)
    nn.init.normal_(head.norm.weight)
    states = torch.randn(2, 3, D)
    scores = head(states)
    assert scores.shape == (2, 3, V)
    for row in range(2):
        for place in range(3):
            x = head.dense.weight @ states[row, place] + head.dense.bias
            x = x * 0.5 * (1 + torch.erf(x / 2**0.5))
            x = (x - x.mean()) / (x.var(correction=0) + 1e-12).sqrt()
            x = x * head.norm.weight + head.norm.bias
            for word in range(V):
                score = (x * head.words[word]).sum() + head.bias[word]
                torch.testing.assert_close(scores[row, place, word], score)


def test_gathering_first_changes_nothing() -> None:
    head = VocabularyHead(D, V)
    states = torch.randn(3, 5, D)
    places = torch.tensor([0, 4, 7, 14])
    torch.testing.assert_close(head(states, places), head(states).flatten(0, 1)[places])
    assert head(states, places[:0]).shape == (0, V)


def test_the_head_is_tied() -> None:
    network = Bert()
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
    with pytest.raises(ValueError, match="30 word vectors came for a vocabulary of 31"):
        VocabularyHead(D, V + 1, words=words)


def test_only_what_is_asked_is_scored_and_summed() -> None:
    """The masked loss is the cross-entropy over all scores, at the targets alone."""
    network, batch = Bert(), batch_of([1, 0, 1, 0])
    seen: dict[str, Any] = {}

    def spy(tokens: Tensor, mask: Tensor, **rest: Any) -> Said:
        seen.update(tokens=tokens, mask=mask, **rest)
        return network(tokens, mask, **rest)

    parts = PretrainingLoss(masking={"kind": "tokens", "rate": 0.5}).parts(spy, batch)  # type: ignore[arg-type]
    assert 5 < len(seen["places"]) < 35
    states = network.encode(seen["tokens"], batch.mask, segments=batch.segments)
    scores = network.respond.vocabulary(states).flatten(0, 1)  # (b n) v
    wanted = torch.full_like(batch.tokens, IGNORE).flatten()
    wanted[seen["places"]] = batch.tokens.flatten()[seen["places"]]
    slow = nn.functional.cross_entropy(scores, wanted, ignore_index=IGNORE, reduction="sum")
    torch.testing.assert_close(parts["mlm"].total, slow)
    assert parts["mlm"].targets == len(seen["places"])
    assert not batch.fixed.flatten()[seen["places"]].any()


def test_nothing_flows_from_places_that_are_not_asked() -> None:
    """The gradient of the loss by the last states is zero but at the masked places."""
    heads = PretrainingHeads(D, V)
    states = torch.randn(3, 8, D, requires_grad=True)
    targets = torch.full((3, 8), IGNORE)
    targets[0, 2], targets[2, 5] = 9, 11
    places, words = asked(targets)
    assert places.tolist() == [2, 21]
    assert words.tolist() == [9, 11]
    said = heads(states, places)
    nn.functional.cross_entropy(said.words, words, reduction="sum").backward()
    assert states.grad is not None
    flows = states.grad.abs().sum(-1) > 0
    assert torch.equal(flows, targets != IGNORE)


def test_next_sentence_scores_are_in_the_published_order() -> None:
    """The first score is for a text that follows; IGNORE is not asked."""
    scores = torch.tensor([[2.0, -1.0], [0.5, 0.1], [3.0, 4.0]])
    follows = torch.tensor([1, 0, IGNORE])
    total, targets, _ = next_loss(scores, follows)
    slow = -scores[0].log_softmax(0)[0] - scores[1].log_softmax(0)[1]
    torch.testing.assert_close(total, slow)
    assert targets == 2
    assert next_loss(scores, torch.full((3,), IGNORE)).total == 0


@pytest.mark.parametrize(("mlm", "nsp"), [(1.0, 1.0), (0.3, 2.0), (1.0, 0.0), (0.0, 0.7)])
def test_the_dual_objective_is_the_weighted_sum_of_means(mlm: float, nsp: float) -> None:
    network, batch = Bert(), batch_of([1, 0, 1, 0])
    objective = PretrainingLoss(mlm=mlm, nsp=nsp, masking={"kind": "words", "rate": 0.4})
    loss = objective(network, batch, {"memory": torch.ones(1)})
    each = PretrainingLoss(masking={"kind": "words", "rate": 0.4}).parts(network, batch)
    means = {name: part.total / part.targets for name, part in each.items()}
    torch.testing.assert_close(loss.total / loss.targets, mlm * means["mlm"] + nsp * means["nsp"])
    assert loss.carried == {"memory": torch.ones(1)}
    assert set(objective.parts(network, batch)) == {
        name for name, weight in [("mlm", mlm), ("nsp", nsp)] if weight
    }


def test_every_weight_of_the_network_learns() -> None:
    network = Bert()
    loss = PretrainingLoss(masking={"kind": "tokens", "rate": 0.5})(network, batch_of([1, 0, 1]))
    (loss.total / loss.targets).backward()
    dead = [name for name, weight in network.named_parameters() if weight.grad is None]
    assert not dead


def test_without_pairs_there_is_no_head_for_them() -> None:
    network, batch = Bert(pairs=False), batch_of([IGNORE, IGNORE])
    assert not [name for name, _ in network.named_parameters() if "follows" in name]
    loss = PretrainingLoss(nsp=0.0, masking={"kind": "tokens", "rate": 0.5})(network, batch)
    loss.total.backward()
    assert all(weight.grad is not None for weight in network.parameters())


def test_a_batch_that_asks_for_nothing_costs_nothing() -> None:
    network, batch = Bert(), batch_of([IGNORE, IGNORE])
    nothing = batch._replace(fixed=torch.ones_like(batch.fixed))
    loss = PretrainingLoss()(network, nothing)
    (loss.total / loss.targets).backward()
    assert loss.total == 0
    assert all(torch.isfinite(w.grad).all() for w in network.parameters() if w.grad is not None)


def test_padding_changes_nothing() -> None:
    network, batch = Bert(), batch_of([1, 0, 1])
    objective = PretrainingLoss(masking={"kind": "tokens", "rate": 0.4})
    wide = batch._replace(
        **{
            name: torch.cat([part, torch.full((3, 5), value, dtype=part.dtype)], 1)
            for name, part, value in [
                ("tokens", batch.tokens, 0),
                ("mask", batch.mask, False),
                ("segments", batch.segments, 0),
                ("starts", batch.starts, True),
                ("fixed", batch.fixed, True),
            ]
        }
    )
    torch.testing.assert_close(objective(network, wide).total, objective(network, batch).total)


def test_weights_are_checked() -> None:
    with pytest.raises(ConfigError, match="the weight nsp is a number from 0 on, not -1"):
        PretrainingLoss(nsp=-1.0)
    with pytest.raises(ConfigError, match="one of the weights mlm, nsp has to be above 0"):
        PretrainingLoss(mlm=0.0, nsp=0.0)
    with pytest.raises(ConfigError, match="no kind 'word' here"):
        PretrainingLoss(masking={"kind": "word"})
    one = Loss(torch.tensor(1.0), torch.tensor(2))
    with pytest.raises(ValueError, match="no weight for the loss 'sop'"):
        weighted({"mlm": one, "sop": one}, {"mlm": 1.0})


def test_the_unigram_baseline() -> None:
    """Evenly distributed ids cost log v; what was seen costs its entropy, nearly."""
    targets = torch.arange(V).repeat(100)
    targets = torch.cat([targets, torch.full((7,), IGNORE)])
    counts = counts_of(targets, V)
    assert counts.tolist() == [100] * V
    assert unigram_loss(counts, counts) == pytest.approx(torch.tensor(V).log().item())
    rare = counts_of(torch.tensor([5]), V)
    assert unigram_loss(counts_of(torch.zeros(1000, dtype=torch.long), V), rare) > 6
