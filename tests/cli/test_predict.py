"""``mnemic train``, ``evaluate`` and ``predict`` for texts, from the command line."""

import gzip
import json
from math import log, sqrt
from pathlib import Path
from typing import Any

import pytest
from app_runs import Result, model, run, sets
from sklearn.metrics import average_precision_score, roc_auc_score
from text_runs import TINY, files, run_of, trained

from mnemic.data import DATASETS
from mnemic.predict.windows import compute_class_logits
from mnemic.recipe import build


def parse_rows(result: Result) -> list[dict[str, Any]]:
    assert result.code == 0, result.err
    return [json.loads(line) for line in result.out.splitlines()]


def test_train_and_evaluate(tmp_path: Path) -> None:
    """Train by recipe name and folder; the report has metrics instead of errors."""
    folder = files("tags", tmp_path / "data")
    arguments = ("train", "bert-tags", "--data", folder, "--out", tmp_path / "run", "--device", "cpu")
    done = run(*arguments, *sets(*TINY, "train.epochs=2"))
    assert done.code == 0, done.err
    assert "validation        entity f1" in done.out
    assert f"mnemic predict --model {tmp_path / 'run'} FILE" in done.out
    assert "validation entity f1" in done.err
    again = run(*arguments, *sets(*TINY, "train.epochs=2"), "--json").json
    assert again["already_trained"]
    assert "validation_error" not in again  # metrics have names
    assert set(again["figures"]) == {"entity f1", "precision", "recall"}
    report = run("evaluate", tmp_path / "run", "--json").json
    assert report["texts"] == 60
    assert report["seen"] == report["total"] > 300
    assert set(report["figures"]) == {"entity f1", "precision", "recall"}
    output = run("evaluate", tmp_path / "run", "--split", "validation").out
    assert "entity f1" in output
    assert "30 texts" in output


def test_standard_input_is_read_once() -> None:
    """The second would be empty without an error."""
    done = run("predict", "--model", run_of("classes"), "-", "-", stdin="a lovely house\n")
    assert done.code == 2
    assert "standard input (-) can be read once" in done.err
    assert not done.out


def test_two_classes_have_curves(tmp_path: Path) -> None:
    plot = tmp_path / "curves.svg"
    report = run("evaluate", run_of("classes"), "--split", "train", "--plot", plot, "--json").json
    network = trained("classes")
    dataset = build(DATASETS, report["data"]).dataset("train", network.tokenizer, network.labels)
    logits = compute_class_logits(network.network, dataset)
    decisions = dataset.targets.numpy() == 1, (logits[:, 1] - logits[:, 0]).double().numpy()
    assert report["figures"]["AUROC"] == pytest.approx(100 * roc_auc_score(*decisions))
    assert report["figures"]["average precision"] == pytest.approx(100 * average_precision_score(*decisions))
    text = plot.read_text(encoding="utf-8")
    assert f"average precision {report['figures']['average precision']:.1f}" in text
    assert dataset.labels[1] in text
    refused = run("evaluate", run_of("numbers"), "--plot", tmp_path / "curves.png")
    assert refused.code == 2
    assert "--plot is for two classes" in refused.err


def test_labels_that_are_new_count_as_wrong_and_are_named(tmp_path: Path) -> None:
    row = {"text": "a lovely house", "label": "splendid"}
    (tmp_path / "test.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    done = run("evaluate", run_of("classes"), "--data", tmp_path, "--json")
    assert done.json["figures"]["accuracy"] == 0
    assert "1 of 1 labels were not in training" in done.err


@pytest.mark.parametrize("kind", ["classes", "pairs", "spans", "tags"])
def test_a_recipe_without_a_folder_says_what_it_needs(kind: str) -> None:
    done = run("train", f"bert-{kind}")
    assert done.code == 2
    assert "files: give their folder with --data DIR" in done.err


def test_lines_of_a_file_and_of_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a lovely house\n\nan awful train\n", encoding="utf-8")
    predictions = parse_rows(run("predict", "--model", run_of("classes"), path))
    assert [(row["file"], row["line"], row["label"]) for row in predictions] == [
        (str(path), 1, "good"),
        (str(path), 3, "bad"),
    ]
    assert predictions[0]["ranked"]["good"] == predictions[0]["probability"]
    assert (predictions[0]["seen"], predictions[0]["total"]) == (3, 3)
    for arguments in ((), ("-",)):
        (typed,) = parse_rows(run("predict", "--model", run_of("classes"), *arguments, stdin="a lovely house\n"))
        approximate = {name: pytest.approx(predictions[0][name], rel=1e-4) for name in ("ranked", "probability")}
        assert typed == predictions[0] | {"file": "-"} | approximate  # read alone, and beside another line


def test_whole_files_json_lines_questions_and_vectors(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("the old train ran in Lima past\na small house\n", encoding="utf-8")
    command = ("predict", "--model", run_of("spans"), "--question", "where was it ?")
    (prediction,) = parse_rows(run(*command, "--whole", path))
    assert prediction["answer"] == "Lima" == path.read_text("utf-8")[prediction["start"] : prediction["end"]]
    content = b"\xef\xbb\xbfa house\r\nthe old train ran in Lima past\r\n\r\n"
    (tmp_path / "b.txt").write_bytes(content)
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(content))
    for name in ("b.txt", "b.txt.gz"):  # line ends and marks as they are: offsets count them
        (prediction,) = parse_rows(run(*command, "--whole", tmp_path / name))
        assert content.decode("utf-8")[prediction["start"] : prediction["end"]] == prediction["answer"] == "Lima"
    first, second = parse_rows(run(*command, path))
    assert (first["answer"], second["answer"]) == ("Lima", None)
    json_line = json.dumps({"question": "where was it ?", "text": "it ran in Rome past a house"})
    (prediction,) = parse_rows(run("predict", "--model", run_of("spans"), "--jsonl", stdin=json_line + "\n"))
    assert prediction["answer"] == "Rome"
    pair = json.dumps({"text_a": "the old train lovely", "text_b": "is it lovely"})
    (tmp_path / "a.jsonl").write_text(pair + "\n", encoding="utf-8")
    (prediction,) = parse_rows(run("predict", "--model", run_of("pairs"), tmp_path / "a.jsonl"))
    assert prediction["label"] == "1"
    (prediction,) = parse_rows(run("predict", "--model", run_of("tags"), stdin="the house Ann ran past today\n"))
    assert prediction["entities"][0]["text"] == "Ann"
    (prediction,) = parse_rows(run("predict", "--model", run_of("tags"), "--embed", stdin="the house\n"))
    assert sum(x * x for x in prediction["vector"]) == pytest.approx(1, abs=1e-4)


def test_a_long_text_is_said_to_be_cut_only_if_that_was_asked_for() -> None:
    arguments, text = ("predict", "--model", run_of("classes")), "the old train " * 50 + "\n"
    (prediction,) = parse_rows(run(*arguments, stdin=text))
    assert prediction["seen"] == prediction["total"] == 150
    (prediction,) = parse_rows(run(*arguments, "--truncation", "first", stdin=text))
    assert (prediction["seen"], prediction["total"]) == (22, 150)
    done = run(*arguments, "--truncation", "error", stdin=text)
    assert (done.code, done.out) == (2, "")
    assert "a text has 150 tokens" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.txt"], "No such file or directory: nowhere.txt"),
        (["--jsonl"], "-, line 1: no valid JSON"),
        (["--words", "5"], "this network does not continue texts: leave out --words"),
        (["--beams", "3", "--embed"], "leave out --beams"),
        (["--truncation", "no"], "truncation is one of windows, first, error, not 'no'"),
    ],
)
def test_mistakes(arguments: list[str], message: str) -> None:
    done = run("predict", "--model", run_of("classes"), *arguments, stdin="a text\n")
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_tables_are_read_by_their_header(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("id\ttext\n7\ta lovely house\n", encoding="utf-8")
    (tmp_path / "a.csv").write_text('text,id\n"an awful, old house",7\n', encoding="utf-8")
    predictions = parse_rows(run("predict", "--model", run_of("classes"), tmp_path / "a.tsv", tmp_path / "a.csv"))
    assert [(row["label"], row["line"]) for row in predictions] == [("good", 2), ("bad", 2)]
    (tmp_path / "b.csv").write_text("sentence1,sentence2\nold lovely,is it awful\n", "utf-8")
    (predictions,) = parse_rows(run("predict", "--model", run_of("pairs"), tmp_path / "b.csv"))
    assert predictions["label"] == "0"


PAIR = '{"text_a": "a", "text_b": "b"}'


@pytest.mark.parametrize(
    ("kind", "arguments", "line", "message"),
    [
        ("classes", ["--jsonl"], PAIR, "one text at a time: expected text, or sentence; there"),
        ("classes", ["--jsonl"], '{"text": 5}', "-, line 1: text is a text, not 5"),
        ("tags", ["--jsonl"], PAIR, "-, line 1: this network reads one text at a time"),
        ("pairs", ["--jsonl"], '{"text": "a"}', "compares two texts: expected text_a and text_b"),
        ("spans", ["--jsonl"], '{"text": "a"}', "expected question and text; there is text"),
        ("pairs", [], "a text", "compares two texts: give JSON lines with text_a and text_b"),
        ("pairs", ["--embed", "--jsonl"], PAIR, "reads one text at a time"),
        ("classes", ["--question", "who?"], "a", "reads one text at a time: leave --question out"),
        ("tags", ["--question", "who?"], "a", "reads one text at a time: leave --question out"),
        ("pairs", ["--question", "who?"], "a", "compares two texts: leave --question out"),
        (
            "spans",
            ["--jsonl", "--question", "who?"],
            '{"question": "where?", "text": "a"}',
            "-, line 1 has a question of its own: leave --question out",
        ),
    ],
)
def test_texts_that_do_not_fit_the_network(kind: str, arguments: list[str], line: str, message: str) -> None:
    """Nothing is ignored silently; the error says what the network reads."""
    done = run("predict", "--model", run_of(kind), *arguments, stdin=line + "\n")
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_what_a_network_does_not_read_may_stand_beside(tmp_path: Path) -> None:
    line = json.dumps({"id": 3, "question": "who?", "text": "a lovely house", "label": "x"})
    (prediction,) = parse_rows(run("predict", "--model", run_of("classes"), "--jsonl", stdin=line + "\n"))
    assert prediction["label"] == "good"


def test_the_shipped_reader_answers_from_the_command_line(tmp_path: Path) -> None:
    text, question = "Bram Stoker wrote Dracula in 1897.", "Who wrote Dracula?"
    (tmp_path / "a.txt").write_text(text + "\n", encoding="utf-8")
    (prediction,) = parse_rows(run("predict", "--model", "reader", "--question", question, tmp_path / "a.txt"))
    assert prediction["answer"] == "Bram Stoker" == text[prediction["start"] : prediction["end"]]
    line = json.dumps({"question": question, "text": text})
    (same,) = parse_rows(run("predict", "--model", "reader", "--jsonl", stdin=line + "\n"))
    assert same["answer"] == "Bram Stoker"
    assert "give --question TEXT" in run("predict", "--model", "reader", stdin="a\n").err


def test_another_file_can_be_tested_on(tmp_path: Path) -> None:
    folder = files("classes", tmp_path / "data")
    (command,) = folder.glob("test.*")
    command.rename(command.with_stem("other"))
    arguments = ("evaluate", run_of("classes"), "--data", folder)
    assert "such as data.test_file=dev" in run(*arguments).err
    report = run(*arguments, "--set", "data.tested=other", "--json")
    assert json.loads(report.out)["figures"]["accuracy"] > 90
    assert "train.rate of a trained network cannot change here" in run(*arguments, "--set", "train.rate=1").err
    assert "leave out --tasks" in run(*arguments, "--tasks", "1").err


def test_questions_are_asked_for_and_stories_are_not_read() -> None:
    done = run("predict", "--model", run_of("spans"), stdin="a text\n")
    assert (done.code, "give --question TEXT" in done.err) == (2, True)
    done = run("predict", "--model", model(), stdin="a text\n")
    assert (done.code, "questions about stories" in done.err) == (2, True)


def test_binary_bytes_and_the_bar_stay_out_of_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"ok\n\xff\xfe\x00")
    done = run("predict", "--model", run_of("classes"), path)
    assert (done.code, done.out) == (2, "")
    assert "a.bin, line 2: not utf-8" in done.err


def test_help_has_an_example() -> None:
    assert "Example: mnemic predict" in " ".join(run("predict", "--help").out.split())
    assert "predict" in run("--help").out


def test_the_best_of_several_networks_has_wider_bounds() -> None:
    report = run("evaluate", run_of("classes"), "--best-of", "10", "--json").json
    low, high = report["bounds"]["accuracy"]
    wilson_low, wilson_high = report["intervals"]["accuracy"]
    radius = 100 * sqrt(log(2 * 10 / 0.05) / (2 * report["texts"]))
    assert low == pytest.approx(max(0, report["figures"]["accuracy"] - radius))
    assert low < wilson_low <= wilson_high <= high
    assert "best of 10, 95 %" in run("evaluate", run_of("classes"), "--best-of", "10").out
    assert "bounds" not in run("evaluate", run_of("classes"), "--json").json
    for kind, number, message in (("classes", "0", "from 1 on, not 0"), ("numbers", "3", "this data has none")):
        done = run("evaluate", run_of(kind), "--best-of", number)
        assert (done.code, message in done.err) == (2, True)
