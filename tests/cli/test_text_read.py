"""``mnemic text read`` reads texts into a memory file."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from app_runs import run
from long_runs import BACKGROUND, FACT, QUESTION, TINY, make_text, read, read_error, run_of

from mnemic.checkpoint.lock import lock_file
from mnemic.cli.render.plot_state import StatePlot
from mnemic.predict.memory_state import load_state_file
from mnemic.predict.model import load
from mnemic.recipe import load_recipe
from mnemic.train.run import fit

SMALL = [*TINY[1:3], "data.count=40", "data.length=16", "data.segments=2", TINY[-3]]
SMALL += ["train.batch=16", "train.validate=0"]


def test_the_command_line_reads_a_text_and_asks_the_memory(carrying: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(make_text(), encoding="utf-8")
    memory_path, tokens = tmp_path / "notes.mem", load(carrying).remember(make_text()).seen
    read_command = (
        "text",
        "read",
        memory_path,
        "--model",
        carrying,
        "--device",
        "cpu",
        "--json",
        tmp_path / "text.txt",
    )
    first = run(*read_command).json
    assert (first["seen"], first["total"], first["remembered"]) == (tokens, tokens, tokens)
    assert 0 < first["filled"] <= first["slots"] == 16
    report = run("text", "ask", memory_path, QUESTION, "--json", "--plot", tmp_path / "memory.svg").json
    assert report["answer"] == "lantern"
    best = report["evidence"][0]
    assert make_text()[best["start"] : best["end"]] == best["text"]
    assert best["text"] in FACT  # quoted from the file that was read
    assert best["file"] == str(tmp_path / "text.txt")
    assert report["slots"][0]["sources"][0]["text"]
    assert report["notes"] == []
    assert "worth storing" in (tmp_path / "memory.svg").read_text(encoding="utf-8")
    before = memory_path.read_bytes()
    output = run("text", "ask", memory_path, "--model", carrying, QUESTION).out
    assert f"read: {tokens} of {tokens} tokens; {first['filled']} of 16 slots are" in output
    assert memory_path.read_bytes() == before  # asking changes nothing
    assert best["text"] in output
    again = run(*read_command).json
    assert (again["seen"], again["remembered"]) == (tokens, 2 * tokens)
    second = run("text", "ask", memory_path, QUESTION, "--json").json["evidence"]
    for source in second:  # of the same file, twice read: counted through both, and in each
        assert source["at"] == [source["start"] % len(make_text()), (source["end"] - 1) % len(make_text()) + 1]
        assert make_text()[slice(*source["at"])] == source["text"]
    model = load(carrying)
    model.remember(make_text(), model.remember(make_text())).save(tmp_path / "nameless.mem")
    known = (tmp_path / "nameless.mem", "--model", carrying)
    for source in run("text", "ask", *known, QUESTION, "--json").json["evidence"]:
        assert set(source) == {"start", "end", "weight"}  # no name, so nowhere to quote from
        number, start = divmod(source["start"], len(make_text()))  # counted through both texts
        location = f"text {number + 1}, {start}-{start + source['end'] - source['start']} "
        assert location in (nameless := run("text", "ask", *known, "--all", QUESTION)).out
        assert "changed" not in nameless.err
    (tmp_path / "text.txt").write_text(make_text() + " And more.", encoding="utf-8")
    changed = run("text", "ask", memory_path, QUESTION)
    assert "has changed since it was read" in changed.err
    assert all(line.split("│")[2].strip() == "" for line in changed.out.splitlines() if "│" in line)  # no quotes
    (tmp_path / "text.txt").write_text(make_text(), encoding="utf-8")
    assert run(*read_command, "--fresh").json["remembered"] == tokens
    quoted = run("story", "ask", "--model", carrying, QUESTION, "--sentence", make_text(), "--json").json
    assert quoted["evidence"][0]["text"] in FACT


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("none.txt", "there is no file none.txt"),
        ("binary", "binary is no UTF-8 text: invalid start byte at byte 7; convert a latin1 text"),
        ("rows.jsonl", "rows.jsonl is no plain text"),
        (".", ". is a folder; give the path of a text"),
    ],
)
def test_every_file_is_looked_at_before_one_is_read(desk: Path, second: str, message: str) -> None:
    assert message in read_error(read("a.txt", second))
    assert not Path("notes.mem").exists()


def stop_at(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate Ctrl-C as soon as this file is being read."""

    def show(bars: object, bar_name: str, *numbers: object) -> None:
        if bar_name == name:
            raise KeyboardInterrupt

    monkeypatch.setattr("mnemic.cli.render.progress.ProgressBars.show", show)


def test_what_is_said_after_a_stop_reads_the_rest_and_nothing_twice(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = f"mnemic text read notes.mem --model {run_of('selective')}"
    with monkeypatch.context() as patch:
        stop_at("b.txt", patch)
        done = read("--fresh", "a.txt", "b.txt")
        assert (done.code, json.loads(done.out)["file"]) == (130, "a.txt")
        message = "stopped; 1 of 2 texts are saved in notes.mem; to go on: "
        assert done.err == f"{message}{command} --device cpu b.txt\n"  # not --fresh: a.txt is in it
    assert [Path(text.name).name for text in load_state_file("notes.mem").texts] == ["a.txt"]
    with monkeypatch.context() as patch:
        stop_at("a.txt", patch)
        done = read("--fresh", "a.txt", "b.txt")
        assert done.err.endswith(f"to go on: {command} --fresh --device cpu a.txt b.txt\n")
        stop_at("-", patch)
        done = read("b.txt", "-", "a.txt", stdin="felix has the kettle .")
        assert done.err.endswith(
            "1 of 3 texts are saved in notes.mem; standard input is not, and must be given again; "
            f"to go on: {command} --device cpu a.txt\n"
        )
        done = read("-", stdin="felix has the kettle .")
        assert done.code == 130
        assert "to go on" not in done.err


def test_a_stop_before_anything_is_read_begins_anew_again(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    read("a.txt")
    monkeypatch.setattr("mnemic.checkpoint.folder.load_checkpoint", stop)
    assert " --fresh --device cpu b.txt\n" in read("--fresh", "b.txt").err


def test_a_text_that_was_read_before_is_told_again_and_said_to_be(desk: Path) -> None:
    first, again = read("a.txt"), read("a.txt", "b.txt")
    assert (first.err, first.json["notes"]) == ("", [])
    note = "a.txt was read before, and is now read again"
    assert f"warning: {note}\n" in again.err
    first_row, second_row = map(json.loads, again.out.splitlines())
    assert note in first_row["notes"]
    assert note not in second_row["notes"]
    assert len(load_state_file("notes.mem").texts) == 3
    Path("b.txt").write_text("clara has the lamp now . ", encoding="utf-8")
    assert read("b.txt").json["notes"][0].startswith("b.txt has changed since it was read")


def test_what_was_kept_of_each_text_and_what_is_strange_to_the_network_is_told(desk: Path) -> None:
    Path("strange.txt").write_text("玛丽 去了 厨房 . " * 5, encoding="utf-8")
    read("a.txt", "strange.txt")
    state = load_state_file("notes.mem")
    old, new = map(json.loads, read("a.txt", "strange.txt", "--fresh").out.splitlines())
    assert load_state_file("notes.mem") == state
    assert new["kept"] <= new["filled"] <= old["kept"] + new["kept"]
    assert old["kept"] == old["filled"] > 0
    assert old["notes"] == []
    (note,) = [text for text in new["notes"] if "unknown to this network" in text]
    assert note.startswith("86 % of the tokens of strange.txt are")


def test_a_text_without_words_is_said_to_be(desk: Path) -> None:
    Path("blank.txt").write_text(" \n", encoding="utf-8")
    assert "blank.txt holds no words" in read("blank.txt").json["notes"]


def test_a_memory_stays_as_private_and_where_it_is(desk: Path) -> None:
    read("a.txt")
    Path("notes.mem").rename("real.mem")
    Path("real.mem").chmod(0o600)
    Path("notes.mem").symlink_to("real.mem")
    read("b.txt")
    assert Path("notes.mem").is_symlink()
    assert len(load_state_file("real.mem").texts) == 2
    assert Path("real.mem").stat().st_mode & 0o777 == 0o600


def test_a_network_without_a_memory_sends_nobody_to_read_into_one(desk: Path) -> None:
    recipe = load_recipe("mass", [*SMALL, "train.epochs=1"])
    for _ in fit(recipe, "runs/mass", device="cpu"):
        pass
    done = run("predict", "--model", "runs/mass", "a.txt")
    assert "reads no text into a memory that can be asked" in read_error(done)


def test_a_recurrent_network_reads_into_its_memory(desk: Path) -> None:
    recipe = load_recipe("mann", [*SMALL, "train.epochs=1"])
    for _ in fit(recipe, "runs/mann", device="cpu"):
        pass
    done = run("text", "read", "mann.mem", "--model", "runs/mann", "--device", "cpu", "--json", "a.txt")
    assert done.json["seen"] == done.json["total"] > 0
    assert run("text", "ask", "mann.mem", QUESTION, "--json").json["evidence"]


@pytest.mark.parametrize("arguments", [(), ("--fresh",)])
def test_only_a_memory_is_written_over(desk: Path, arguments: tuple[str, ...]) -> None:
    files = {path: path.read_bytes() for path in desk.iterdir()}
    for target, message in (
        ("b.txt", "b.txt is no memory"),
        ("a.txt", "a.txt is a text to read, and the memory would overwrite it"),
        (run_of("selective") / "checkpoint" / "weights.safetensors", "is no memory; expected"),
        ("/dev/null", "is no memory, and no file"),
    ):
        assert message in read_error(read(*arguments, "a.txt", memory=target))
    Path("link.mem").symlink_to("a.txt")
    assert "is a text to read" in read_error(read(*arguments, "b.txt", "a.txt", memory="link.mem"))
    Path("link.mem").unlink()
    assert {path: path.read_bytes() for path in desk.iterdir()} == files
    assert load(run_of("selective")).progress.done  # its weights are whole


def test_where_no_memory_can_be_written_nothing_is_read(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemic.checkpoint.folder.load_checkpoint", None)  # not even the network is read
    before = {*desk.rglob("*")}
    for target, message in (
        ("none/x.mem", "there is no folder 'none' for the memory"),
        ("/proc/x.mem", "/proc/x.mem cannot be written"),
        (desk, "is a folder; give a file"),
    ):
        assert message in read_error(read("a.txt", memory=target))
    assert {*desk.rglob("*")} == before


def test_two_readers_of_one_memory_lose_no_text(desk: Path) -> None:
    with lock_file(Path("notes.mem"), ""):
        message = read_error(read("a.txt"))
        assert "another process is writing into notes.mem; wait for it, or give another" in message
    assert read("a.txt").code == 0
    assert [path.name for path in desk.glob("*notes*")] + [*desk.glob(".*")] == ["notes.mem"]


def test_a_memory_that_is_full_says_so(desk: Path) -> None:
    note = "all 16 slots are filled: what was worth least is no longer kept"
    short, many = read("b.txt"), read("a.txt", "--fresh", stdin="")
    assert (short.json["filled"], note in short.err, short.json["notes"]) == (1, False, [])
    assert many.json["filled"] < 16
    Path("long.txt").write_text(BACKGROUND * 3, encoding="utf-8")
    done = read("long.txt")
    assert (done.json["filled"], done.json["notes"]) == (16, [note])
    assert f"warning: {note}\n" in done.err
    answer = run("text", "ask", "notes.mem", QUESTION)
    assert "16 of 16 slots are filled" in answer.out
    assert f"warning: {note}\n" in answer.err
    report = run("text", "ask", "notes.mem", QUESTION, "--json").json
    assert (report["notes"], report["filled"], report["size"]) == ([note], 16, 16)


@pytest.mark.parametrize("option", ["--question", "--whole", "--embed", "--jsonl", "--words", "--overlap"])
def test_options_of_other_commands_are_unknown(desk: Path, option: str) -> None:
    assert f"No such option: {option}" in read_error(run("text", "read", "notes.mem", "a.txt", option, "3"))
    fresh = run("predict", "--model", run_of("selective"), "--fresh", "a.txt")
    assert "No such option: --fresh" in read_error(fresh)


def test_a_person_reads_a_line_per_text(desk: Path) -> None:
    done = run("text", "read", "notes.mem", "a.txt", "b.txt", "--model", run_of("selective"), "--device", "cpu")
    first, second = done.out.splitlines()
    state = load_state_file("notes.mem")
    assert re.match(r"a\.txt: \d+ tokens read, \d+ slots hold what was kept of it; \d+ of 16 slots are filled", first)
    assert second.endswith(f"; {state.filled} of 16 slots are filled")


def test_a_memory_is_continued_by_its_own_network(desk: Path) -> None:
    """A new memory is written by the shipped network."""
    read("a.txt")
    assert run("text", "read", "notes.mem", "b.txt", "--device", "cpu").code == 0
    state = load_state_file("notes.mem")
    assert (len(state.texts), state.origin) == (2, str(run_of("selective")))
    assert run("text", "read", "new.mem", "b.txt", "--device", "cpu").code == 0
    assert load_state_file("new.mem").origin == "bert-mass"


def test_the_scale_of_a_picture_begins_at_0_unless_all_weights_are_high() -> None:
    checkpoint = load(run_of("selective"))
    state = checkpoint.remember(make_text())
    answer, count = checkpoint.ask(state, QUESTION), len(state.worth)
    for low, high, scale_start in ((0.1, 0.9, 0.0), (0.84, 0.99, 0.84), (0.9, 0.9, 0.0)):
        worth = torch.linspace(low, high, count)
        picture = StatePlot(replace(state, worth=worth), answer, QUESTION)
        assert picture.find_scale_start() == pytest.approx(scale_start)
        assert any("begins at 0.84" in line for line in picture.build_caption()) == (scale_start > 0)


@pytest.mark.parametrize("kind", ["selective", "blended"])
def test_show_lists_what_a_memory_holds(desk: Path, kind: str) -> None:
    run("text", "read", "notes.mem", "--model", run_of(kind), "--device", "cpu", "a.txt")
    state, report = load_state_file("notes.mem"), run("text", "show", "notes.mem", "--json").json
    assert (report["seen"], report["filled"], report["kind"]) == (state.seen, state.filled, kind)
    assert [slot["name"] for slot in report["texts"]] == [str(desk / "a.txt")]
    starts = [slot["sources"][0]["start"] for slot in report["slots"]]
    assert starts == sorted(starts)
    assert len({slot["number"] for slot in report["slots"]}) == len(starts) == state.filled
    units = {tuple(span): number for number, span in enumerate(state.spans.tolist())}
    for slot in report["slots"]:
        best = slot["sources"][0]
        assert best["text"] == make_text()[best["start"] : best["end"]]
        assert slot["worth"] == pytest.approx(float(state.worth[units[best["start"], best["end"]]]))
    output = run("text", "show", "notes.mem", "--limit", "0").out
    assert output.count("a.txt, ") == state.filled + 1  # a row per slot, and the text
    assert f"{state.filled} of 16 are filled" in output
    fewer = run("text", "show", "notes.mem", "-n", "1").out
    assert fewer.count("a.txt, ") == 2
    assert f"{state.filled - 1} more are worth less; --limit 0 shows them" in fewer
    (best,) = run("text", "show", "notes.mem", "-n", "1", "--json").json["slots"]
    assert best == max(report["slots"], key=lambda slot: slot["worth"])


def test_show_lists_the_key_sentences_of_the_texts_that_are_there(desk: Path) -> None:
    model = run_of("selective")
    (desk / "b.txt").write_text("Sailors of Mira trade salt. Salt and ships are what sailors of Mira love.")
    run("text", "read", "notes.mem", "--model", model, "--device", "cpu", "a.txt", "b.txt")
    rows = run("text", "show", "notes.mem", "--key-sentences", "--json").json["key_sentences"]
    texts = {str(desk / name): (desk / name).read_text(encoding="utf-8") for name in ("a.txt", "b.txt")}
    assert [row["file"] for row in rows][-2:] == [str(desk / "b.txt")] * 2
    assert all(texts[row["file"]][slice(*row["at"])] == row["text"] for row in rows)
    assert sum(row["score"] for row in rows) == pytest.approx(len(rows))
    (best,) = run("text", "show", "notes.mem", "--key-sentences", "-n", "1", "--json").json["key_sentences"]
    assert best == max(rows, key=lambda row: row["score"])
    output = run("text", "show", "notes.mem", "--key-sentences").out
    assert "b.txt, 0-27" in output
    assert "Sailors of Mira trade salt." in output
    assert run("text", "show", "notes.mem", "--json").json["key_sentences"] == []
    (desk / "a.txt").write_text("Something else.")
    shown = run("text", "show", "notes.mem", "--key-sentences", "--json").json
    assert {row["file"] for row in shown["key_sentences"]} == {str(desk / "b.txt")}
    assert "has changed" in shown["notes"][0]
    (desk / "b.txt").unlink()
    assert "none of the texts is there" in read_error(run("text", "show", "notes.mem", "--key-sentences"))


def test_an_empty_memory_is_shown_and_what_is_no_memory_refused(desk: Path) -> None:
    load(run_of("selective")).remember("").save("empty.mem")
    assert "0 of 16 are filled" in run("text", "show", "empty.mem").out
    assert run("text", "show", "empty.mem", "--json").json["slots"] == []
    assert "a.txt is no memory" in read_error(run("text", "show", "a.txt"))


def test_a_text_or_a_stretch_is_forgotten(desk: Path) -> None:
    read("a.txt", "b.txt")
    state, size = load_state_file("notes.mem"), len(make_text())
    Path("link.txt").symlink_to("b.txt")  # the same file by another path
    done = run("text", "forget", "notes.mem", "--text", "link.txt", "--json").json
    assert done["forgotten"] == [[size, state.characters]]
    assert load_state_file("notes.mem") == state.forget(size, state.characters)
    assert done["cleared"] == state.filled - done["filled"] > 0
    start = make_text().index(FACT)
    out = run("text", "forget", "notes.mem", "--from", start, "--to", start + len(FACT)).out
    assert f"forgotten: characters {start} to {start + len(FACT)}\n" in out
    expected = state.forget(size, state.characters).forget(start, start + len(FACT))
    assert load_state_file("notes.mem") == expected
    assert run("text", "ask", "notes.mem", QUESTION, "--json").json["answer"] != "lantern"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "nothing to forget: give --text FILE that was read, or characters"),
        ("--text b.txt", "b.txt was not read into this memory, which has /"),
        ("--from 9 --to 4", "9-4 is no span of the"),
        ("--from 0 --to 999999", "0-999999 is no span of the"),
        ("--text a.txt --from 0 --to 9 --from 4", "give as many --to as --from"),
        ("--text a.txt --from 4", "give as many --to as --from"),
        ("--text a.txt --verify", "No such option: --verify"),
    ],
)
def test_what_cannot_be_forgotten_changes_nothing(desk: Path, arguments: str, message: str) -> None:
    read("a.txt")
    before = Path("notes.mem").read_bytes()
    assert message in read_error(run("text", "forget", "notes.mem", *arguments.split()))
    assert Path("notes.mem").read_bytes() == before
    assert "a.txt is no memory" in read_error(run("text", "forget", "a.txt", "--text", "b.txt"))


def test_many_questions_are_asked_of_a_memory(desk: Path) -> None:
    read("a.txt")
    Path("questions.txt").write_text(f"{QUESTION}\n\nwhat does clara have ?\n", encoding="utf-8")
    done = run("text", "ask", "notes.mem", "--questions", "questions.txt")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [row["question"] for row in rows] == [QUESTION, "what does clara have ?"]
    answer = run("text", "ask", "notes.mem", QUESTION, "--json").json
    assert rows[0] == {name: answer[name] for name in rows[0]}
    piped = run("text", "ask", "notes.mem", "--questions", "-", stdin=f"{QUESTION}\n")
    assert json.loads(piped.out) == rows[0]
    assert run("text", "ask", "notes.mem", "-", "--json", stdin=f"{QUESTION}\n").json == answer
    both = run("text", "ask", "notes.mem", "--questions", "questions.txt", QUESTION)
    assert "give --questions or a question, not both" in read_error(both)
    with_plot = run("text", "ask", "notes.mem", "--questions", "questions.txt", "--plot", "a.png")
    assert "--plot draws the evidence of one question" in read_error(with_plot)
    Path("none.txt").write_text("\n", encoding="utf-8")
    none = run("text", "ask", "notes.mem", "--questions", "none.txt")
    assert "none.txt holds no question; write one per line" in read_error(none)
