"""Asking, evaluating and inspecting a trained network."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from app_runs import STORY, copy_of_model, model, run
from matplotlib import image

from mnemic.cli.render.colormap import pick_weight_colors
from mnemic.cli.render.evidence_table import format_weight
from mnemic.cli.render.plot_story import MISSING_FONT_NOTE, plot_story
from mnemic.evaluate.intervals import bound_best, wilson_interval
from mnemic.predict import SentenceEvidence, StoryAnswer

KITCHEN = "Mary travelled to the kitchen."


def ask(*arguments: object, story: str = STORY) -> tuple[str, dict[str, Any]]:
    """Ask a question; return the printed output and the JSON."""
    command = ("story", "ask", "--model", model(), "--story", "-", *arguments)
    output, report = run(*command, stdin=story), run(*command, "--json", stdin=story)
    assert output.code == report.code == 0
    return output.out, report.json


def test_the_answer_and_what_it_was_read_from() -> None:
    output, report = ask("Where is Mary?")
    assert report["answer"] == "kitchen"
    assert report["probability"] == report["ranked"][0]["probability"] > 0.5
    assert max(report["evidence"], key=lambda evidence: max(evidence["weights"]))["text"] == KITCHEN
    assert [evidence["sentence"] for evidence in report["evidence"]] == [0, 1, 2]
    assert "kitchen" in output
    assert KITCHEN in output
    assert all(f"hop {hop}" in output for hop in (1, 2, 3))


@pytest.mark.parametrize(
    ("question", "story", "message"),
    [
        ("?", STORY, "knows no word of the question; this is a guess"),
        ("Where is Mary?", f"Mary {'went ' * 40}home.\n", "longer than any in training"),
    ],
)
def test_what_cannot_be_trusted_is_said(question: str, story: str, message: str) -> None:
    _, report = ask(question, story=story)
    assert any(message in note for note in report["notes"])


def test_a_story_cannot_command_the_terminal() -> None:
    output, _ = ask("Where is Mary?", story=f"Mary \x1b]0;pwned\x07went \x1b[31mhome.\n{STORY}")
    assert "\x1b" not in output
    assert "\x07" not in output


def test_a_sentence_without_end_can_be_drawn(tmp_path: Path) -> None:
    ask("Where is Mary?", "--plot", tmp_path / "long.png", story=f"{'Mary ' * 20000}\n{STORY}")
    assert image.imread(tmp_path / "long.png").shape[0] < 1500


def test_a_story_from_a_file_from_words_and_from_both(tmp_path: Path) -> None:
    path = tmp_path / "story.txt"
    path.write_text("1 John moved to the office.\n2 Where is John?\toffice\t1\n", encoding="utf-8")
    command = ("story", "ask", "--model", model(), "--json", "Where is Mary?")
    sentence_options = ("--sentence", "Mary went to the garden.", "--sentence", KITCHEN)
    both = run(*command, "--story", path, *sentence_options).json
    assert [evidence["text"] for evidence in both["evidence"]] == ["John moved to the office.", *sentence_options[1::2]]
    assert run(*command, *sentence_options).json["answer"] == both["answer"] == "kitchen"


def test_the_most_read_sentences_are_shown_unless_all_are_asked_for() -> None:
    story = "".join(f"{name} went to the office.\n" for name in ["John", "Daniel"] * 4)
    output, _ = ask("Where is Mary?", story=f"{KITCHEN}\n{story}John moved to the garden.\n")
    all_sentences, _ = ask("Where is Mary?", "--all", story=f"{KITCHEN}\n{story}John moved to the garden.\n")
    assert KITCHEN in output
    assert "2 more sentences were read less; --all shows them" in output
    assert (output.count("went to the office."), all_sentences.count("went to the office.")) < (8, 9)
    assert all_sentences.count("went to the office.") == 8


def test_a_weight_is_the_darker_the_larger_it_is() -> None:
    grounds = [sum(pick_weight_colors(weight).background) for weight in (0.0, 0.1, 0.5, 1.0)]
    assert grounds == sorted(grounds, reverse=True)
    assert format_weight(0.001).text == "·"
    assert format_weight(0.01).text == "0.01"
    assert "on #" in str(format_weight(0.5).style)


def answer_about(*sentences: str) -> StoryAnswer:
    weights = (1 / len(sentences), 0.0)
    evidence = tuple(SentenceEvidence(number, text, weights) for number, text in enumerate(sentences))
    ranked = (("office", 0.9), ("garden", 0.1))
    return StoryAnswer("office", 0.9, ranked, evidence, len(sentences), len(sentences) + 2, ())


def test_a_picture_grows_with_its_sentences_and_cuts_none_off(tmp_path: Path) -> None:
    """The edges stay white, however long the sentences are."""
    shapes = []
    for number, sentences in enumerate((["Go."], ["Go."] * 30, ["a $b$ c_d " * 20, "W" * 150])):
        path = tmp_path / f"{number}.png"
        assert plot_story(answer_about(*sentences), "Where is it? " * (5 * number + 1), path) == []
        pixels = image.imread(path)[..., :3]
        assert (pixels[:8] == 1).all()
        assert (pixels[-8:] == 1).all()
        assert (pixels[:, :8] == 1).all()
        assert (pixels[:, -8:] == 1).all()
        shapes.append(pixels.shape[:2])
    assert shapes[1][0] > 4 * shapes[0][0]
    assert shapes[2][1] > shapes[0][1]


def test_a_picture_from_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "read.svg"
    output, report = ask("Where is Mary?", "--plot", path)
    assert report["plot"] == str(path)
    assert f"drawn: {path}" in output
    assert all(text in path.read_text(encoding="utf-8") for text in STORY.splitlines())
    wrong = run("story", "ask", "--model", model(), "--sentence", KITCHEN, "Who?", "--plot", "read.doc")
    assert wrong.code == 2
    assert "a file that ends in .png, .svg, .pdf, not 'read.doc'" in wrong.err


def test_of_a_long_story_the_most_read_sentences_are_drawn(tmp_path: Path) -> None:
    path = tmp_path / "read.svg"
    evidence = tuple(SentenceEvidence(n, f"Told {n}.", (n / 1000,)) for n in range(400))
    plot_story(replace(answer_about("Go."), evidence=evidence[::-1]), "Where?", path)
    svg = path.read_text(encoding="utf-8")
    assert "Of 400 sentences the 150 most read are drawn." in svg
    assert ("Told 249." in svg, "Told 250." in svg, "Told 399." in svg) == (False, True, True)


def test_characters_without_a_font_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemic.cli.render.plot_story.CHINESE_FONTS", ())
    assert plot_story(answer_about("玛丽去了厨房。"), "玛丽在哪里？", tmp_path / "a.png") == [MISSING_FONT_NOTE]


def test_evaluate_each_split() -> None:
    reports = {split: run("evaluate", model(), "--split", split, "--json").json
              for split in ("test", "validation", "train")}  # fmt: skip
    assert {split: report["questions"]["1"] for split, report in reports.items()} == {
        "test": 1000,
        "validation": 100,
        "train": 900,
    }
    assert all(report["mean_error"] == report["per_task"]["1"] < 5 for report in reports.values())
    assert all(report["failed"] == 0 for report in reports.values())


def test_the_error_of_a_task_has_an_interval_of_its_questions() -> None:
    report = run("evaluate", model(), "--split", "validation", "--best-of", "10", "--json").json
    share = report["per_task"]["1"] / 100
    assert report["intervals"] == {"1": pytest.approx([100 * end for end in wilson_interval(share, 100)])}
    assert report["bounds"] == {"1": pytest.approx([100 * end for end in bound_best(share, 100, 10)])}
    printed = run("evaluate", model(), "--split", "validation", "--best-of", "10").out
    assert "95 % interval" in printed
    assert "best of 10, 95 %" in printed
    assert "bounds" not in run("evaluate", model(), "--split", "validation", "--json").json


def test_evaluate_on_files_says_what_training_said(tmp_path: Path) -> None:
    """Files of the same stories give the same error as in training."""
    for split in ("train", "test"):
        arguments = ("--task", "1-2", "--count", "1000", "--split", split, "--out", tmp_path)
        assert run("data", "stories", *arguments).code == 0
    from_files = run("evaluate", model(), "--data", tmp_path, "--json").json
    generated = run("evaluate", model(), "--json").json
    assert from_files["per_task"] == generated["per_task"]
    validation = run("evaluate", model(), "--data", tmp_path, "--split", "validation", "--json")
    log = run("inspect", model(), "--json").json["log"]
    assert validation.json["mean_error"] == pytest.approx(log[-1]["validation"])
    output = run("evaluate", model(), "--data", tmp_path).out
    assert "single-supporting-fact" in output
    assert "0 of 1 tasks failed (over 5 %)" in output


def test_answers_that_the_network_cannot_give_count_as_wrong(tmp_path: Path) -> None:
    path = tmp_path / "qa1_single-supporting-fact_test.txt"
    path.write_text("1 Mary went home.\n2 Where is Mary?\thome\t1\n", encoding="utf-8")
    done = run("evaluate", model(), "--data", tmp_path, "--json")
    assert done.json["mean_error"] == 100
    assert "1 of 1 answers are words the network does not know" in done.err


def test_inspect_tells_what_a_checkpoint_is(tmp_path: Path) -> None:
    report = run("inspect", model(), "--json").json
    vocab_size = report["sizes"]["vocab"]
    assert report["parameters"] == {"encode": 4 * 20 * vocab_size, "memory": 4 * 20 * 10, "respond": 0}
    assert report["progress"] == report["progress"] | {"done": True, "phase": 2, "phases": 2}
    assert report["recipe"]["data"]["tasks"] == [1]
    assert report["files"]["weights.safetensors"] > 4 * sum(report["parameters"].values())
    assert report["log"][-1]["epoch"] == 10
    seen = run("inspect", model()).out
    assert "trained to the end" in seen
    assert "whole: every SHA-256" in seen
    assert run("inspect", copy_of_model(tmp_path) / "checkpoint").code == 0  # the folder itself
