"""Language modeling data: each word is one target, with context; and perplexity."""

import json
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
import text_files
import torch
from hypothesis import given
from hypothesis import strategies as st

from mnemic.data.language_modeling.batches import END, TokenDataset, join_documents, make_token_dataset
from mnemic.data.language_modeling.dataset import LanguageModelFiles
from mnemic.data.language_modeling.token_folder import METADATA_FILE, load_token_folder
from mnemic.data.text_tasks.examples import TextError
from mnemic.models import IGNORE, build_model
from mnemic.predict.perplexity import compute_perplexity, compute_unigram_perplexity, compute_word_losses
from mnemic.recipe import ConfigError
from mnemic.text import WordTokenizer

WORDS = WordTokenizer(["<pad>", "<unk>", "a", "b", "c", END])
MARK = WORDS.id_of(END)
KINDS = {
    "elman": {"kind": "recurrent", "recurrent": {"kind": "elman"}},
    "gru": {"kind": "recurrent", "recurrent": {"kind": "gru"}},
    "lstm": {"kind": "recurrent", "recurrent": {"kind": "lstm", "depth": 2}},
    "causal": {"kind": "causal"},
}


def spans_of(dataset: TokenDataset) -> tuple[torch.Tensor, ...]:
    """Return the start, length and context length of each span."""
    return dataset.starts, dataset.lengths, dataset.context_lengths


def some_words(*lengths: int, length: int = 8, context: int = 3) -> TokenDataset:
    generator = np.random.default_rng(0)
    documents = [generator.integers(1, 5, size).tolist() for size in lengths]
    return make_token_dataset(join_documents(documents, MARK), WORDS, max_tokens=length, context=context)


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=5),
    st.integers(2, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))),
)
def test_every_word_is_asked_for_once_within_its_document(sizes: list[int], shape: tuple[int, int]) -> None:
    length, context = shape
    dataset = some_words(*sizes, length=length, context=context)
    if not any(sizes):
        assert len(dataset) == 0
        return
    batch = dataset.batch(torch.arange(len(dataset)))
    is_target = batch.targets != IGNORE
    positions = dataset.starts[:, None] + torch.arange(is_target.shape[1]) + 1
    assert sorted(positions[is_target].tolist()) == list(range(1, len(dataset.ids)))
    assert dataset.num_targets == int(is_target.sum())
    assert batch.targets[is_target].tolist() == dataset.ids[positions[is_target]].tolist()
    ends = (dataset.ids == MARK).nonzero().flatten().tolist()
    for row, (first, count, before) in enumerate(zip(*(column.tolist() for column in spans_of(dataset)))):
        begin = max(end for end in ends if end <= first)
        assert first + count <= min(end for end in ends if end > first)  # one document
        read = int(is_target[row].nonzero()[0])  # words read before the first that is asked for
        assert read == before == (0 if first == begin else context)


def test_a_batch_may_have_a_fixed_width() -> None:
    dataset = some_words(5, 11)
    narrow, wide = (dataset.batch(torch.tensor([0, 2]), compact=flag) for flag in (True, False))
    assert wide.targets.shape == (2, 8)
    width = narrow.targets.shape[1]
    assert torch.equal(wide.targets[:, :width], narrow.targets)
    assert wide.targets[:, width:].eq(IGNORE).all()


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_perplexity_is_that_of_reading_word_by_word(kind: str) -> None:
    """Compare with predicting each word in turn from all words in its context."""
    model = {"width": 8, "encode": KINDS[kind], "respond": {"kind": "next-token"}}
    network = build_model(model, {"vocab": len(WORDS), "max_length": 8}).eval()
    dataset = some_words(3, 20, 8)
    total, known, count = 0.0, [], 0
    for first, length, before in zip(*(column.tolist() for column in spans_of(dataset))):
        for end in range(first + before, first + length):
            row = dataset.ids[None, first : end + 1].long()
            states = network.encode(row, torch.ones_like(row, dtype=torch.bool))
            log_probs = network.respond(None, None, states, row)[0, -1].log_softmax(-1)
            word = int(dataset.ids[end + 1])
            total, count = total - float(log_probs[word]), count + 1
            known += [] if word == WORDS.unknown else [-float(log_probs[word])]
    metrics = compute_perplexity(network, dataset)
    assert metrics["perplexity"] == pytest.approx(exp(total / count), rel=1e-5)
    assert metrics["known words"] == pytest.approx(exp(sum(known) / len(known)), rel=1e-5)
    assert metrics["unknown %"] == pytest.approx(100 * (count - len(known)) / count)
    assert dataset.num_unknown == count - len(known)
    assert compute_word_losses(network, dataset)[1].tolist() == dataset.ids[1:].tolist()


def test_guessing_by_frequency() -> None:
    train = make_token_dataset(join_documents([[2, 2, 3]], MARK), WORDS, max_tokens=4)
    test = make_token_dataset(join_documents([[2, 1]], MARK), WORDS, max_tokens=4)
    # One more than seen of a, b, END and of the three that were not: 3, 2, 2, 1, 1, 1 of 10.
    metrics = compute_unigram_perplexity(train, test, len(WORDS))
    assert metrics["perplexity"] == pytest.approx(exp(-(log(0.3) + log(0.1) + log(0.2)) / 3))
    assert metrics["known words"] == pytest.approx(exp(-(log(0.3) + log(0.2)) / 2))
    assert metrics["unknown %"] == pytest.approx(100 / 3)


def test_the_commonest_words_are_the_vocabulary(tmp_path: Path) -> None:
    folder = str(text_files.language_modeling(tmp_path))
    data = LanguageModelFiles(folder=folder, vocab=15, length=16, context=8, validation=0.2).load()
    assert set(data.tokenizer.vocabulary) == {"<pad>", "<unk>", END, *text_files.FILLER} | {
        word for word in data.tokenizer.vocabulary if word.startswith("train")
    }
    assert len(data.tokenizer) == 15
    assert data.test.num_unknown == sum(
        line.count("valid") for line in (tmp_path / "valid.jsonl").read_text("utf-8").splitlines()
    )
    assert len(data.validation) > 0
    with pytest.raises(ConfigError, match=r"data\.vocab is from 4 to 65536"):
        LanguageModelFiles(folder=".", vocab=70_000)


def test_a_test_file_is_what_is_tested_on_and_validation_is_then_a_file(tmp_path: Path) -> None:
    folder = text_files.language_modeling(tmp_path)
    rows = (folder / "valid.jsonl").read_text("utf-8").splitlines(keepends=True)
    alone = LanguageModelFiles(folder=str(folder), vocab=50)
    assert alone.evaluation_files() == ("", "valid")
    (folder / "test.jsonl").write_text("".join(rows[:2]), encoding="utf-8")
    assert alone.evaluation_files() == ("valid", "test")
    assert len(list(alone.read_split("test"))) == 2
    assert len(list(alone.read_split("validation"))) == len(rows)
    train = (folder / "train.jsonl").read_text("utf-8").splitlines()
    assert len(list(alone.read_split("train"))) == len(train)
    assert LanguageModelFiles(folder=str(folder), vocab=50, test_file="valid").evaluation_files() == ("", "valid")


def test_kept_words_take_the_place_of_the_files(tmp_path: Path) -> None:
    files = LanguageModelFiles(folder=str(text_files.language_modeling(tmp_path / "files")), vocab=20, documents=30)
    metadata = files.save_encoded(tmp_path / "kept")
    encoded = LanguageModelFiles(folder=str(tmp_path / "kept"))
    for value, loaded in zip(files.load(), encoded.load()):
        if isinstance(value, TokenDataset):
            assert torch.equal(value.ids, loaded.ids)
            assert all(torch.equal(*both) for both in zip(spans_of(value), spans_of(loaded)))
        else:
            assert value == loaded
    assert metadata["words"]["train"] == len(files.load().train.ids)
    for source in (files, encoded):
        dataset = source.dataset("test", files.load().tokenizer)
        assert torch.equal(dataset.ids, files.load().test.ids)
    with pytest.raises(TextError, match="another vocabulary"):
        encoded.dataset("test", WORDS)
    with pytest.raises(TextError, match="is there already"):
        files.save_encoded(tmp_path / "kept")
    with pytest.raises(TextError, match="encoded already"):
        encoded.save_encoded(tmp_path / "again")


def test_a_damaged_folder_is_named(tmp_path: Path) -> None:
    LanguageModelFiles(folder=str(text_files.language_modeling(tmp_path / "files")), vocab=20).save_encoded(
        tmp_path / "kept"
    )
    test_file, metadata = tmp_path / "kept" / "test.xz", tmp_path / "kept" / METADATA_FILE
    content = test_file.read_bytes()
    test_file.write_bytes(content[:-9])
    with pytest.raises(TextError, match=r"test\.xz cannot be unpacked"):
        load_token_folder(tmp_path / "kept")
    test_file.write_bytes((tmp_path / "kept" / "train.xz").read_bytes())
    with pytest.raises(TextError, match=r"test\.xz is not what"):
        load_token_folder(tmp_path / "kept")
    test_file.write_bytes(content)
    metadata.write_text(json.dumps(json.loads(metadata.read_text("utf-8")) | {"format": 9}), "utf-8")
    with pytest.raises(TextError, match="has format 9; expected 1"):
        load_token_folder(tmp_path / "kept")


@pytest.mark.parametrize(
    "encode", [{"kind": "transformer"}, {"kind": "recurrent", "recurrent": {"kind": "gru", "directions": "sum"}}]
)
def test_an_encoder_that_looks_ahead_cannot_say_the_next_word(encode: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="asks for words that this encoder has already read"):
        build_model({"width": 8, "encode": encode, "respond": {"kind": "next-token"}}, {"vocab": 9})
