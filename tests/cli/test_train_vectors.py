"""``mnemic train vectors`` from the command line, and networks that start from its vectors."""

import os
import signal
from pathlib import Path

import pytest
import text_files
from app_runs import run, sets, start
from vector_files import ANIMALS, write_documents

from mnemic.checkpoint.vectors import CARD, VECTORS, WORDS, load_vectors
from mnemic.cli import plain_parser

SMALL = ("--width", 16, "--min-count", 2, "--epochs", 10, "--window", 3)


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_documents(tmp_path_factory.mktemp("documents"))


def test_vectors_are_learned_described_and_replaced_on_request(documents: Path, tmp_path: Path) -> None:
    command = ("train", "vectors", "--data", documents, "--out", tmp_path / "vectors", *SMALL)
    report = run(*command, "--json").json
    table = load_vectors(tmp_path / "vectors")
    assert sorted(path.name for path in (tmp_path / "vectors").iterdir()) == sorted([CARD, WORDS, VECTORS])
    assert (report["words"], report["width"], report["kind"]) == (len(table.words), 16, "skip-gram")
    assert report["words_read"] == sum(table.counts)
    assert report["neighbors"].keys() <= {*table.words}
    assert table.card["options"]["window"] == 3

    refused = run(*command)
    assert refused.code == 2
    assert "has word vectors already; give another --out, or --fresh" in refused.err
    first = (tmp_path / "vectors" / VECTORS).read_bytes()
    again = run(*command, "--fresh")
    assert again.code == 0
    assert f"--set model.width=16 --set model.init_vectors={tmp_path / 'vectors'}" in again.out
    assert (tmp_path / "vectors" / VECTORS).read_bytes() == first
    assert run(*command, "--fresh", "--seed", 1).code == 0
    assert (tmp_path / "vectors" / VECTORS).read_bytes() != first

    described = run("inspect", tmp_path / "vectors", "--json").json
    assert (described["words"], described["width"], described["whole"]) == (len(table.words), 16, True)
    assert described["card"]["seed"] == 1
    output = run("inspect", tmp_path / "vectors").out
    assert "width 16" in output
    assert "gensim" in output
    (tmp_path / "vectors" / WORDS).write_text("{}", encoding="utf-8")
    damaged = run("inspect", tmp_path / "vectors")
    assert damaged.code == 2
    assert "words.json was changed or cut short" in damaged.err


def test_a_classifier_starts_from_them_and_says_how_many_rows(documents: Path, tmp_path: Path) -> None:
    """Also where the vectors are a text file of others."""
    run("train", "vectors", "--data", documents, "--out", tmp_path / "vectors", *SMALL)
    rows = [f"the {name} sleeps\t{name in ANIMALS[:2]}" for name in ANIMALS * 20]
    text_files.write(tmp_path / "data" / "train.tsv", ["text\tlabel", *rows])
    tiny = sets("model.width=16", "model.encode.stack.depth=1", "train.epochs=1", 'data.tokenizer={kind="words"}')
    command = ("train", "bert-classes", "--data", tmp_path / "data", *tiny, "--device", "cpu", "--json")
    done = run(*command, *sets(f"model.init_vectors={tmp_path / 'vectors'}"), "--out", tmp_path / "run")
    assert done.code == 0, done.err
    assert done.json["vectors"] == {"filled": 5, "rows": 8}  # not "the", which is in no document
    assert f"word vectors of {tmp_path / 'vectors'}: 5 of 8 rows of the embedding" in done.err
    (tmp_path / "theirs.txt").write_text("the " + " ".join(["0.5"] * 16) + "\n", encoding="utf-8")
    theirs = run(*command, *sets(f"model.init_vectors={tmp_path / 'theirs.txt'}"), "--out", tmp_path / "other")
    assert theirs.json["vectors"] == {"filled": 1, "rows": 8}
    plain = run(*command, "--out", tmp_path / "plain")
    assert "vectors" not in plain.json
    narrow = sets(f"model.init_vectors={tmp_path / 'vectors'}", "model.width=8")
    refused = run(*command, *narrow, "--out", tmp_path / "narrow")
    assert refused.code == 2
    assert "have a width of 16, the embedding of this network 8" in refused.err
    assert not (tmp_path / "narrow" / "checkpoint").exists()


def test_another_hash_seed_gives_the_same_files(
    documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hash seed of this process is another one, random or set."""
    monkeypatch.setenv("PYTHONHASHSEED", "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1")
    process = start("train", "vectors", "--data", documents, "--out", tmp_path / "there", *SMALL)
    assert run("train", "vectors", "--data", documents, "--out", tmp_path / "here", *SMALL).code == 0
    process.communicate()
    assert process.returncode == 0
    for name in (CARD, WORDS, VECTORS):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()


def test_ctrl_c_leaves_nothing_behind(documents: Path, tmp_path: Path) -> None:
    command = ("train", "vectors", "--data", documents, "--out", tmp_path / "vectors", "--epochs", 100_000)
    process = start(*command)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("counting the words of")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1].startswith("stopped, and nothing was written; to go on: mnemic train vectors --data")
    assert list(tmp_path.iterdir()) == []


def test_mistakes_are_one_line(documents: Path, tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "a.md").write_text("a letter", encoding="utf-8")
    for arguments, message in (
        (("--data", tmp_path / "none"), "no file or folder"),
        (("--data", tmp_path / "letters"), "no corpus in the folder"),
        (("--data", documents, "--out", tmp_path / "letters"), "holds no word vectors, which would replace it"),
        (("--data", documents, "--field", "body"), "expected an object whose 'body' is a string"),
        (("--data", documents, "--kind", "gloves"), "no kind 'gloves' here"),
        (("--data", documents, "--width", 0), "skip-gram.width is a whole number from 1 on, not 0"),
        ((), "Missing option '--data'"),
    ):
        done = run("train", "vectors", "--out", tmp_path / "vectors", *arguments)
        assert done.code == 2
        assert done.err.splitlines()[-1].startswith("error: ")
        assert message in done.err
    assert not (tmp_path / "vectors").exists()


def test_two_words_are_one_command_and_recipes_are_still_recipes(
    documents: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--min-count" in run("train", "vectors", "--help").out
    assert run("help", "train", "vectors") == run("train", "vectors", "--help")
    assert "RECIPE" in run("train", "--help").out
    assert "no recipe 'vector'" in run("train", "vector").err
    out = tmp_path / "vectors"
    words = ["train", "vectors", "--data", documents, "--out", out, *SMALL, "--documents", 50]
    assert plain_parser.run([str(word) for word in words]) == 0
    assert load_vectors(out).card["corpus"]["max_documents"] == 50
    capsys.readouterr()
    with pytest.raises(SystemExit):
        plain_parser.run(["train", "--help"])
    assert "RECIPE" in capsys.readouterr().out
