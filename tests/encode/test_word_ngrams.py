"""fastText's classifier: equal to torch's EmbeddingBag, and what bigrams add."""

from pathlib import Path

import pytest
import text_files
import torch
from learn_runs import finish
from torch import Tensor, nn

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.encode import ENCODERS
from mnemic.encode.texts.ngrams import Ngrams
from mnemic.encode.texts.word_ngrams import WordNgrams
from mnemic.predict.model import load
from mnemic.recipe import ConfigError, build, load_recipe
from mnemic.respond.classes import ClassHead

VOCAB, WIDTH, BUCKETS = 30, 8, 50


def make_encoder(max_n: int) -> WordNgrams:
    torch.manual_seed(0)
    encoder = build(ENCODERS, {"kind": "word-ngrams", "max_n": max_n, "buckets": BUCKETS}, width=WIDTH, vocab=VOCAB)
    nn.init.normal_(encoder.ngrams)
    return encoder.double()


def make_batch() -> tuple[Tensor, Tensor]:
    tokens = torch.randint(VOCAB, (4, 7), generator=torch.Generator().manual_seed(1))
    return tokens, torch.arange(7) < torch.tensor([7, 3, 1, 0]).unsqueeze(1)


@pytest.mark.parametrize("max_n", [1, 2, 3])
def test_the_logits_are_those_of_an_embedding_bag(max_n: int) -> None:
    """One table of words and buckets, the mean of all n-grams of each text, one linear layer."""
    encoder, (tokens, mask) = make_encoder(max_n), make_batch()
    head = ClassHead(WIDTH, 3, hidden=False, dropout=0.0).double()
    logits = head(None, None, encoder(tokens, mask), mask)
    table = torch.cat([encoder.embeddings.tokens, encoder.ngrams])
    hashing = Ngrams(2, VOCAB, max_n=max_n, buckets=BUCKETS)
    for row, length in enumerate(mask.sum(1).tolist()):
        ids, is_real = hashing.hash_ngrams(tokens[row : row + 1, :length], mask[row : row + 1, :length])
        assert is_real.all()
        mean = nn.functional.embedding_bag(ids, table, mode="mean") if length else torch.zeros(1, WIDTH).double()
        torch.testing.assert_close(logits[row : row + 1], head.out(mean))


def test_ngrams_that_were_never_met_add_nothing() -> None:
    torch.manual_seed(0)
    encoder, (tokens, mask) = build(ENCODERS, {"kind": "word-ngrams"}, width=WIDTH, vocab=VOCAB), make_batch()
    words = encoder.embeddings(tokens, mask)
    states = encoder(tokens, mask)
    torch.testing.assert_close(states[0] * 13 / 7, words[0])  # 7 words and 6 bigrams
    assert sum(weight.numel() for weight in encoder.parameters()) == (VOCAB + 100_000) * WIDTH


@pytest.mark.parametrize("options", [{"max_n": 0}, {"max_n": 4}, {"buckets": 0}])
def test_options_are_checked(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="max_n from 1 to 3 and buckets ≥ 1"):
        build(ENCODERS, {"kind": "word-ngrams", **options}, width=4, vocab=9)


def test_bigrams_learn_the_order_of_words_and_words_alone_cannot(tmp_path: Path) -> None:
    names = ("cat", "dog", "horse", "rabbit")
    pairs = [(first, second) for first in names for second in names if first < second]
    rows = [f"{a} chases {b}\tup" for a, b in pairs] + [f"{b} chases {a}\tdown" for a, b in pairs]
    text_files.write(tmp_path / "data" / "train.tsv", ["text\tlabel", *rows * 8])
    accuracies = []
    for max_n in (2, 1):
        sets = [f"data.folder={tmp_path / 'data'}", f"model.encode.max_n={max_n}", "model.encode.buckets=500"]
        sets += ["train.epochs=12", "train.rate=0.03", "train.batch=8", "data.validation=0.1"]
        run = finish(load_recipe("fasttext-classes", sets), tmp_path / str(max_n), device="cpu")
        answers = [answer.label for answer in load(run).classify([row.split("\t")[0] for row in rows])]
        accuracies.append(sum(answer == row.split("\t")[1] for answer, row in zip(answers, rows)) / len(rows))
    # "cat chases dog" and "dog chases cat" differ in their bigrams alone.
    assert accuracies[0] > 0.9
    assert accuracies[1] <= 0.6
    assert load_checkpoint(tmp_path / "2").network.respond.inner is None
