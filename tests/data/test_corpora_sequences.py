"""From documents to kept sequences and batches: no token is lost, and nothing else taken for it."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import text_files
import torch
from hypothesis import given
from hypothesis import strategies as st

from mnemic.data.corpora import (
    FORMATS,
    CorpusError,
    CorpusFiles,
    Maker,
    Tokens,
    assemble,
    corpus_set,
    load_kept,
    tokenise,
)
from mnemic.data.corpora import batches as corpus_tensors
from mnemic.data.corpora.formats import Plan, Stretch
from mnemic.data.corpora.make_sequences import in_blocks
from mnemic.data.corpora.sequence_folder import Making, kind_of
from mnemic.models import IGNORE
from mnemic.recipe import ConfigError, build
from mnemic.text import TRAINERS

TEXTS = [f"The {n} dogs jumped. Did they? " * (n % 4) + "我爱北京。" * (n % 3) for n in range(24)]
TOKENIZER = TRAINERS["wordpiece"](TEXTS, vocab=80)
WORDPIECE = {"kind": "wordpiece", "vocab": 200}


def maker(kind: str, **options: int) -> Maker:
    made = build(FORMATS, {"kind": kind})
    return Maker(tokenizer=TOKENIZER, format=made, **{"most": 24, "room": 60, **options})


def documents() -> list[Tokens]:
    """Some of them without a token."""
    return [tokenise(text, TOKENIZER) for text in TEXTS]


def test_a_plan_is_assembled_as_it_says() -> None:
    """Types go to the [SEP] of their stretch; a stretch cut within a word begins one."""
    document = Tokens(np.arange(10, 20, dtype=np.int32), np.arange(10) % 3 == 0, [5, 10])
    plan = Plan((Stretch(0, 0, 4), Stretch(0, 4, 7)), (0, 1), 1)
    example = assemble(plan, [document], cls=2, sep=3)
    assert example.ids.tolist() == [2, 10, 11, 12, 13, 3, 14, 15, 16, 3]
    assert example.segments.tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]
    assert example.starts.tolist() == [bool(int(one)) for one in "1100111011"]
    assert example.fixed.tolist() == [bool(int(one)) for one in "1000010001"]
    assert example.follows == 1


@given(st.lists(st.integers(0, 30), max_size=30), st.integers(1, 40))
def test_blocks_are_bounded(sizes: list[int], room: int) -> None:
    own = [Tokens(np.zeros(size, np.int32), np.zeros(size, bool), [size]) for size in sizes]
    blocks = list(in_blocks(own, room))
    assert [len(one.ids) for block in blocks for one in block] == sizes
    assert all(sum(len(one.ids) for one in block[:-1]) < room for block in blocks)


@pytest.mark.parametrize("room", [1, 100, 10_000])
def test_no_token_is_lost_however_long_the_blocks(room: int) -> None:
    made = list(maker("full-sentences", room=room)(documents()))
    whole = Counter(number for text in documents() for number in text.ids.tolist())
    assert Counter(number for own in made for number in own.ids[~own.fixed].tolist()) == whole


def test_what_is_made_is_the_same_each_time_and_shuffled() -> None:
    one, two = ([own.ids.tolist() for own in maker("doc-sentences")(documents())] for _ in "ab")
    assert one == two
    in_order = list(maker("doc-sentences", room=1)(documents()))
    assert one != [own.ids.tolist() for own in in_order]
    assert sorted(one) == sorted(own.ids.tolist() for own in in_order)


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_kept_is_what_was_made(kind: str, tmp_path: Path) -> None:
    """Batch by batch equal to the sequences themselves, padded by hand."""
    made = list(maker(kind)(documents()))
    making = Making(tmp_path / "kept", TOKENIZER)
    making.add("train", iter(made))
    kept = making.finish({"of": "these"})
    assert isinstance(kept.parts["train"].tokens, np.memmap)
    assert (kept.about, kept.tokenizer) == ({"of": "these"}, TOKENIZER)
    own = corpus_set(kept.parts["train"], TOKENIZER)
    assert own.lengths.tolist() == [len(one.ids) for one in made]
    batch = own.batch(torch.arange(len(made)))
    assert batch.tokens.shape == (len(made), max(len(one.ids) for one in made))
    for row, one in enumerate(made):
        size = len(one.ids)
        assert batch.mask[row].tolist() == [place < size for place in range(batch.mask.shape[1])]
        for name, part in (("tokens", one.ids), ("segments", one.segments)):
            assert getattr(batch, name)[row, :size].tolist() == part.tolist()
            assert not getattr(batch, name)[row, size:].any()
        for name, part in (("starts", one.starts), ("fixed", one.fixed)):
            assert getattr(batch, name)[row, :size].tolist() == part.tolist()
            assert getattr(batch, name)[row, size:].all()
        assert batch.follows[row] == one.follows
    assert not set(batch.ordinary.tolist()) & TOKENIZER.specials
    assert len(batch.ordinary) == len(TOKENIZER) - len(TOKENIZER.specials)


def test_a_large_vocabulary_has_wider_tokens() -> None:
    assert (kind_of(2**15), kind_of(2**15 + 1)) == ("<u2", "<u4")
    most = np.array([2 * (2**15 - 1) + 1], dtype="<u2")  # the last id, at the start of a word
    size = np.array([1], dtype="<i4")
    sequences = load_like(most, size)
    batch = corpus_set(sequences, TOKENIZER).batch(torch.tensor([0]))
    assert (batch.tokens.item(), batch.starts.item()) == (2**15 - 1, True)


def load_like(tokens: np.ndarray, lengths: np.ndarray):  # type: ignore[no-untyped-def]
    from mnemic.data.corpora import Sequences

    return Sequences(tokens, lengths, lengths, np.full(len(lengths), IGNORE, dtype="|i1"))


def test_keys_are_new_or_come_round() -> None:
    """Without copies they hang on the rolls alone; with copies on the row and one of so many."""
    lengths = np.full(50, 3, dtype="<i4")
    sequences = load_like(np.arange(150, dtype="<u2"), lengths)
    rows, dice = torch.arange(50), torch.Generator().manual_seed(0)
    rolls = [torch.rand(50, 2, generator=dice) for _ in range(20)]
    fresh, static = (corpus_set(sequences, TOKENIZER, copies=copies) for copies in (0, 3))
    assert len({key for roll in rolls for key in fresh.keys(rows, roll).tolist()}) == 1000
    came = [{static.keys(rows, roll)[row].item() for roll in rolls} for row in range(50)]
    assert all(len(own) <= 3 for own in came)
    assert {key for own in came for key in own} == set(range(150))
    assert fresh.keys(rows, None).tolist() == list(range(50))


def test_a_batch_fits_into_its_room_and_no_more_is_asked_for() -> None:
    dice = np.random.default_rng(0)
    lengths = dice.integers(60, 129, 5000).astype("<i4")
    own = corpus_set(load_like(np.ones(lengths.sum(), dtype="<u2"), lengths), TOKENIZER)
    batch = own.batch(torch.arange(64), compact=False)
    assert batch.tokens.shape == (64, 128)
    assert batch.room == own.room(64) < 0.9 * 64 * 128
    rows = torch.from_numpy(dice.integers(0, 5000, (2000, 64)))
    assert int(own.lengths[rows].sum(1).max()) <= batch.room
    assert own.batch(torch.arange(64)).room == 0


def test_what_does_not_fit_the_device_is_read_from_the_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = corpus_set(load_like(np.arange(40, dtype="<u2"), np.full(10, 4, "<i4")), TOKENIZER)
    with monkeypatch.context() as changed:
        changed.setattr(corpus_tensors, "RESIDENT", 10)
        away = own.to("meta")
    assert (away.tokens.device.type, away.begins.device.type) == ("cpu", "meta")
    assert own.to("meta").tokens.device.type == "meta"


# The data set of a recipe ------------------------------------------------------------------------


def files(folder: Path, **options: object) -> CorpusFiles:
    whole = {"folder": str(folder), "tokenizer": WORDPIECE, "length": 32, "validation": 0.2}
    return CorpusFiles(**(whole | options))  # type: ignore[arg-type]


def test_files_are_parted_by_name_or_by_text(tmp_path: Path) -> None:
    text_files.corpus(tmp_path, 60)
    (tmp_path / "valid.txt").write_text("The ant in Rome eats leaves.", encoding="utf-8")
    named = files(tmp_path, held="valid").data()
    assert named.words.decode(named.validation.batch(torch.tensor([0])).tokens[0].tolist()) == (
        "the ant in rome eats leaves."
    )
    by_text = files(tmp_path).data()
    assert len(by_text.validation) > 3
    assert len(named.train) < len(by_text.train) + len(by_text.validation)
    assert named.sizes == {"vocab": len(named.words), "longest": 32}
    with pytest.raises(CorpusError, match="begins with 'dev'"):
        files(tmp_path, held="dev").data()


def test_sequences_are_made_once_and_used_without_their_texts(tmp_path: Path) -> None:
    text_files.corpus(tmp_path / "texts", 60)
    kept = tmp_path / "kept"
    made = files(tmp_path / "texts", kept=str(kept)).data()
    stamp = (kept / "corpus.json").stat().st_mtime_ns
    again = files(tmp_path / "texts", kept=str(kept)).data()
    alone = files(kept).data()
    assert (kept / "corpus.json").stat().st_mtime_ns == stamp
    for other in (again, alone):
        assert torch.equal(other.train.tokens, made.train.tokens)
        assert other.words == made.words
    stored = files(kept, tokenizer={"kind": "stored", "folder": str(kept)}).data()
    assert stored.words == made.words
    assert len(files(kept).asked("validation", made.words)) == len(made.validation)
    with pytest.raises(CorpusError, match="another vocabulary than the network"):
        files(kept).asked("validation", TOKENIZER)


def test_other_sequences_are_not_taken_for_these(tmp_path: Path) -> None:
    text_files.corpus(tmp_path / "texts", 60)
    kept = str(tmp_path / "kept")
    files(tmp_path / "texts", kept=kept).data()
    with pytest.raises(CorpusError, match=r"another data\.length \(32, not 16\)"):
        files(Path(kept), length=16).data()
    with pytest.raises(CorpusError, match=r"another data\.validation"):
        files(tmp_path / "texts", kept=kept, validation=0.1).data()
    with pytest.raises(CorpusError, match=r"another data\.validation"):
        files(Path(kept), validation=0.1).data()  # not passed over, where only sequences are left
    text_files.corpus(tmp_path / "texts", 61)
    with pytest.raises(CorpusError, match=r"another data\.files"):
        files(tmp_path / "texts", kept=kept).data()


def test_a_harmed_folder_is_named(tmp_path: Path) -> None:
    making = Making(tmp_path / "kept", TOKENIZER)
    making.add("train", maker("full-sentences")(documents()))
    making.finish({})
    path = tmp_path / "kept" / "train.tokens.bin"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(CorpusError, match="are not as long as they were"):
        load_kept(tmp_path / "kept")
    path.unlink()
    with pytest.raises(CorpusError, match=r"train\.tokens\.bin is missing"):
        load_kept(tmp_path / "kept")
    (tmp_path / "kept" / "corpus.json").write_text(json.dumps([]), encoding="utf-8")
    with pytest.raises(CorpusError, match="holds no kept sequences"):
        load_kept(tmp_path / "kept")


def test_mistakes_in_a_recipe_are_told(tmp_path: Path) -> None:
    text_files.corpus(tmp_path, 20)
    with pytest.raises(ConfigError, match="has no \\[MASK\\]"):
        files(tmp_path, tokenizer={"kind": "words"}).data()
    with pytest.raises(ConfigError, match=r"data\.copies is 0"):
        files(tmp_path, copies=-1)
    with pytest.raises(ConfigError, match="no kind 'sentences'"):
        files(tmp_path, format={"kind": "sentences"})
