"""Word features of MemNN: counted n-grams, and clusters of similar words."""

from collections import Counter

import pytest
import torch

from mnemic.encode.texts.ngrams import Ngrams
from mnemic.memory.parts.cluster_hash import ClusterHash, assign_clusters
from mnemic.memory.parts.key_hash import KeyHash

D = 4


# Features --------------------------------------------------------------------------------------


def test_ngrams_are_counted_right() -> None:
    torch.manual_seed(0)
    encode = Ngrams(D, 10, tables=2, max_n=3, buckets=50_000)
    texts = torch.tensor([[3, 4, 3, 4, 3], [4, 3, 5, 0, 0], [9, 0, 0, 0, 0]])
    ids, real = encode.hash_ngrams(texts, texts > 0)
    for row, words in enumerate([[3, 4, 3, 4, 3], [4, 3, 5], [9]]):
        expected = Counter(tuple(words[start : start + n]) for n in (1, 2, 3) for start in range(len(words) - n + 1))
        actual = Counter(ids[row][real[row]].tolist())
        assert sorted(actual.values()) == sorted(expected.values())
        assert all(actual[word] == words.count(word) for word in words)
    assert ids.max() < 50_010
    assert ids[0][5:9].tolist()[0] != ids[0][5:9].tolist()[1]  # 3 4 is not 4 3
    assert ids[0, 6] == ids[1, 5]  # 4 3 has the same id at any position
    states = encode(texts, texts > 0)
    for table in range(2):
        vectors = encode.tables[table]
        summed = sum(vectors[ngram_id] for ngram_id in ids[0][real[0]].tolist())
        torch.testing.assert_close(states[0, table], summed)


def test_one_grams_are_a_bag_of_words() -> None:
    encode = Ngrams(D, 10, max_n=1)
    texts = torch.tensor([[3, 4, 3], [5, 0, 0]])
    torch.testing.assert_close(encode(texts, texts > 0), encode.bag(texts, texts > 0))
    assert encode.words.shape == (10, D)


def test_few_ngrams_share_a_bucket() -> None:
    encode = Ngrams(D, 40, max_n=2, buckets=1024)
    pairs = torch.cartesian_prod(torch.arange(1, 40), torch.arange(1, 40))[::8]  # 191 of them
    ids, _ = encode.hash_ngrams(pairs, pairs > 0)
    assert ids[:, 2].unique().numel() > 0.85 * len(pairs)  # expected: 91 %


# Large memories --------------------------------------------------------------------------------


def test_clusters_find_what_shares_no_word() -> None:
    """Words 1 and 2 mean the same, 3 and 4 too; 0 is padding."""
    vectors = torch.tensor([[9.0, 9.0], [0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]])
    keys = torch.tensor([[1, 0], [4, 0], [2, 4]])
    select = ClusterHash(keys, vectors, num_clusters=2)
    assert select(torch.tensor([[2, 0], [3, 0], [0, 0]])).tolist() == [[0, 2], [1, 2], [-1, -1]]
    word_hash = KeyHash(keys)
    assert word_hash(torch.tensor([[3, 0]])).tolist() == [[]]
    single_cluster = ClusterHash(keys, vectors, num_clusters=1)
    assert single_cluster(torch.tensor([[3, 0]])).tolist() == [[0, 1, 2]]


def test_k_means_finds_what_lies_together() -> None:
    generator = torch.Generator().manual_seed(0)
    groups = torch.randint(4, (200,), generator=generator)
    vectors = 10 * torch.eye(4)[groups] + torch.randn(200, 4, generator=generator)
    best_clusters = min(
        (assign_clusters(vectors, 4, generator=generator) for _ in range(5)),
        key=lambda clusters: sum(float(vectors[clusters == cluster].var(0).sum()) for cluster in range(4)),
    )
    assert torch.equal(best_clusters[:, None] == best_clusters, groups[:, None] == groups)
    with pytest.raises(ValueError, match="from 1 to 200 clusters"):
        assign_clusters(vectors, 201, generator=generator)
