"""A user's mistake prints one line and exits with 2; a bug keeps its traceback."""

from pathlib import Path

import pytest
from app_runs import STORY, TINY, copy_of_model, model, run, sets

from mnemic.cli.networks import ask_story


def read_error(*arguments: object, stdin: str = "") -> str:
    """Check that a command fails with a one-line error; return the line."""
    done = run(*arguments, stdin=stdin)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    as_json = run(*arguments, "--json", stdin=stdin)
    assert as_json.code == 2
    assert as_json.json == {"error": as_json.err.removeprefix("error: ").rstrip("\n")}
    return done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "memn2"], "did you mean 'memn2n'?"),
        (["train", "nowhere.toml"], "no recipe file 'nowhere.toml'"),
        (["recipes", "memn2"], "known recipes: "),
        (["train", "memn2n"], "--data DIR"),
        (["train", "memn2n", "--data", "nowhere"], "no story files"),
        (["train", "memn2n", *sets(*TINY, "train.rate=fast")], "train.rate is a number, not 'fast'"),
        (["train", "memn2n", *sets(*TINY, "train.speed=1")], "train does not take 'speed'"),
        (["train", "memn2n", *sets(*TINY, "model.width=wide")], "model.width is a whole number"),
        (["train", "memn2n", *sets(*TINY, "model.memory.kind=ram")], "no kind 'ram'"),
        (["train", "memn2n", *sets(*TINY, "nonsense")], "an override is KEY=VALUE"),
        (["train", "memn2n", *sets(*TINY), "--device", "abacus"], "--device is cpu, cuda"),
        (["train", "memn2n", "--speed", "1"], "No such option: --speed"),
        (["train", "memn2n", "--seed", "one"], "Invalid value for '--seed'"),
        (["trian"], "No such command 'trian'"),
        (["data", "stories", "--task", "5-3", "--out", "o"], "the tasks 5-3 run backwards"),
        (["data", "stories", "--task", "1-99999999", "--out", "o"], "there is no task 99999999"),
        (["inspect", "/"], "no checkpoint in '/'"),
        (["story", "ask", "--model", "nowhere", "--sentence", "Hi.", "Who?", "--plot", "x"], "ends in .png"),
        (["data"], "Missing command"),
        (["table", "babi", "--data", "nowhere"], "no story files"),
        (["table", "babi", "--data", "nowhere", "--tasks", "21"], "no task 21"),
        (["table", "babi"], "Missing option '--data'"),
        (["data", "stories", "--task", "three", "--out", "o"], "tasks are numbers"),
        (["data", "stories", "--task", "1", "--count", "0", "--out", "o"], "at least 1 question"),
        (["data", "show", "--task", "21"], "the tasks are 1 to 20"),
        (["inspect", "nowhere"], "no checkpoint in 'nowhere'"),
        (["evaluate", "nowhere"], "no checkpoint in 'nowhere'"),
        (["story", "ask", "--model", "nowhere", "--sentence", "Hi.", "Who?"], "no checkpoint in 'nowhere'"),
        (["story", "ask", "--model", "entnet-babi", "--story", "nofile", "Who?"], "there is no file nofile"),
        (["story", "ask", "--model", "entnet-babi"], "no question"),
        (["story", "ask", "--model", "entnet-babi", "--story", "-", "-"], "standard input (-) can be read once"),
        (["story", "ask", "--model", "entnet-babi", "Who?"], "no story: give --story FILE"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in read_error(*arguments)
    assert list(tmp_path.iterdir()) == []  # nothing was begun


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 Mary went home.\nJohn left.\n", "story.txt, line 2: expected 'NUMBER SENTENCE'"),
        ("1 Mary went home.\n3 John left.\n2 Ann left.\n", "story.txt, line 3: the number 2"),
        ("", "story.txt: the story is empty"),
        ("\n \n", "story.txt: the story is empty"),
    ],
)
def test_a_story_that_cannot_be_read(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "story.txt"
    path.write_text(text, encoding="utf-8")
    assert message in read_error("story", "ask", "--model", model(), "--story", path, "Where is Mary?")
    message = message.replace("story.txt", "standard input")
    assert message in read_error("story", "ask", "--model", model(), "--story", "-", "Where is Mary?", stdin=text)


def test_a_malformed_story_file_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "qa1_single-supporting-fact_test.txt"
    path.write_text("1 Mary went home.\n2 Where is Mary?\thome\n", encoding="utf-8")
    message = read_error("evaluate", model(), "--data", tmp_path)
    assert f"{path.name}, line 2: expected" in message


def test_an_empty_question_or_sentence() -> None:
    assert "the question is empty" in read_error("story", "ask", "--model", model(), "--sentence", "Hi.", " ")
    assert "no sentences" in read_error("story", "ask", "--model", model(), "--sentence", " ", "Who?")


def truncate_file(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def flip_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


def write_broken_json(path: Path) -> None:
    path.write_text('{"format": 1,', encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("weights.safetensors", truncate_file, "was changed or cut short"),
        ("weights.safetensors", flip_bit, "was changed or cut short"),
        ("weights.safetensors", Path.unlink, "is missing"),
        ("tokenizer.json", flip_bit, "was changed or cut short"),
        ("recipe.json", write_broken_json, "was changed or cut short"),
        ("manifest.json", write_broken_json, "is no valid JSON"),
        ("manifest.json", Path.unlink, "is missing"),
    ],
)
def test_a_broken_checkpoint_names_its_file(name: str, damage: object, message: str, tmp_path: Path) -> None:
    broken = copy_of_model(tmp_path)
    damage(broken / "checkpoint" / name)  # type: ignore[operator]
    for arguments in (["inspect", broken], ["evaluate", broken],
                  ["story", "ask", "--model", broken, "--sentence", "Mary left.", "Where is Mary?"],
                  ["train", "memn2n", *sets(*TINY), "--out", broken]):  # fmt: skip
        line = read_error(*arguments)
        assert message in line
        assert name in line


def test_a_run_of_another_recipe_is_not_replaced() -> None:
    message = read_error("train", "memn2n", *sets(*TINY), "--out", model(), "--seed", "5")
    assert "--fresh to replace it" in message


def test_a_picture_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemic.cli.render.plot_story.find_spec", lambda name: None)
    arguments = ("story", "ask", "--model", model(), "--sentence", "Hi.", "Who?", "--plot", tmp_path / "a.png")
    assert "pip install matplotlib" in read_error(*arguments)


def test_debug_shows_where_a_mistake_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="no recipe"):
        run("--debug", "train", "memn2")
    monkeypatch.setenv("MNEMIC_DEBUG", "1")
    with pytest.raises(ValueError, match="no recipe"):
        run("train", "memn2")


def test_a_fault_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(story: str) -> None:
        raise TypeError("ours")

    monkeypatch.setattr(ask_story, "read_sentences", broken)
    with pytest.raises(TypeError, match="ours"):
        run("story", "ask", "--model", "entnet-babi", "--story", "x", "Who?")


def test_what_is_no_error_but_is_said() -> None:
    command = ("story", "ask", "--model", model(), "--story", "-")
    unknown = run(*command, "Quo vadis?", stdin=STORY)
    assert unknown.code == 0
    assert "warning: the model knows no word of the question ('quo', 'vadis')" in unknown.err
    long = run(*command, "Where is Mary?", "--json", stdin=STORY * 5)
    assert long.code == 0
    assert "the memory holds 10 sentences; the first 5 of 15 were left out" in long.err
    assert (long.json["kept"], long.json["told"]) == (10, 15)
    assert len(long.json["notes"]) == 1


def test_a_table_of_stories_takes_no_other_recipe(tmp_path: Path) -> None:
    done = run("table", "babi", "--recipe", "kv-memnn", "--data", tmp_path, "--out", tmp_path)
    assert done.code == 2
    assert "a table of stories, but recipe 'kv-memnn' reads 'knowledge'" in done.err
