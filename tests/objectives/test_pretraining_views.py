"""UniLM's views: shares, what may not leak in each, and segments.

Shapes: b batch, n tokens.
"""

import pytest
import torch
from pretraining_runs import VOCAB, make_corpus_batch
from scipy.stats import chisquare
from torch import Tensor

from mnemic.encode import TransformerEncoder
from mnemic.models import IGNORE, TextModel, WindowBatch
from mnemic.objectives.pretraining.masked import PretrainingLoss, mask_batch
from mnemic.objectives.pretraining.token_masking import TokenMasking, TokensAndNgramsMasking
from mnemic.objectives.pretraining.views import VIEWS, SequenceViews, keep_both_ways
from mnemic.objectives.uniforms import make_uniforms
from mnemic.recipe import ConfigError
from mnemic.respond.pretraining.masked import PretrainingHeads

D = 16
SHARES = {"both": 2, "source-target": 2, "left": 1, "right": 1}


def make_unilm(next_sentence: bool = False) -> TextModel:
    torch.manual_seed(0)
    encode = TransformerEncoder(D, VOCAB, embeddings={"kind": "sum", "segments": 6}, stack={"kind": "encoder"})
    return TextModel(encode, PretrainingHeads(D, VOCAB, encode.embeddings.tokens, next_sentence=next_sentence)).eval()


def may_see(view: str, row: int, column: int, first_target: int) -> bool:
    """Say whether the token at ``row`` may depend on the one at ``column``, by the paper."""
    return {
        "both": True,
        "left": column <= row,
        "right": column >= row,
        "source-target": column < first_target or (row >= first_target and column <= row),
    }[view]


def test_views_are_drawn_by_their_shares() -> None:
    numbers = SequenceViews(SHARES).draw(torch.arange(100_000))
    counts = torch.bincount(numbers, minlength=4)
    expected = 100_000 * torch.tensor([SHARES[name] for name in VIEWS], dtype=torch.float64) / 6
    assert chisquare(counts.numpy(), expected.numpy()).pvalue > 0.001
    assert (SequenceViews({"right": 3.0}).draw(torch.arange(50)) == list(VIEWS).index("right")).all()


def test_views_do_not_depend_on_the_masks() -> None:
    """Among the sequences of each view, first tokens are masked equally often."""
    seeds = torch.arange(100_000)
    numbers, masked = SequenceViews(SHARES).draw(seeds), make_uniforms(seeds, 1, 1)[0, :, 0] < 0.5
    counts = torch.stack([torch.bincount(numbers[masked == flag], minlength=4) for flag in (True, False)])
    expected = counts.sum(0) / 2
    assert chisquare(counts[0].double().numpy(), expected.double().numpy(), sum_check=False).pvalue > 0.001


@pytest.mark.parametrize("view", VIEWS)
def test_no_view_leaks(view: str) -> None:
    """A token's state depends on exactly those tokens that it may see, in two layers."""
    length, first_target = 7, 4
    network, views = make_unilm(), SequenceViews({view: 1})
    tokens = torch.randint(5, VOCAB, (1, length), generator=torch.Generator().manual_seed(0))
    segments = (torch.arange(length) >= first_target).long().unsqueeze(0)

    def encode(tokens: Tensor) -> Tensor:
        inputs = WindowBatch(tokens, torch.ones_like(tokens, dtype=torch.bool), segments, torch.arange(0))
        inputs = views.apply(inputs, views.draw(torch.arange(1)))
        return network.encode(inputs.tokens, inputs.mask, segments=inputs.segment_ids)[0]

    before = encode(tokens)
    for column in range(length):
        changed = tokens.clone()
        changed[0, column] = 5 + (changed[0, column] - 4) % 25
        depends = (encode(changed) != before).any(-1).tolist()
        assert depends == [may_see(view, row, column, first_target) for row in range(length)]


@pytest.mark.parametrize("view", VIEWS)
def test_padding_sees_nothing_and_is_not_seen(view: str) -> None:
    batch, views, network = make_corpus_batch([1, 0, 1]), SequenceViews({view: 1}), make_unilm()
    inputs = views.apply(mask_batch(batch, TokenMasking()).inputs, torch.full((3,), list(VIEWS).index(view)))
    assert not inputs.mask[~batch.mask].any()
    assert not inputs.mask.mT[~batch.mask].any()
    assert inputs.mask.diagonal(dim1=1, dim2=2).equal(batch.mask)
    states = network.encode(inputs.tokens, inputs.mask, segments=inputs.segment_ids)
    short = 7  # tokens of the last row
    alone = network.encode(
        inputs.tokens[2:, :short], inputs.mask[2:, :short, :short], segments=inputs.segment_ids[2:, :short]
    )
    torch.testing.assert_close(states[2:, :short], alone)


def test_each_view_has_segments_of_its_own() -> None:
    batch = make_corpus_batch([1, 0, 1, 0])
    inputs = mask_batch(batch, TokenMasking()).inputs
    segments = SequenceViews(SHARES).apply(inputs, torch.arange(4)).segment_ids
    assert [sorted(set(row.tolist())) for row in segments[:3]] == [[0, 1], [2], [3]]
    assert set(segments[3][batch.mask[3]].tolist()) == {4}
    assert (SequenceViews(SHARES).apply(inputs, torch.tensor([3] * 4)).segment_ids == 4 + inputs.segment_ids).all()


def test_both_ways_alone_is_plain_masking() -> None:
    network, batch = make_unilm(), make_corpus_batch([1, 0, 1])
    masking = {"kind": "tokens", "rate": 0.4}
    plain = PretrainingLoss(masking=masking)(network, batch)
    viewed = PretrainingLoss(masking=masking, views={"both": 1}, network=network)(network, batch)
    torch.testing.assert_close(viewed.total, plain.total)
    left = PretrainingLoss(masking=masking, views={"left": 1}, network=network)(network, batch)
    assert left.num_targets == plain.num_targets
    assert not torch.allclose(left.total, plain.total)


def test_next_sentences_are_asked_where_the_first_token_sees_both() -> None:
    labels = keep_both_ways(torch.tensor([1, 0, 1, 0]), torch.arange(4))
    assert labels.tolist() == [1, IGNORE, IGNORE, IGNORE]
    network, batch = make_unilm(next_sentence=True), make_corpus_batch([1, 0])
    objective = PretrainingLoss(mlm=0.0, nsp=1.0, views={"right": 1}, network=network)
    assert objective(network, batch).num_targets == 0


def test_wrong_views_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"objective\.views has no 'up'; it has both, left, right"):
        PretrainingLoss(views={"up": 1})
    with pytest.raises(ConfigError, match="shares from 0 on, one of them above 0"):
        PretrainingLoss(views={"left": 0})
    encode = TransformerEncoder(D, VOCAB)
    with pytest.raises(ConfigError, match=r"set model\.encode\.embeddings\.segments=6"):
        PretrainingLoss(views={"left": 1}, network=TextModel(encode, PretrainingHeads(D, VOCAB)))


def test_single_tokens_and_ngrams() -> None:
    """Of 200,000 tokens 15 % are is_masked; 80 % of all draws are single tokens."""
    masking = TokensAndNgramsMasking()
    uniforms = make_uniforms(torch.arange(100), 2000, 1)
    unmaskable = torch.zeros(100, 2000, dtype=torch.bool)
    is_masked = masking(unmaskable, ~unmaskable, uniforms)
    assert abs(float(is_masked.float().mean()) - 0.15) < 0.004
    uniforms = uniforms[0]
    starts = uniforms < masking.start_rate
    lengths = 1 + (uniforms < masking.start_rate * 0.2).int() + (uniforms < masking.start_rate * 0.1).int()
    counts = torch.bincount(lengths[starts], minlength=4)[1:].double()
    shares = torch.tensor([0.8, 0.1, 0.1], dtype=torch.float64)
    assert chisquare(counts.numpy(), (counts.sum() * shares).numpy()).pvalue > 0.001
    expected = starts.clone()
    for row, column in starts.nonzero().tolist():
        expected[row, column : column + int(lengths[row, column])] = True
    assert torch.equal(is_masked, expected)
    with pytest.raises(ConfigError, match="the share of n-grams is from 0 to 1, not 2"):
        TokensAndNgramsMasking(ngrams=2.0)
