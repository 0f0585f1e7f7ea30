"""Noises of sequence-to-sequence pre-training: what holds of each, and what each one means."""

import pytest
import torch
from corpus_batches import select_rows
from noise_cases import (
    SENTINELS,
    VOCABULARY,
    apply,
    list_origins,
    list_source,
    list_targets,
    make_copies,
    make_noise_batch,
    restore_from_targets,
)

from mnemic.models import IGNORE, build_model
from mnemic.objectives.denoising import DenoisingLoss
from mnemic.objectives.noises import INSERTED, NOISES, build_noises, start_texts
from mnemic.recipe import ConfigError

CHOICES = [[{"kind": "prefix"}], [{"kind": "infilling"}, {"kind": "rotation"}]]
SPECS = {kind: {"kind": kind} for kind in NOISES} | {
    "one-of": {"kind": "one-of", "shares": [1, 1], "choices": CHOICES},
    "infilling": {"kind": "infilling", "random_share": 0.2},
    "sentinels": {"kind": "sentinels", "rate": 0.4},  # one span alone always ends its text
}
KINDS = sorted(SPECS)
TEXT_NOISES = [kind for kind in KINDS if not build_noises([SPECS[kind]])[0].sets_targets]


@pytest.mark.parametrize("kind", KINDS)
def test_neither_padding_nor_the_rest_of_a_batch_changes_a_text(kind: str) -> None:
    batch = make_noise_batch(5)
    together = apply(start_texts(batch), SPECS[kind])
    for row in range(5):
        lone = select_rows(batch, slice(row, row + 1))
        width = int(lone.mask.sum())
        lone = lone._replace(**{name: getattr(lone, name)[:, :width] for name in
                                ("tokens", "mask", "segments", "word_starts", "unmaskable")})  # fmt: skip
        alone = apply(start_texts(lone), SPECS[kind], keys=lone.mask_seeds)
        assert list_source(alone, 0) == list_source(together, row)
        assert list_origins(alone, 0) == list_origins(together, row)
        assert list_targets(alone, 0) == list_targets(together, row)


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_can_be_restored_from_what_the_decoder_says(kind: str) -> None:
    batch = make_noise_batch(40)
    texts = apply(start_texts(batch), SPECS[kind])
    changed = 0
    for row in range(40):
        original = batch.tokens[row][batch.mask[row]].tolist()
        if kind != "one-of":
            assert restore_from_targets(kind, texts, row) == original
        changed += list_source(texts, row) != original
        assert texts.targets[row, 0] == (2 if kind != "fragment" else original[texts.target_positions[row, 0]])
    assert changed > 20


@pytest.mark.parametrize("kind", KINDS)
def test_origins_say_where_each_token_is_from(kind: str) -> None:
    """A token with an origin is that of the text there, unless it is masked; none comes twice."""
    batch = make_noise_batch(20)
    texts = apply(start_texts(batch), SPECS[kind])
    for row in range(20):
        origins = [origin for origin in list_origins(texts, row) if origin != INSERTED]
        assert len(set(origins)) == len(origins)
        for token, origin in zip(list_source(texts, row), list_origins(texts, row)):
            if kind not in ("token-masking", "fragment") and origin != INSERTED:
                assert token == batch.tokens[row, origin]
        assert list_source(texts, row)[0] == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_of_no_or_one_token_is_fine(kind: str) -> None:
    for tokens in ([], [9], [9, 10]):
        texts = apply(make_copies(tokens, 30), SPECS[kind])
        assert texts.mask[:, 0].all()
        for row in range(30):
            if kind != "one-of":
                assert restore_from_targets(kind, texts, row) == [2, *tokens, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_other_keys_give_other_noise(kind: str) -> None:
    texts = start_texts(make_noise_batch(6))
    first, again, other = (apply(texts, SPECS[kind], keys=torch.arange(6) + start) for start in (0, 0, 100))
    assert torch.equal(first.tokens, again.tokens)
    if kind != "causal":
        assert first.tokens.shape != other.tokens.shape or not torch.equal(first.tokens, other.tokens)


def test_noises_compose() -> None:
    """Two noises are the second one on the first one's result; random numbers are their own."""
    texts = start_texts(make_noise_batch(60, word_starts=torch.ones(60, 24, dtype=torch.bool)))
    both = apply(texts, {"kind": "sentence-permutation"}, {"kind": "infilling"})
    first = apply(texts, {"kind": "sentence-permutation"})
    for row in range(60):
        order = list_origins(first, row)
        left = [origin for origin in list_origins(both, row) if origin != INSERTED]
        assert left == [origin for origin in order if origin in left]
        assert list_targets(both, row) == list_targets(texts, row)
    assert (both.mask.sum(1) < first.mask.sum(1)).float().mean() > 0.9
    twice = apply(texts, {"kind": "token-masking"}, {"kind": "token-masking"})
    once = apply(texts, {"kind": "token-masking"})
    ordinary = texts.is_ordinary.sum()
    shares = [float((noisy.tokens == 4).sum() / ordinary) for noisy in (once, twice)]
    assert abs(shares[0] - 0.15) < 0.03
    assert abs(shares[1] - (1 - 0.85**2)) < 0.04  # were the draws the same, it would be 0.15


def test_noise_after_sentinels_leaves_them_alone() -> None:
    texts = apply(start_texts(make_noise_batch(30)), {"kind": "sentinels", "rate": 0.4},
                  {"kind": "token-masking", "masking": {"kind": "tokens", "rate": 1.0}})  # fmt: skip
    for row in range(30):
        sentinels = [token for token in list_targets(texts, row) if token in SENTINELS]
        seen = [token for token in list_source(texts, row) if token in SENTINELS]
        assert seen == sentinels[:-1] == SENTINELS[: len(seen)].tolist()
        assert set(list_source(texts, row)) <= {2, 3, 4, *seen}


def test_what_the_decoder_says_is_decided_first_and_once() -> None:
    for late in ("sentinels", "fragment", "prefix", "causal"):
        with pytest.raises(ConfigError, match=f"noise '{late}' decides what the decoder says"):
            build_noises([{"kind": "rotation"}, {"kind": late}])
    with pytest.raises(ConfigError, match=r"set data\.tokenizer\.sentinels=100"):
        build_noises([{"kind": "sentinels"}])[0](
            make_copies([9, 9], 1), torch.arange(1), VOCABULARY._replace(sentinel_ids=SENTINELS[:0])
        )


def test_wrong_options_are_refused() -> None:
    for spec, message in (
        ({"kind": "infilling", "rate": 0.0}, "infilling.rate is a share"),
        ({"kind": "infilling", "length": 0.0}, "infilling.length is a mean above 0"),
        ({"kind": "infilling", "random_share": 2.0}, "infilling.random_share is a share"),
        ({"kind": "sentinels", "rate": 1.0}, "sentinels.rate is a share"),
        ({"kind": "sentinels", "length": 0.5}, "sentinels.length is a mean"),
        ({"kind": "fragment", "share": 0.0}, "fragment.share is a share"),
        ({"kind": "one-of"}, "one-of has choices and as many shares"),
        ({"kind": "one-of", "shares": [0.0], "choices": [[{"kind": "causal"}]]}, "one of them above 0"),
    ):
        with pytest.raises(ConfigError, match=message):
            build_noises([spec])


def test_a_fragment_of_the_whole_text_is_a_language_model() -> None:
    """With share 1 the decoder says all tokens from those before, as with no source."""
    texts = start_texts(make_noise_batch(8))
    fragment, causal = apply(texts, {"kind": "fragment", "share": 1.0}), apply(texts, {"kind": "causal"})
    for row in range(8):
        assert list_targets(fragment, row) == list_targets(causal, row)[:-1]  # [SEP] is of no fragment
        assert list_source(causal, row) == [2]
    shown = apply(texts, {"kind": "fragment", "share": 1.0, "mask_share": 1.0, "keep_share": 0.0})
    assert set(shown.tokens[shown.mask].tolist()) == {2, 3, 4}


def make_network() -> torch.nn.Module:
    torch.manual_seed(0)
    model = {"width": 16, "encode": {"kind": "transformer"}, "respond": {"kind": "seq2seq"}}
    return build_model(model, {"vocab": 42, "max_length": 64})


def test_a_fragment_is_said_at_its_place() -> None:
    """The decoder stands where the fragment is: its scores are others without positions."""
    batch, network = make_noise_batch(6), make_network().eval()
    corrupted = DenoisingLoss(noises=[{"kind": "fragment"}]).corrupt(batch)
    assert corrupted.inputs.decoder_positions is not None
    logits = network(corrupted.inputs).logits
    misplaced = network(corrupted.inputs._replace(decoder_positions=None)).logits
    is_at_start = corrupted.inputs.decoder_positions[:, 0] == 0
    for row in range(6):
        count = int((corrupted.targets[row] != IGNORE).sum())
        assert torch.allclose(logits[row, :count], misplaced[row, :count], atol=1e-5) == is_at_start[row]
    assert 0 < is_at_start.sum() < 6


@pytest.mark.parametrize("kind", ["infilling", "sentinels", "fragment", "one-of"])
def test_losses_of_parts_of_a_batch_add_up(kind: str) -> None:
    batch, network = make_noise_batch(6), make_network().eval()
    objective = DenoisingLoss(noises=[SPECS[kind]], label_smoothing=0.1)
    full = objective(network, batch)
    parts = [objective(network, select_rows(batch, rows)) for rows in (slice(0, 2), slice(2, 6))]
    torch.testing.assert_close(full.total, parts[0].total + parts[1].total)
    assert full.num_targets == parts[0].num_targets + parts[1].num_targets
