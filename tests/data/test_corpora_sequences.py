"""From documents to stored sequences and batches: no token is lost or mixed up."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import text_files
import torch
from hypothesis import given
from hypothesis import strategies as st

from mnemic.data.corpora import CorpusFiles
from mnemic.data.corpora import batches as corpus_tensors
from mnemic.data.corpora.batches import make_corpus_dataset
from mnemic.data.corpora.formats import FORMATS, DocumentSpan, SequencePlan
from mnemic.data.corpora.make_sequences import SequenceMaker, assemble_sequence, group_into_blocks
from mnemic.data.corpora.read_documents import CorpusError
from mnemic.data.corpora.sequence_folder import SequenceArrays, SequenceFolderWriter, load_sequence_folder, token_dtype
from mnemic.data.corpora.tokens import TokenizedDocument, tokenize_document
from mnemic.models import IGNORE
from mnemic.recipe import ConfigError, build
from mnemic.text import TRAINERS

TEXTS = [f"The {n} dogs jumped. Did they? " * (n % 4) + "我爱北京。" * (n % 3) for n in range(24)]
TOKENIZER = TRAINERS["wordpiece"](TEXTS, vocab=80)
WORDPIECE = {"kind": "wordpiece", "vocab": 200}


def maker(kind: str, **options: int) -> SequenceMaker:
    sequence_format = build(FORMATS, {"kind": kind})
    return SequenceMaker(
        tokenizer=TOKENIZER, format=sequence_format, **{"max_tokens": 24, "block_tokens": 60, **options}
    )


def documents() -> list[TokenizedDocument]:
    """Tokenize the texts; some have no token."""
    return [tokenize_document(text, TOKENIZER) for text in TEXTS]


def test_a_plan_is_assembled_as_it_says() -> None:
    """A [SEP] has its span's segment; the first token starts a word."""
    document = TokenizedDocument(np.arange(10, 20, dtype=np.int32), np.arange(10) % 3 == 0, [5, 10])
    plan = SequencePlan((DocumentSpan(0, 0, 4), DocumentSpan(0, 4, 7)), (0, 1), 1)
    example = assemble_sequence(plan, [document], cls=2, sep=3)
    assert example.ids.tolist() == [2, 10, 11, 12, 13, 3, 14, 15, 16, 3]
    assert example.segments.tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]
    assert example.word_starts.tolist() == [bool(int(digit)) for digit in "1100111011"]
    assert example.follows == 1


@given(st.lists(st.integers(0, 30), max_size=30), st.integers(1, 40))
def test_blocks_are_bounded(sizes: list[int], room: int) -> None:
    tokenized = [TokenizedDocument(np.zeros(size, np.int32), np.zeros(size, bool), [size]) for size in sizes]
    blocks = list(group_into_blocks(tokenized, room))
    assert [len(document.ids) for block in blocks for document in block] == sizes
    assert all(sum(len(document.ids) for document in block[:-1]) < room for block in blocks)


@pytest.mark.parametrize("room", [1, 100, 10_000])
def test_no_token_is_lost_however_long_the_blocks(room: int) -> None:
    sequences = list(maker("full-sentences", block_tokens=room)(documents()))
    expected = Counter(number for text in documents() for number in text.ids.tolist())
    counts = Counter(number for sequence in sequences for number in sequence.ids.tolist())
    assert {
        number: count for number, count in counts.items() if number not in (TOKENIZER.cls, TOKENIZER.sep)
    } == expected


def test_what_is_made_is_the_same_each_time_and_shuffled() -> None:
    first, second = ([sequence.ids.tolist() for sequence in maker("doc-sentences")(documents())] for _ in "ab")
    assert first == second
    in_order = list(maker("doc-sentences", block_tokens=1)(documents()))
    assert first != [sequence.ids.tolist() for sequence in in_order]
    assert sorted(first) == sorted(sequence.ids.tolist() for sequence in in_order)


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_kept_is_what_was_made(kind: str, tmp_path: Path) -> None:
    """Batches are equal to the sequences, padded by hand."""
    sequences = list(maker(kind)(documents()))
    writer = SequenceFolderWriter(tmp_path / "kept", TOKENIZER)
    writer.write_split("train", iter(sequences))
    folder = writer.finish({"of": "these"})
    assert isinstance(folder.splits["train"].tokens, np.memmap)
    assert (folder.metadata, folder.tokenizer) == ({"of": "these"}, TOKENIZER)
    dataset = make_corpus_dataset(folder.splits["train"], TOKENIZER)
    assert dataset.lengths.tolist() == [len(sequence.ids) for sequence in sequences]
    batch = dataset.batch(torch.arange(len(sequences)))
    assert batch.tokens.shape == (len(sequences), max(len(sequence.ids) for sequence in sequences))
    for row, sequence in enumerate(sequences):
        size = len(sequence.ids)
        assert batch.mask[row].tolist() == [column < size for column in range(batch.mask.shape[1])]
        for name, expected in (("tokens", sequence.ids), ("segments", sequence.segments)):
            assert getattr(batch, name)[row, :size].tolist() == expected.tolist()
            assert not getattr(batch, name)[row, size:].any()
        is_special = np.isin(sequence.ids, [TOKENIZER.cls, TOKENIZER.sep])
        for name, expected in (("word_starts", sequence.word_starts), ("unmaskable", is_special)):
            assert getattr(batch, name)[row, :size].tolist() == expected.tolist()
            assert getattr(batch, name)[row, size:].all()
        assert batch.next_sentence_labels[row] == sequence.follows
    assert not set(batch.ordinary_ids.tolist()) & TOKENIZER.special_ids
    assert len(batch.ordinary_ids) == len(TOKENIZER) - len(TOKENIZER.special_ids)


def test_a_large_vocabulary_has_wider_tokens() -> None:
    assert (token_dtype(2**15), token_dtype(2**15 + 1)) == ("<u2", "<u4")
    tokens = np.array([2 * (2**15 - 1) + 1], dtype="<u2")  # the last id, at the start of a word
    size = np.array([1], dtype="<i4")
    sequences = load_like(tokens, size)
    batch = make_corpus_dataset(sequences, TOKENIZER).batch(torch.tensor([0]))
    assert (batch.tokens.item(), batch.word_starts.item()) == (2**15 - 1, True)


def load_like(tokens: np.ndarray, lengths: np.ndarray) -> SequenceArrays:
    return SequenceArrays(tokens, lengths, lengths, np.full(len(lengths), IGNORE, dtype="|i1"))


def test_keys_are_new_or_come_round() -> None:
    """Without copies mask seeds come from uniforms; with copies each row has that many."""
    lengths = np.full(50, 3, dtype="<i4")
    sequences = load_like(np.arange(150, dtype="<u2"), lengths)
    rows, generator = torch.arange(50), torch.Generator().manual_seed(0)
    draws = [torch.rand(50, 2, generator=generator) for _ in range(20)]
    fresh, static = (make_corpus_dataset(sequences, TOKENIZER, copies=copies) for copies in (0, 3))
    assert len({key for uniforms in draws for key in fresh.draw_mask_seeds(rows, uniforms).tolist()}) == 1000
    row_keys = [{static.draw_mask_seeds(rows, uniforms)[row].item() for uniforms in draws} for row in range(50)]
    assert all(len(keys) <= 3 for keys in row_keys)
    assert {key for keys in row_keys for key in keys} == set(range(150))
    assert fresh.draw_mask_seeds(rows, None).tolist() == list(range(50))


def test_a_batch_fits_into_its_room_and_no_more_is_asked_for() -> None:
    generator = np.random.default_rng(0)
    lengths = generator.integers(60, 129, 5000).astype("<i4")
    dataset = make_corpus_dataset(load_like(np.ones(lengths.sum(), dtype="<u2"), lengths), TOKENIZER)
    batch = dataset.batch(torch.arange(64), compact=False)
    assert batch.tokens.shape == (64, 128)
    assert batch.max_tokens == dataset.max_batch_tokens(64) < 0.9 * 64 * 128
    rows = torch.from_numpy(generator.integers(0, 5000, (2000, 64)))
    assert int(dataset.lengths[rows].sum(1).max()) <= batch.max_tokens
    assert dataset.batch(torch.arange(64)).max_tokens == 0


def test_what_does_not_fit_the_device_is_read_from_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = make_corpus_dataset(load_like(np.arange(40, dtype="<u2"), np.full(10, 4, "<i4")), TOKENIZER)
    with monkeypatch.context() as changed:
        changed.setattr(corpus_tensors, "MAX_RESIDENT_BYTES", 10)
        away = dataset.to("meta")
    assert (away.tokens.device.type, away.offsets.device.type) == ("cpu", "meta")
    assert dataset.to("meta").tokens.device.type == "meta"


# The dataset of a recipe -------------------------------------------------------------------------


def files(folder: Path, **options: object) -> CorpusFiles:
    defaults = {"folder": str(folder), "tokenizer": WORDPIECE, "length": 32, "validation": 0.2}
    return CorpusFiles(**(defaults | options))  # type: ignore[arg-type]


def test_files_are_parted_by_name_or_by_text(tmp_path: Path) -> None:
    text_files.corpus(tmp_path, 60)
    (tmp_path / "valid.txt").write_text("The ant in Rome eats leaves.", encoding="utf-8")
    named = files(tmp_path, validation_file="valid").load()
    assert named.tokenizer.decode(named.validation.batch(torch.tensor([0])).tokens[0].tolist()) == (
        "the ant in rome eats leaves."
    )
    by_text = files(tmp_path).load()
    assert len(by_text.validation) > 3
    assert len(named.train) < len(by_text.train) + len(by_text.validation)
    assert named.sizes == {"vocab": len(named.tokenizer), "max_length": 32}
    with pytest.raises(CorpusError, match="begins with 'dev'"):
        files(tmp_path, validation_file="dev").load()


def test_sequences_are_made_once_and_used_without_their_texts(tmp_path: Path) -> None:
    text_files.corpus(tmp_path / "texts", 60)
    folder = tmp_path / "kept"
    first = files(tmp_path / "texts", cache=str(folder)).load()
    stamp = (folder / "corpus.json").stat().st_mtime_ns
    again = files(tmp_path / "texts", cache=str(folder)).load()
    alone = files(folder).load()
    assert (folder / "corpus.json").stat().st_mtime_ns == stamp
    for data in (again, alone):
        assert torch.equal(data.train.tokens, first.train.tokens)
        assert data.tokenizer == first.tokenizer
    stored = files(folder, tokenizer={"kind": "stored", "folder": str(folder)}).load()
    assert stored.tokenizer == first.tokenizer
    assert len(files(folder).dataset("validation", first.tokenizer)) == len(first.validation)
    with pytest.raises(CorpusError, match="another vocabulary than the network"):
        files(folder).dataset("validation", TOKENIZER)


def test_other_sequences_are_not_taken_for_these(tmp_path: Path) -> None:
    text_files.corpus(tmp_path / "texts", 60)
    folder = str(tmp_path / "kept")
    files(tmp_path / "texts", cache=folder).load()
    with pytest.raises(CorpusError, match=r"another data\.length \(32, not 16\)"):
        files(Path(folder), length=16).load()
    with pytest.raises(CorpusError, match=r"another data\.validation"):
        files(tmp_path / "texts", cache=folder, validation=0.1).load()
    with pytest.raises(CorpusError, match=r"another data\.validation"):
        files(Path(folder), validation=0.1).load()  # not passed over, where only sequences are left
    text_files.corpus(tmp_path / "texts", 61)
    with pytest.raises(CorpusError, match=r"another data\.files"):
        files(tmp_path / "texts", cache=folder).load()


def test_a_harmed_folder_is_named(tmp_path: Path) -> None:
    writer = SequenceFolderWriter(tmp_path / "kept", TOKENIZER)
    writer.write_split("train", maker("full-sentences")(documents()))
    writer.finish({})
    path = tmp_path / "kept" / "train.tokens.bin"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(CorpusError, match="are not as long as they were"):
        load_sequence_folder(tmp_path / "kept")
    path.unlink()
    with pytest.raises(CorpusError, match=r"train\.tokens\.bin is missing"):
        load_sequence_folder(tmp_path / "kept")
    (tmp_path / "kept" / "corpus.json").write_text(json.dumps([]), encoding="utf-8")
    with pytest.raises(CorpusError, match="holds no sequences"):
        load_sequence_folder(tmp_path / "kept")


def test_mistakes_in_a_recipe_are_told(tmp_path: Path) -> None:
    text_files.corpus(tmp_path, 20)
    with pytest.raises(ConfigError, match="has no \\[MASK\\]"):
        files(tmp_path, tokenizer={"kind": "words"}).load()
    with pytest.raises(ConfigError, match=r"data\.copies is 0"):
        files(tmp_path, copies=-1)
    with pytest.raises(ConfigError, match="no kind 'paragraphs'"):
        files(tmp_path, format={"kind": "paragraphs"})
