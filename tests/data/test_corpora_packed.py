"""Packed sequences: the same batches and runs, and what is damaged is named."""

import json
import lzma
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import text_files
import torch
from app_runs import run, sets

from mnemic.data.corpora import CorpusFiles
from mnemic.data.corpora import packed_folder as packing
from mnemic.data.corpora.packed_folder import pack_folder, unpack_array
from mnemic.data.corpora.read_documents import CorpusError
from mnemic.data.corpora.sequence_folder import load_sequence_folder

TINY_BERT = (
    'data.tokenizer={kind="wordpiece", vocab=200}', "data.length=32", "model.width=16", "train.batch=16",
    "model.encode.stack.depth=1", "model.encode.stack.attention.heads=2", "train.steps=4", "train.matmul=float32",
)  # fmt: skip
SMALL = {"tokenizer": {"kind": "wordpiece", "vocab": 200}, "length": 32, "validation": 0.2}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same sequences, unpacked and packed."""
    folder = tmp_path_factory.mktemp("corpus")
    text_files.corpus(folder / "texts", 60)
    CorpusFiles(folder=str(folder / "texts"), cache=str(folder / "plain"), **SMALL).load()  # type: ignore[arg-type]
    pack_folder(folder / "plain", folder / "packed")
    return folder / "plain", folder / "packed"


def copy_packed(folders: tuple[Path, Path], folder: Path) -> Path:
    folder.mkdir()
    for path in folders[1].iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def test_packed_sequences_make_the_same_batches_to_the_bit(folders: tuple[Path, Path]) -> None:
    plain, packed = (CorpusFiles(folder=str(folder), **SMALL).load() for folder in folders)  # type: ignore[arg-type]
    assert packed.tokenizer == plain.tokenizer
    assert packed.sizes == plain.sizes
    uniforms = torch.rand(len(plain.train), 2, generator=torch.Generator().manual_seed(0))
    for first, second in ((plain.train, packed.train), (plain.validation, packed.validation)):
        rows = torch.arange(len(first)).flip(0)
        for batch, batch_of_packed in zip(first.batch(rows, uniforms[rows]), second.batch(rows, uniforms[rows])):
            assert batch is batch_of_packed or np.array_equal(batch, batch_of_packed)


def test_nothing_is_unpacked_to_the_disk(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    files = sorted((path.name, path.stat().st_mtime_ns) for path in folders[1].iterdir())
    monkeypatch.setattr("tempfile.mkdtemp", lambda *args, **kwargs: pytest.fail("a folder was made"))
    arrays = load_sequence_folder(folders[1]).splits["train"]
    assert not isinstance(arrays.tokens, np.memmap)
    assert sorted((path.name, path.stat().st_mtime_ns) for path in folders[1].iterdir()) == files
    assert not any(name.endswith(".bin") for name, _ in files)


@pytest.mark.parametrize("chunk_bytes", [1, 7, 2**20])
def test_arrays_of_any_size_go_through_chunks(
    chunk_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "CHUNK_BYTES", chunk_bytes)
    generator, source = np.random.default_rng(0), tmp_path / "source"
    arrays = {f"{size}.bin": generator.integers(0, 300, size).astype("<u2") for size in (0, 1, 2, 255)}
    source.mkdir()
    for name, array in arrays.items():
        (source / name).write_bytes(array.tobytes())
    (source / "corpus.json").write_text("{}", encoding="utf-8")
    reports: list[tuple[int, int]] = []
    pack_folder(source, tmp_path / "packed", lambda *report: reports.append(report))
    assert reports[-1] == (2 * 258, 2 * 258)
    assert reports == sorted(reports)
    digests = json.loads((tmp_path / "packed" / "corpus.json").read_text(encoding="utf-8"))["packed"]
    for name, array in arrays.items():
        unpacked = unpack_array(tmp_path / "packed" / name, "<u2", len(array), digests[name])
        assert np.array_equal(unpacked, array)


def test_ids_of_words_take_a_third_less_than_their_bytes(tmp_path: Path) -> None:
    """Of words as frequent as in texts (Zipf), drawn one by one: near their entropy."""
    generator, source = np.random.default_rng(0), tmp_path / "source"
    shares = 1 / np.arange(1, 10_001)
    shares /= shares.sum()
    tokens = (2 * generator.choice(10_000, 50_000, p=shares) + 1).astype("<u2")
    source.mkdir()
    (source / "train.tokens.bin").write_bytes(tokens.tobytes())
    (source / "corpus.json").write_text("{}", encoding="utf-8")
    pack_folder(source, tmp_path / "packed")
    entropy = -(shares * np.log2(shares)).sum()
    assert (tmp_path / "packed" / "train.tokens.bin.xz").stat().st_size * 8 / 50_000 < 1.12 * entropy


def cut(path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])


def flip_bit(path: Path, seed: int) -> None:
    content = bytearray(path.read_bytes())
    content[random.Random(seed).randrange(len(content))] ^= 1 << seed % 8
    path.write_bytes(content)


def replace_content(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(lzma.compress(change(lzma.decompress(path.read_bytes()))))


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (Path.unlink, "is missing: copy the folder again"),
    "empty": (partial(cut, share=0.0), "was cut short|not the file that was packed"),
    "half": (partial(cut, share=0.5), "is damaged or was cut short"),
    "cut": (partial(cut, share=0.999), "is damaged or was cut short"),
    "other": (partial(replace_content, change=lambda content: content[::-1]), "not the file that was packed"),
    "longer": (partial(replace_content, change=lambda content: content + b"00"), "not the file that was packed"),
    "shorter": (partial(replace_content, change=lambda content: content[:-2]), "not the file that was packed"),
    "no xz": (lambda path: path.write_bytes(b"hello"), "is damaged or was cut short"),
} | {f"bit {seed}": (partial(flip_bit, seed=seed), "is damaged|not the file that was packed") for seed in range(12)}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_named(damage: str, folders: tuple[Path, Path], tmp_path: Path) -> None:
    folder = copy_packed(folders, tmp_path / "packed")
    change, message = DAMAGES[damage]
    change(folder / "train.tokens.bin.xz")
    with pytest.raises(CorpusError, match=message) as caught:
        load_sequence_folder(folder)
    assert "train.tokens.bin.xz" in str(caught.value)


def test_a_length_that_was_changed_is_noticed(folders: tuple[Path, Path], tmp_path: Path) -> None:
    folder = copy_packed(folders, tmp_path / "packed")
    description = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
    for change in (1, -1):
        lengths = description["lengths"] | {"train": description["lengths"]["train"]}
        lengths["train"] = lengths["train"] | {"tokens": description["lengths"]["train"]["tokens"] + change}
        (folder / "corpus.json").write_text(json.dumps(description | {"lengths": lengths}), encoding="utf-8")
        with pytest.raises(CorpusError, match="not the file that was packed"):
            load_sequence_folder(folder)


def test_a_run_on_packed_sequences_is_the_run_on_the_others(tmp_path: Path) -> None:
    """From the command line: prepare, pack in one step or two, train; refuse what cannot be."""
    text_files.corpus(tmp_path / "texts", 60)
    tiny = sets(*TINY_BERT)
    prepare = ("data", "sequences", "bert-pretrain", *tiny)
    plain, packed, two_steps = (tmp_path / name for name in ("plain", "packed", "two-steps"))
    first = run(*prepare, "--data", tmp_path / "texts", "--out", plain, "--json").json
    second = run(*prepare, "--data", tmp_path / "texts", "--out", packed, "--pack", "--json").json
    third = run(*prepare, "--data", plain, "--out", two_steps, "--pack", "--json").json
    for report in (second, third):
        assert (report["tokens"], report["sequences"]) == (first["tokens"], first["sequences"])
    assert second["bytes"] == third["bytes"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["packed", "plain", "texts", "two-steps"]
    weights = []
    for folder in (plain, packed):
        out = tmp_path / f"run-{folder.name}"
        done = run("train", "bert-pretrain", *tiny, "--data", folder, "--out", out, "--device", "cpu")
        assert done.code == 0, done.err
        weights.append((out / "checkpoint" / "weights.safetensors").read_bytes())
    assert weights[0] == weights[1]
    for arguments, message in (
        (("--data", packed, "--out", tmp_path / "again", "--pack"), "packed is packed already: copy it"),
        (
            ("--data", tmp_path / "texts", "--out", packed, "--pack"),
            "is there already; remove it, or give another --out",
        ),
        (("--data", plain, "--out", tmp_path / "again"), "has sequences already: train on them, or give --pack"),
    ):
        refused = run(*prepare, *arguments)
        assert refused.code == 2
        assert message in refused.err
    assert not (tmp_path / "again").exists()
