"""Texts as sets: targets point at the right tokens, batches hold whole texts, splits are fair."""

import json
from itertools import islice
from pathlib import Path

import pytest
import text_files
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic.data import DATASETS
from mnemic.data.text_tasks.encode_windows import asked_set, first_tokens, labelled_set, tagged_set
from mnemic.data.text_tasks.examples import Asked, Labelled, Tagged, TextError
from mnemic.data.text_tasks.splits import parted
from mnemic.models import IGNORE
from mnemic.recipe import ConfigError, build
from mnemic.text import Room
from mnemic.text.tokenizers.trainers import train_wordpiece
from mnemic.train.sampler import Draws

TEXT = "the old train to Oslo ran past Oslofjord and the small grey house today ."
PIECES = train_wordpiece([TEXT, "where did it run ?"], vocab=60)


def test_a_batch_holds_every_window_of_its_texts() -> None:
    """Padding apart, the batch is the windows as they were cut, whatever order is asked for."""
    texts = [Labelled(" ".join(TEXT.split()[:size]), None, "ab"[size % 2]) for size in (1, 13, 6)]
    own = labelled_set(texts, PIECES, Room(12, 3), labels=["a", "b"])
    batch = own.batch(torch.tensor([2, 0, 1]))
    assert batch.targets.tolist() == [0, 1, 1]
    assert batch.owner.unique(return_counts=True)[1].tolist() == [
        int(own.first[row + 1] - own.first[row]) for row in (2, 0, 1)
    ]
    for row, number in enumerate((2, 0, 1)):
        ids = PIECES.encode(texts[number].text, special=False).ids
        windows = (batch.owner == row).nonzero().flatten().tolist()
        for window, start in zip(windows, range(0, 1000, 7)):
            seen = batch.inputs.tokens[window][batch.inputs.mask[window]].tolist()
            assert seen == [PIECES.cls, *ids[start : start + 10], PIECES.sep]
            inside = batch.inputs.tokens[window][batch.inputs.inside[window]].tolist()
            assert inside == ids[start : start + 10]
    assert own.count[:, 0].tolist() == own.count[:, 1].tolist()
    assert own.lengths[1] == own.lengths.max()


def test_a_label_that_was_never_learnt_is_unknown() -> None:
    own = labelled_set([Labelled("a", None, "z")], PIECES, Room(12, 3), labels=["a", "b"])
    assert own.targets.tolist() == [IGNORE]
    assert own.unknown == 1
    with pytest.raises(TextError, match="the label 'z' of 'a' is no number; for names of classes"):
        labelled_set([Labelled("a", None, "z")], PIECES, Room(12, 3), labels=[], kind="numbers")


@given(start=st.integers(0, len(TEXT) - 1), size=st.integers(1, 20), room=st.integers(16, 60))
@settings(max_examples=60, deadline=None)
def test_the_answers_columns_quote_the_answer(start: int, size: int, room: int) -> None:
    """In a window that holds it whole; every other window says "none"."""
    answer = TEXT[start : start + size]
    if not answer.strip():
        return
    start += len(answer) - len(answer.lstrip())
    asked = Asked("where ?", TEXT, (answer.strip(),), start, "1")
    own = asked_set([asked], PIECES, Room(room, 4))
    offsets = PIECES.encode(TEXT, special=False).offsets
    holding = 0
    for window, (first, last) in enumerate(own.targets.tolist()):
        if (first, last) == (0, 0):
            continue
        holding += 1
        shift = int(own.held[window, 0]) - int(own.place[window]) - 1
        quoted = TEXT[offsets[first + shift][0] : offsets[last + shift][1]]
        assert answer.strip() in quoted
        inside = own.inside[int(own.begins[window]) :]
        assert inside[first - 1]
        assert inside[last - 1]
    assert holding or room < 60


def test_a_question_without_an_answer_asks_for_none() -> None:
    own = asked_set([Asked("where ?", TEXT, (), -1, "1")], PIECES, Room(16, 4))
    assert len(own.targets) > 1
    assert not own.targets.any()


def test_the_first_token_of_a_word_has_its_tag_and_every_word_is_asked_once() -> None:
    words = TEXT.split()
    places, at = [], 0
    for word in words:
        places.append((at, at + len(word)))
        at += len(word) + 1
    tags = tuple(f"B-{number}" for number in range(len(words)))
    own = tagged_set([Tagged(TEXT, tuple(places), tags)], PIECES, Room(12, 6), labels=tags)
    asked = own.targets != IGNORE
    assert sorted(own.targets[asked].tolist()) == list(range(len(words)))
    starts = [PIECES.encode(word, special=False).ids[0] for word in words]
    for token, tag in zip(own.tokens[asked].tolist(), own.targets[asked].tolist()):
        assert token == starts[tag]
    batch = own.batch(torch.tensor([0]))
    assert (batch.targets[~batch.inputs.inside] == IGNORE).all()
    assert int((batch.targets != IGNORE).sum()) == len(words)


def test_a_word_without_a_token() -> None:
    """A control character is nothing to a WordPiece tokenizer."""
    text = "old \u0007 house"
    offsets = PIECES.encode(text, special=False).offsets
    first = first_tokens(offsets, [(0, 3), (4, 5), (6, 11)])
    assert first[0] == 0
    assert first[1] is None
    assert first[2] is not None
    assert offsets[first[2]][0] == 6


# Splits and draws ------------------------------------------------------------------------------


def test_what_is_held_back_has_no_pattern_and_texts_stay_together() -> None:
    learnt, held = parted(list(range(1000)), 0.1)
    assert sorted(learnt + held) == list(range(1000))
    assert len(held) == 100
    assert 30 < sum(number % 2 for number in held) < 70  # of classes in turns, both
    assert 30 < sum(number < 500 for number in held) < 70
    assert parted(list(range(1000)), 0.1) == (learnt, held)
    learnt, held = parted([n // 5 for n in range(100)], 0.1, lambda own: own)
    assert not {*learnt} & {*held}
    assert len(held) == 10
    assert parted([1, 2, 3], 0.0) == ([1, 2, 3], [])
    assert len(parted([1, 2, 3], 0.1)[1]) == 1  # a few examples still tell something


@pytest.mark.parametrize("kind", ["classes", "pairs", "spans", "tags"])
def test_every_kind_gives_its_sets(kind: str, tmp_path: Path) -> None:
    """What is tested is read when it is asked for: training needs no such file."""
    getattr(text_files, kind)(tmp_path, 50)
    source = build(DATASETS, {"kind": kind, "folder": str(tmp_path)})
    kept = {path: path.read_bytes() for path in tmp_path.glob("[td]e*")}  # test or dev
    for path in kept:
        path.unlink()
    data = source.data()
    assert [len(own) for own in (data.train, data.validation)] == [45, 5]
    with pytest.raises(TextError, match="no file named"):
        source.asked("test", data.words, data.labels)
    for path, content in kept.items():
        path.write_bytes(content)
    assert data.sizes["vocab"] == len(data.words)
    assert data.sizes.get("classes", 0) == len(data.labels)
    assert len(source.asked("test", data.words, data.labels)) == 60
    again = source.asked("train", data.words, data.labels)
    assert torch.equal(again.tokens, data.train.tokens)
    assert torch.equal(again.targets, data.train.targets)
    assert torch.equal(data.train.to("cpu").tokens, data.train.tokens)
    with pytest.raises(TextError, match=r"data\.validation is a share"):
        build(DATASETS, {"kind": kind, "folder": str(tmp_path), "validation": 1.0}).data()


def test_files_of_their_own_for_validation_and_none_for_a_test(tmp_path: Path) -> None:
    text_files.classes(tmp_path, 50)
    spec = {"kind": "classes", "folder": str(tmp_path), "held": "test", "tested": ""}
    data = build(DATASETS, spec).data()
    assert [len(own) for own in (data.train, data.validation)] == [50, 60]
    assert not len(build(DATASETS, spec).asked("test", data.words, data.labels))


def test_data_that_cannot_be_learnt(tmp_path: Path) -> None:
    rows = [json.dumps({"text": "x y", "label": 1})] * 20
    text_files.write(tmp_path / "train.jsonl", rows)
    spec = {"kind": "classes", "folder": str(tmp_path), "tested": "train"}
    with pytest.raises(TextError, match="all training texts have the label '1'; two are needed"):
        build(DATASETS, spec).data()
    with pytest.raises(TextError, match="labels that are numbers is pearson or spearman"):
        build(DATASETS, spec | {"labels": "numbers"}).data()
    with pytest.raises(ConfigError, match="no kind 'wordpeice' here"):
        build(DATASETS, spec | {"tokenizer": {"kind": "wordpeice"}, "labels": "numbers",
                                "metric": "pearson"}).data()  # fmt: skip
    with pytest.raises(ValueError, match="length is at least 1 token"):
        build(DATASETS, spec | {"length": 0}).data()
    text_files.write(tmp_path / "train.conll", ["Ann\tO", "ran\tO", ""] * 20)
    spec = {"kind": "tags", "folder": str(tmp_path), "learnt": "train.conll"}
    with pytest.raises(TextError, match="have the tag O: there is nothing to learn; names are"):
        build(DATASETS, spec).data()


def test_a_stored_vocabulary_is_taken_as_it_is(tmp_path: Path) -> None:
    text_files.classes(tmp_path, 50)
    PIECES.save(tmp_path / "words")
    tokenizer = {"kind": "stored", "folder": str(tmp_path / "words")}
    spec = {"kind": "classes", "folder": str(tmp_path), "tokenizer": tokenizer}
    assert build(DATASETS, spec).data().words == PIECES


def test_batches_of_like_length_have_little_padding_and_miss_nobody() -> None:
    lengths = torch.randint(1, 500, (640,), generator=torch.Generator().manual_seed(0))

    def drawn(buckets: int, epochs: int = 1) -> torch.Tensor:
        given = {"pools": [torch.arange(640)], "seeds": [1], "batch": 8}
        draws = Draws(lengths=lengths, buckets=buckets, **given)
        return torch.stack([d.rows for d in islice(draws.from_step(0), epochs * draws.epoch)])

    def padding(rows: torch.Tensor) -> float:
        own = lengths[rows]
        return 1 - float(own.sum() / (own.max(1).values * rows.shape[1]).sum())

    assert padding(drawn(1)) > 0.3
    assert padding(drawn(8)) < 0.1
    assert len(drawn(8).unique()) == drawn(8).numel() > 580  # once an epoch, but for the last few
    assert set(drawn(8, 10).flatten().tolist()) == set(range(640))
