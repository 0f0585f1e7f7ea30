"""InfoWord: which n-grams are hidden, what each side sees, and the loss by plain loops.

Shapes: b batch, n tokens, d width.
"""

import pytest
import torch
from pretraining_runs import VOCAB, make_corpus_batch
from scipy.stats import chisquare

from mnemic.data.corpora.word_keys import MULTIPLIER, weigh_tokens
from mnemic.encode import TransformerEncoder
from mnemic.models import TextModel, WindowBatch
from mnemic.objectives.pretraining.infoword import (
    HiddenNgrams,
    InfoWordLoss,
    append_rows,
    cut_ngrams,
    draw_ngrams,
    hide_ngrams,
    key_ngrams,
)
from mnemic.objectives.pretraining.masked import PretrainingLoss, mask_batch
from mnemic.objectives.pretraining.token_masking import TokenMasking
from mnemic.recipe import ConfigError
from mnemic.respond.pretraining.masked import PretrainingHeads

D = 16


def make_network() -> TextModel:
    torch.manual_seed(0)
    encode = TransformerEncoder(D, VOCAB, embeddings={"kind": "sum", "segments": 2})
    return TextModel(encode, PretrainingHeads(D, VOCAB, encode.embeddings.tokens)).eval()


def test_ngrams_are_drawn_evenly() -> None:
    """100,000 draws from a run of four tokens: all lengths, and then all places, alike."""
    unmaskable = torch.tensor([[True, False, False, False, False, True, False, True, True]]).expand(100_000, -1)
    ngrams = draw_ngrams(unmaskable, torch.arange(100_000), 5)
    counts = torch.bincount(ngrams.lengths, minlength=5)[1:].double()
    assert chisquare(counts.numpy()).pvalue > 0.001
    for length, places in ((1, [1, 2, 3, 4, 6]), (2, [1, 2, 3]), (3, [1, 2])):
        starts = torch.bincount(ngrams.starts[ngrams.lengths == length], minlength=9)
        assert starts.nonzero().squeeze(1).tolist() == places
        assert chisquare(starts[places].double().numpy()).pvalue > 0.001


def test_a_sequence_of_special_tokens_has_none() -> None:
    ngrams = draw_ngrams(torch.tensor([[True, True, True], [True, False, True]]), torch.arange(2), 5)
    assert ngrams.lengths.tolist() == [0, 1]
    assert ngrams.starts[1] == 1


def test_the_ngram_is_hidden_in_one_text_and_alone_in_the_other() -> None:
    batch = make_corpus_batch([1, 0, 1, 0, 1])
    ngrams = draw_ngrams(batch.unmaskable, batch.mask_seeds, 3)
    inputs = WindowBatch(batch.tokens, batch.mask, batch.segments, torch.arange(0))
    sentences, texts = hide_ngrams(inputs, ngrams, batch.mask_id), cut_ngrams(batch, ngrams)
    for row, tokens in enumerate(batch.tokens.tolist()):
        start, length = int(ngrams.starts[row]), int(ngrams.lengths[row])
        assert sentences.tokens[row].tolist() == tokens[:start] + [4] * length + tokens[start + length :]
        assert texts.tokens[row][texts.mask[row]].tolist() == [2, *tokens[start : start + length], 3]


def test_equal_ngrams_have_equal_keys() -> None:
    ids = torch.tensor([[9, 7, 9, 7], [7, 9, 7, 9]])
    weights = weigh_tokens(ids, torch.arange(4).expand(2, -1))
    expected = [[(token + 1) * MULTIPLIER ** (offset + 1) for offset, token in enumerate(row)] for row in ids.tolist()]
    wrapped = [[(value + 2**63) % 2**64 - 2**63 for value in row] for row in expected]
    assert weights.tolist() == wrapped
    batch = make_corpus_batch([1, 0, 1])._replace(tokens=torch.tensor([[2, 7, 8, 7, 8, 3]] * 3))
    ngrams = HiddenNgrams(torch.tensor([1, 3, 2]), torch.tensor([2, 2, 2]))
    keys = key_ngrams(batch, ngrams).tolist()
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("capacity", [0, 60])
def test_the_loss_is_that_of_plain_loops(capacity: int) -> None:
    """Each sentence and each n-gram is read alone, and equal n-grams are left out."""
    network, batch = make_network(), make_corpus_batch([1, 0, 1, 0])._replace(max_tokens=capacity)
    batch.tokens[1] = batch.tokens[0]  # rows of equal tokens may draw equal n-grams
    objective = InfoWordLoss(mlm=0.5, ngrams=2.0, max_ngram=2, temperature=0.7)
    loss = objective(network, batch)
    ngrams = draw_ngrams(batch.unmaskable, batch.mask_seeds, 2)
    masked = mask_batch(batch, TokenMasking())
    sentences, texts = hide_ngrams(masked.inputs, ngrams, batch.mask_id), cut_ngrams(batch, ngrams)
    states = [network.encode(s.tokens, s.mask, segments=s.segment_ids)[:, 0] for s in (sentences, texts)]
    pieces = [tuple(texts.tokens[row][texts.mask[row]].tolist()) for row in range(4)]
    total = torch.zeros(())
    for row in range(4):
        scores = {
            column: states[0][row] @ states[1][column] / D**0.5 / 0.7
            for column in range(4)
            if column == row or pieces[column] != pieces[row]
        }
        total = total - scores[row] + torch.stack(list(scores.values())).logsumexp(0)
    plain = mask_batch(batch, TokenMasking())
    logits = network(plain.inputs._replace(tokens=sentences.tokens)).logits.masked_logits
    expected_mlm = torch.nn.functional.cross_entropy(logits, plain.targets, reduction="sum")
    count = PretrainingLoss()(network, batch).num_targets
    assert loss.num_targets == count
    assert loss.means is not None
    torch.testing.assert_close(loss.means["ngrams"], total.detach() / 4)
    torch.testing.assert_close(loss.means["mlm"], expected_mlm.detach() / count)
    torch.testing.assert_close(loss.total / count, 0.5 * expected_mlm / count + 2.0 * total / 4)


def test_the_sentence_does_not_know_its_ngram() -> None:
    """Other tokens in the hidden n-gram change no state of the sentence."""
    network, batch = make_network(), make_corpus_batch([1, 0, 1])
    ngrams = draw_ngrams(batch.unmaskable, batch.mask_seeds, 3)
    changed = batch.tokens.clone()
    for row in range(3):
        start, length = int(ngrams.starts[row]), int(ngrams.lengths[row])
        changed[row, start : start + length] = 5 + (changed[row, start : start + length] - 4) % 25
    states = []
    for tokens in (batch.tokens, changed):
        inputs = hide_ngrams(WindowBatch(tokens, batch.mask, batch.segments, torch.arange(0)), ngrams, batch.mask_id)
        states.append(network.encode(inputs.tokens, inputs.mask, segments=inputs.segment_ids))
    assert torch.equal(*states)


def test_unused_positions_lie_beyond_all_rows() -> None:
    batch = make_corpus_batch([1, 0])._replace(max_tokens=24)
    masked = mask_batch(batch, TokenMasking())
    ngrams = draw_ngrams(batch.unmaskable, batch.mask_seeds, 2)
    together = append_rows(masked.inputs, cut_ngrams(batch, ngrams), 4)
    assert together.tokens.shape == (4, 12)
    assert together.max_tokens == 24 + 8
    assert set(together.answer_mask.tolist()) <= {*range(24), 48}


def test_every_weight_learns_and_options_are_checked() -> None:
    network = make_network()
    InfoWordLoss()(network, make_corpus_batch([1, 0, 1, 0])).total.backward()
    assert not [name for name, weight in network.named_parameters() if weight.grad is None]
    with pytest.raises(ConfigError, match="a max_ngram of at least 1 and a temperature above 0, not 0 and"):
        InfoWordLoss(max_ngram=0)
    with pytest.raises(ConfigError, match=r"leave out train\.accumulate"):
        InfoWordLoss(shards=2)
