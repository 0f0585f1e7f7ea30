"""Text datasets: targets are the right tokens, batches have whole texts, fair splits."""

import json
from itertools import islice
from pathlib import Path

import pytest
import text_files
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic.data import DATASETS
from mnemic.data.text_tasks.encode_windows import encode_labeled, encode_questions, encode_tagged, find_first_tokens
from mnemic.data.text_tasks.examples import LabeledExample, QuestionExample, TaggedExample, TextError
from mnemic.data.text_tasks.splits import split_off_validation
from mnemic.models import IGNORE
from mnemic.recipe import ConfigError, build
from mnemic.text import WindowOptions
from mnemic.text.tokenizers.trainers import train_wordpiece
from mnemic.train.sampler import BatchSampler

TEXT = "the old train to Oslo ran past Oslofjord and the small grey house today ."
PIECES = train_wordpiece([TEXT, "where did it run ?"], vocab=60)


def test_a_batch_holds_every_window_of_its_texts() -> None:
    """Without padding, a batch has the windows of its texts, in any order of rows."""
    texts = [LabeledExample(" ".join(TEXT.split()[:size]), None, "ab"[size % 2]) for size in (1, 13, 6)]
    dataset = encode_labeled(texts, PIECES, WindowOptions(12, 3), labels=["a", "b"])
    batch = dataset.batch(torch.tensor([2, 0, 1]))
    assert batch.targets.tolist() == [0, 1, 1]
    assert batch.owner.unique(return_counts=True)[1].tolist() == [
        int(dataset.first_window[row + 1] - dataset.first_window[row]) for row in (2, 0, 1)
    ]
    for row, number in enumerate((2, 0, 1)):
        ids = PIECES.encode(texts[number].text, special=False).ids
        windows = (batch.owner == row).nonzero().flatten().tolist()
        for window, start in zip(windows, range(0, 1000, 7)):
            seen = batch.inputs.tokens[window][batch.inputs.mask[window]].tolist()
            assert seen == [PIECES.cls, *ids[start : start + 10], PIECES.sep]
            inside = batch.inputs.tokens[window][batch.inputs.answer_mask[window]].tolist()
            assert inside == ids[start : start + 10]
    assert dataset.token_counts[:, 0].tolist() == dataset.token_counts[:, 1].tolist()
    assert dataset.lengths[1] == dataset.lengths.max()


def test_a_label_that_was_never_learnt_is_unknown() -> None:
    dataset = encode_labeled([LabeledExample("a", None, "z")], PIECES, WindowOptions(12, 3), labels=["a", "b"])
    assert dataset.targets.tolist() == [IGNORE]
    assert dataset.num_unknown == 1
    with pytest.raises(TextError, match="the label 'z' of 'a' is no number; for names of classes"):
        encode_labeled([LabeledExample("a", None, "z")], PIECES, WindowOptions(12, 3), labels=[], kind="numbers")


@given(start=st.integers(0, len(TEXT) - 1), size=st.integers(1, 20), room=st.integers(16, 60))
@settings(max_examples=60, deadline=None)
def test_the_answers_columns_quote_the_answer(start: int, size: int, room: int) -> None:
    """Only windows with the complete answer have a target; the others have none."""
    answer = TEXT[start : start + size]
    if not answer.strip():
        return
    start += len(answer) - len(answer.lstrip())
    example = QuestionExample("where ?", TEXT, (answer.strip(),), start, "1")
    dataset = encode_questions([example], PIECES, WindowOptions(room, 4))
    offsets = PIECES.encode(TEXT, special=False).offsets
    holding = 0
    for window, (first, last) in enumerate(dataset.targets.tolist()):
        if (first, last) == (0, 0):
            continue
        holding += 1
        shift = int(dataset.token_range[window, 0]) - int(dataset.text_start[window]) - 1
        quoted = TEXT[offsets[first + shift][0] : offsets[last + shift][1]]
        assert answer.strip() in quoted
        inside = dataset.answer_mask[int(dataset.window_starts[window]) :]
        assert inside[first - 1]
        assert inside[last - 1]
    assert holding or room < 60


def test_a_question_without_an_answer_asks_for_none() -> None:
    dataset = encode_questions([QuestionExample("where ?", TEXT, (), -1, "1")], PIECES, WindowOptions(16, 4))
    assert len(dataset.targets) > 1
    assert not dataset.targets.any()


def test_the_first_token_of_a_word_has_its_tag_and_every_word_is_asked_once() -> None:
    words = TEXT.split()
    word_spans, start = [], 0
    for word in words:
        word_spans.append((start, start + len(word)))
        start += len(word) + 1
    tags = tuple(f"B-{number}" for number in range(len(words)))
    dataset = encode_tagged([TaggedExample(TEXT, tuple(word_spans), tags)], PIECES, WindowOptions(12, 6), labels=tags)
    is_target = dataset.targets != IGNORE
    assert sorted(dataset.targets[is_target].tolist()) == list(range(len(words)))
    starts = [PIECES.encode(word, special=False).ids[0] for word in words]
    for token, tag in zip(dataset.tokens[is_target].tolist(), dataset.targets[is_target].tolist()):
        assert token == starts[tag]
    batch = dataset.batch(torch.tensor([0]))
    assert (batch.targets[~batch.inputs.answer_mask] == IGNORE).all()
    assert int((batch.targets != IGNORE).sum()) == len(words)


def test_a_word_without_a_token() -> None:
    """A WordPiece tokenizer drops control characters."""
    text = "old \u0007 house"
    offsets = PIECES.encode(text, special=False).offsets
    first = find_first_tokens(offsets, [(0, 3), (4, 5), (6, 11)])
    assert first[0] == 0
    assert first[1] is None
    assert first[2] is not None
    assert offsets[first[2]][0] == 6


# Splits and draws ------------------------------------------------------------------------------


def test_what_is_held_back_has_no_pattern_and_texts_stay_together() -> None:
    train, validation = split_off_validation(list(range(1000)), 0.1)
    assert sorted(train + validation) == list(range(1000))
    assert len(validation) == 100
    assert 30 < sum(number % 2 for number in validation) < 70  # of classes in turns, both
    assert 30 < sum(number < 500 for number in validation) < 70
    assert split_off_validation(list(range(1000)), 0.1) == (train, validation)
    groups = [n // 5 for n in range(100)]
    train, validation = split_off_validation(groups, 0.1, groups)
    assert not {*train} & {*validation}
    assert len(validation) == 10
    assert split_off_validation([1, 2, 3], 0.0) == ([1, 2, 3], [])
    assert len(split_off_validation([1, 2, 3], 0.1)[1]) == 1  # a few examples still tell something


@pytest.mark.parametrize("kind", ["classes", "pairs", "spans", "tags"])
def test_every_kind_gives_its_sets(kind: str, tmp_path: Path) -> None:
    """The test file is read on demand: training does not need it."""
    getattr(text_files, kind.replace("-", "_"))(tmp_path, 50)
    source = build(DATASETS, {"kind": kind, "folder": str(tmp_path)})
    removed_files = {path: path.read_bytes() for path in tmp_path.glob("[td]e*")}  # test or dev
    for path in removed_files:
        path.unlink()
    data = source.load()
    assert [len(dataset) for dataset in (data.train, data.validation)] == [45, 5]
    with pytest.raises(TextError, match="no file named"):
        source.dataset("test", data.tokenizer, data.labels)
    for path, content in removed_files.items():
        path.write_bytes(content)
    assert data.sizes["vocab"] == len(data.tokenizer)
    assert data.sizes.get("classes", 0) == len(data.labels)
    assert len(source.dataset("test", data.tokenizer, data.labels)) == 60
    again = source.dataset("train", data.tokenizer, data.labels)
    assert torch.equal(again.tokens, data.train.tokens)
    assert torch.equal(again.targets, data.train.targets)
    assert torch.equal(data.train.to("cpu").tokens, data.train.tokens)
    with pytest.raises(ConfigError, match=r"data\.validation is a share"):
        build(DATASETS, {"kind": kind, "folder": str(tmp_path), "validation": 1.0}).load()


def test_files_of_their_own_for_validation_and_none_for_a_test(tmp_path: Path) -> None:
    text_files.classes(tmp_path, 50)
    spec = {"kind": "classes", "folder": str(tmp_path), "validation_file": "test", "test_file": ""}
    data = build(DATASETS, spec).load()
    assert [len(dataset) for dataset in (data.train, data.validation)] == [50, 60]
    assert not len(build(DATASETS, spec).dataset("test", data.tokenizer, data.labels))


def test_classes_of_lines_that_begin_with_their_label(tmp_path: Path) -> None:
    for name in ("train", "dev", "test"):
        lines = [f"{label} a {word} film" for label, word in ((0, "dull"), (1, "fine")) for _ in range(9)]
        (tmp_path / f"stsa.fine.{name}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = {f"{key}_file": f"stsa.fine.{name}" for key, name in (("train", "train"), ("validation", "dev"))}
    spec = {"kind": "classes", "folder": str(tmp_path), "label_first": True, "test_file": "stsa.fine.test", **files}
    data = build(DATASETS, spec).load()
    assert (len(data.train), len(data.validation), data.labels) == (18, 18, ("0", "1"))
    for other in ({"columns": {"text": "x"}}, {"kind": "pairs"}):
        with pytest.raises(TextError, match="label_first is for lines of one text without columns"):
            build(DATASETS, spec | other)


def test_data_that_cannot_be_learnt(tmp_path: Path) -> None:
    rows = [json.dumps({"text": "x y", "label": 1})] * 20
    text_files.write(tmp_path / "train.jsonl", rows)
    spec = {"kind": "classes", "folder": str(tmp_path), "test_file": "train"}
    with pytest.raises(TextError, match="all training texts have the label '1'; two are needed"):
        build(DATASETS, spec).load()
    with pytest.raises(TextError, match="labels that are numbers is pearson or spearman"):
        build(DATASETS, spec | {"labels": "numbers"}).load()
    with pytest.raises(ConfigError, match="no kind 'wordpeice' here"):
        build(DATASETS, spec | {"tokenizer": {"kind": "wordpeice"}, "labels": "numbers",
                                "metric": "pearson"}).load()  # fmt: skip
    with pytest.raises(ValueError, match="length is at least 1 token"):
        build(DATASETS, spec | {"length": 0}).load()
    text_files.write(tmp_path / "train.conll", ["Ann\tO", "ran\tO", ""] * 20)
    spec = {"kind": "tags", "folder": str(tmp_path), "train_file": "train.conll"}
    with pytest.raises(TextError, match="have the tag O: there is nothing to learn; names are"):
        build(DATASETS, spec).load()


def test_a_stored_vocabulary_is_taken_as_it_is(tmp_path: Path) -> None:
    text_files.classes(tmp_path, 50)
    PIECES.save(tmp_path / "words")
    tokenizer = {"kind": "stored", "folder": str(tmp_path / "words")}
    spec = {"kind": "classes", "folder": str(tmp_path), "tokenizer": tokenizer}
    assert build(DATASETS, spec).load().tokenizer == PIECES


def test_batches_of_like_length_have_little_padding_and_miss_nobody() -> None:
    lengths = torch.randint(1, 500, (640,), generator=torch.Generator().manual_seed(0))

    def draw_rows(buckets: int, epochs: int = 1) -> torch.Tensor:
        options = {"pools": [torch.arange(640)], "seeds": [1], "batch_size": 8}
        sampler = BatchSampler(lengths=lengths, num_buckets=buckets, **options)
        return torch.stack([d.rows for d in islice(sampler.iterate_from(0), epochs * sampler.steps_per_epoch)])

    def padding(rows: torch.Tensor) -> float:
        batch_lengths = lengths[rows]
        return 1 - float(batch_lengths.sum() / (batch_lengths.max(1).values * rows.shape[1]).sum())

    assert padding(draw_rows(1)) > 0.3
    assert padding(draw_rows(8)) < 0.1
    assert len(draw_rows(8).unique()) == draw_rows(8).numel() > 580  # once an epoch, but for the last few
    assert set(draw_rows(8, 10).flatten().tolist()) == set(range(640))
