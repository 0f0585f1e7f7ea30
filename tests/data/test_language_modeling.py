"""Running text: each word asked for once, from the same context; and what perplexity counts."""

import json
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
import text_files
import torch
from hypothesis import given
from hypothesis import strategies as st

from mnemic.data.language_modeling.batches import END, WordSet, joined, word_set
from mnemic.data.language_modeling.dataset import WordFiles
from mnemic.data.language_modeling.token_folder import ABOUT, load_kept
from mnemic.data.text_tasks.examples import TextError
from mnemic.models import IGNORE, assemble
from mnemic.predict.perplexity import language_figures, losses, unigram_figures
from mnemic.recipe import ConfigError
from mnemic.text import Words

WORDS = Words(["<pad>", "<unk>", "a", "b", "c", END])
MARK = WORDS.id_of(END)
KINDS = {
    "elman": {"kind": "recurrent", "recurrent": {"kind": "elman"}},
    "gru": {"kind": "recurrent", "recurrent": {"kind": "gru"}},
    "lstm": {"kind": "recurrent", "recurrent": {"kind": "lstm", "depth": 2}},
    "causal": {"kind": "causal"},
}


def some_words(*lengths: int, length: int = 8, context: int = 3) -> WordSet:
    dice = np.random.default_rng(0)
    documents = [dice.integers(1, 5, size).tolist() for size in lengths]
    return word_set(joined(documents, MARK), WORDS, length=length, context=context)


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=5),
    st.integers(2, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))),
)
def test_every_word_is_asked_for_once_within_its_document(
    sizes: list[int], shape: tuple[int, int]
) -> None:
    length, context = shape
    own = some_words(*sizes, length=length, context=context)
    if not any(sizes):
        assert len(own) == 0
        return
    batch = own.batch(torch.arange(len(own)))
    asked = batch.targets != IGNORE
    places = own.rows.first[:, None] + torch.arange(asked.shape[1]) + 1
    assert sorted(places[asked].tolist()) == list(range(1, len(own.ids)))
    assert own.asked == int(asked.sum())
    assert batch.targets[asked].tolist() == own.ids[places[asked]].tolist()
    ends = (own.ids == MARK).nonzero().flatten().tolist()
    for row, (first, count, before) in enumerate(zip(*(part.tolist() for part in own.rows))):
        begin = max(end for end in ends if end <= first)
        assert first + count <= min(end for end in ends if end > first)  # one document
        read = int(asked[row].nonzero()[0])  # words read before the first that is asked for
        assert read == before == (0 if first == begin else context)


def test_a_batch_may_have_a_fixed_width() -> None:
    own = some_words(5, 11)
    narrow, wide = (own.batch(torch.tensor([0, 2]), compact=flag) for flag in (True, False))
    assert wide.targets.shape == (2, 8)
    width = narrow.targets.shape[1]
    assert torch.equal(wide.targets[:, :width], narrow.targets)
    assert wide.targets[:, width:].eq(IGNORE).all()


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_perplexity_is_that_of_reading_word_by_word(kind: str) -> None:
    """The slow twin: for each word, read what may be read of its document, and look at the last."""
    model = {"width": 8, "encode": KINDS[kind], "respond": {"kind": "next"}}
    network = assemble(model, {"vocab": len(WORDS), "longest": 8}).eval()
    own = some_words(3, 20, 8)
    total, known, count = 0.0, [], 0
    for first, length, before in zip(*(part.tolist() for part in own.rows)):
        for end in range(first + before, first + length):
            row = own.ids[None, first : end + 1].long()
            states = network.encode(row, torch.ones_like(row, dtype=torch.bool))
            chance = network.respond(None, None, states, row)[0, -1].log_softmax(-1)
            word = int(own.ids[end + 1])
            total, count = total - float(chance[word]), count + 1
            known += [] if word == WORDS.unknown else [-float(chance[word])]
    found = language_figures(network, own)
    assert found["perplexity"] == pytest.approx(exp(total / count), rel=1e-5)
    assert found["known words"] == pytest.approx(exp(sum(known) / len(known)), rel=1e-5)
    assert found["unknown %"] == pytest.approx(100 * (count - len(known)) / count)
    assert own.unknown == count - len(known)
    assert losses(network, own)[1].tolist() == own.ids[1:].tolist()


def test_guessing_by_frequency() -> None:
    train = word_set(joined([[2, 2, 3]], MARK), WORDS, length=4)
    test = word_set(joined([[2, 1]], MARK), WORDS, length=4)
    # One more than seen of a, b, END and of the three that were not: 3, 2, 2, 1, 1, 1 of 10.
    found = unigram_figures(train, test, len(WORDS))
    assert found["perplexity"] == pytest.approx(exp(-(log(0.3) + log(0.1) + log(0.2)) / 3))
    assert found["known words"] == pytest.approx(exp(-(log(0.3) + log(0.2)) / 2))
    assert found["unknown %"] == pytest.approx(100 / 3)


def test_the_commonest_words_are_the_vocabulary(tmp_path: Path) -> None:
    place = str(text_files.words(tmp_path))
    data = WordFiles(folder=place, vocab=15, length=16, context=8, validation=0.2).data()
    assert set(data.words.words) == {"<pad>", "<unk>", END, *text_files.FILLER} | {
        word for word in data.words.words if word.startswith("train")
    }
    assert len(data.words) == 15
    assert data.test.unknown == sum(
        line.count("valid") for line in (tmp_path / "valid.jsonl").read_text("utf-8").splitlines()
    )
    assert len(data.validation) > 0
    with pytest.raises(ConfigError, match=r"data\.vocab is from 4 to 65536"):
        WordFiles(folder=".", vocab=70_000)


def test_a_test_file_is_what_is_tested_on_and_validation_is_then_a_file(tmp_path: Path) -> None:
    place = text_files.words(tmp_path)
    rows = (place / "valid.jsonl").read_text("utf-8").splitlines(keepends=True)
    alone = WordFiles(folder=str(place), vocab=50)
    assert alone.files() == ("", "valid")
    (place / "test.jsonl").write_text("".join(rows[:2]), encoding="utf-8")
    assert alone.files() == ("valid", "test")
    assert len(list(alone.told("test"))) == 2
    assert len(list(alone.told("validation"))) == len(rows)
    train = (place / "train.jsonl").read_text("utf-8").splitlines()
    assert len(list(alone.told("train"))) == len(train)
    assert WordFiles(folder=str(place), vocab=50, tested="valid").files() == ("", "valid")


def test_kept_words_take_the_place_of_the_files(tmp_path: Path) -> None:
    files = WordFiles(folder=str(text_files.words(tmp_path / "files")), vocab=20, documents=30)
    told = files.keep(tmp_path / "kept")
    kept = WordFiles(folder=str(tmp_path / "kept"))
    for one, other in zip(files.data(), kept.data()):
        if isinstance(one, WordSet):
            assert torch.equal(one.ids, other.ids)
            assert all(torch.equal(*both) for both in zip(one.rows, other.rows))
        else:
            assert one == other
    assert told["words"]["train"] == len(files.data().train.ids)
    for source in (files, kept):
        asked = source.asked("test", files.data().words)
        assert torch.equal(asked.ids, files.data().test.ids)
    with pytest.raises(TextError, match="another vocabulary"):
        kept.asked("test", WORDS)
    with pytest.raises(TextError, match="is there already"):
        files.keep(tmp_path / "kept")
    with pytest.raises(TextError, match="numbered already"):
        kept.keep(tmp_path / "again")


def test_a_damaged_folder_is_named(tmp_path: Path) -> None:
    WordFiles(folder=str(text_files.words(tmp_path / "files")), vocab=20).keep(tmp_path / "kept")
    part, about = tmp_path / "kept" / "test.xz", tmp_path / "kept" / ABOUT
    whole = part.read_bytes()
    part.write_bytes(whole[:-9])
    with pytest.raises(TextError, match=r"test\.xz cannot be unpacked"):
        load_kept(tmp_path / "kept")
    part.write_bytes((tmp_path / "kept" / "train.xz").read_bytes())
    with pytest.raises(TextError, match=r"test\.xz is not what"):
        load_kept(tmp_path / "kept")
    part.write_bytes(whole)
    about.write_text(json.dumps(json.loads(about.read_text("utf-8")) | {"format": 9}), "utf-8")
    with pytest.raises(TextError, match="has format 9; expected 1"):
        load_kept(tmp_path / "kept")


@pytest.mark.parametrize(
    "encode",
    [
        {"kind": "transformer"},
        {"kind": "recurrent", "recurrent": {"kind": "gru", "directions": "sum"}},
    ],
)
def test_an_encoder_that_looks_ahead_cannot_say_the_next_word(encode: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="asks for words that this encoder has already read"):
        assemble({"width": 8, "encode": encode, "respond": {"kind": "next"}}, {"vocab": 9})
