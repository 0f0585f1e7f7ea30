"""``mnemic text ask``: answers from a memory file, and their notes and errors."""

from dataclasses import replace
from pathlib import Path

import pytest
from app_runs import model, run
from long_runs import BACKGROUND, FACT, QUESTION, make_text, read, read_error, run_of

from mnemic.cli.render.format import MAX_PASSAGE_CHARS
from mnemic.cli.text.ask import LoadedMemory, answer_from_memory, build_report, extract_text
from mnemic.cli.text.quote import QuoteFinder
from mnemic.predict.memory_state import load_state_file
from mnemic.predict.model import load
from mnemic.predict.results import MemoryAnswer, SourceSpan


def test_the_command_line_says_what_is_missing(carrying: Path, tmp_path: Path) -> None:
    model, none = ("--model", carrying), tmp_path / "none.mem"
    state = load(carrying).remember(make_text())
    replace(state, origin="").save(tmp_path / "notes.mem")
    replace(state, origin=str(tmp_path / "gone")).save(tmp_path / "moved.mem")
    for arguments, message in (
        (("story", "ask", *model, QUESTION), "no story: give --story FILE"),
        (("story", "ask", *model, "--sentence", " ", QUESTION), "nothing is remembered"),
        (("text", "ask", none, QUESTION), "there is no memory"),
        (("text", "ask", tmp_path / "notes.mem", QUESTION), "give --model DIR"),
        (("text", "ask", tmp_path / "moved.mem", QUESTION), "is not there any more: give --model"),
        (("text", "ask", none, "--model", tmp_path, QUESTION), "no checkpoint in"),
        (("text", "ask", tmp_path / "notes.mem"), "no question: give it in quotes"),
        (("predict", *model, "--device", "cpu", tmp_path / "text.txt"), "mnemic text read MEMORY FILE"),
    ):
        result = run(*arguments)
        assert (result.code, result.err.count("\n")) == (2, 1), arguments
        assert message in result.err


def test_an_empty_memory_does_not_answer(desk: Path) -> None:
    Path("empty.txt").touch()
    assert read("empty.txt").json["filled"] == 0
    command = ("text", "ask", "notes.mem", QUESTION)
    assert "nothing is remembered of the 0 tokens" in read_error(run(*command))
    assert "read a text into notes.mem: mnemic text read notes.mem FILE" in run(*command, "--json").json["error"]
    read("a.txt", "--fresh")
    state = load_state_file("notes.mem")
    state.forget(0, state.characters).save("notes.mem")
    assert f"nothing is remembered of the {state.seen} tokens" in read_error(run(*command))


def test_offsets_count_the_line_ends_that_a_file_has(desk: Path) -> None:
    text = "\r\n" * 9 + f"{FACT}\r\n" + BACKGROUND.replace(" . ", " .\r\n")
    Path("crlf.txt").write_bytes(text.encode())
    read("crlf.txt")
    report = run("text", "ask", "notes.mem", QUESTION, "--json").json
    best = report["evidence"][0]
    assert (best["text"], report["notes"]) == (FACT, [])
    start = Path("crlf.txt").read_bytes().index(b"felix")
    assert best["at"] == [start, start + len(FACT)]
    read("--fresh", stdin=text)
    assert run("text", "ask", "notes.mem", QUESTION, "--json").json["evidence"][0]["at"] == best["at"]


def test_evidence_from_standard_input_is_named_and_counted_by_itself(desk: Path) -> None:
    done = read("b.txt", "-", stdin=make_text())
    assert done.err.count("standard input cannot be quoted later") == 1
    answer = run("text", "ask", "notes.mem", "--all", QUESTION)
    assert "standard input, 2-25 " in answer.out
    assert "changed" not in answer.err
    best = run("text", "ask", "notes.mem", QUESTION, "--json").json["evidence"][0]
    assert (best["file"], best["at"]) == ("-", [2, 25])
    assert best["start"] == 2 + len("clara has the kettle . ")


def test_a_quotation_is_cut_on_the_screen_and_whole_in_json(desk: Path) -> None:
    text = f"{'x' * 5000} {FACT}"
    Path("a.txt").write_text(text, encoding="utf-8")
    read("a.txt")
    best = run("text", "ask", "notes.mem", QUESTION, "--json").json["evidence"][0]
    assert len(best["text"]) > 5000
    output = run("text", "ask", "notes.mem", QUESTION).out
    quotation = "".join(line.split("│")[2].strip() for line in output.splitlines() if "│" in line)
    assert f"x {FACT}".replace(" ", "") in quotation.replace(" ", "")
    assert "x…x" in quotation
    assert output.count("x") < MAX_PASSAGE_CHARS + 80


def test_a_file_that_has_changed_is_noted_once_and_in_json(desk: Path) -> None:
    read("a.txt", "a.txt")
    Path("a.txt").write_text("another text", encoding="utf-8")
    note = "a.txt is not there any more or has changed since it was read: no quotes"
    done = run("text", "ask", "notes.mem", "--json", QUESTION)
    assert note in done.json["notes"]
    for row in (done, run("text", "ask", "notes.mem", "--all", QUESTION)):
        assert row.err.count(note) == 1
    Path("a.txt").write_bytes(b"\xff")
    assert note in run("text", "ask", "notes.mem", QUESTION).err


def test_options_of_other_commands_are_unknown(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read("a.txt")
    command = ("text", "ask", "notes.mem")
    for option in ("--hops", "--passages", "--memory", "--confidence", "--reader", "--story"):
        assert f"No such option: {option}" in read_error(run(*command, option, "2", QUESTION))
    monkeypatch.setenv("MNEMIC_MEMORY", "x.db")  # of other commands
    assert "lantern" in run(*command, QUESTION).out
    fewer, more = run(*command, QUESTION).out, run(*command, "--all", QUESTION).out
    assert fewer.count("a.txt, ") <= 5
    assert fewer.count("a.txt, ") <= more.count("a.txt, ") == len(run(*command, QUESTION, "--json").json["evidence"])


def test_a_text_that_has_moved_is_quoted_where_it_is_now(desk: Path) -> None:
    read("a.txt", "-", stdin="clara has the kettle . ")
    assert run("text", "ask", "notes.mem", QUESTION, "--json").json["notes"] == []
    Path("a.txt").rename("moved.txt")
    without_file = run("text", "ask", "notes.mem", QUESTION, "--json").json
    assert "a.txt is not there any more" in without_file["notes"][-1]
    assert "text" not in without_file["evidence"][0]
    with_file = run("text", "ask", "notes.mem", QUESTION, "--text", "moved.txt", "--text", "b.txt", "--json").json
    assert with_file["evidence"][0]["text"] == FACT
    assert all("text" in source for source in with_file["evidence"])  # also what came from standard input
    Path("other.txt").write_text("another text", encoding="utf-8")
    wrong_file = run("text", "ask", "notes.mem", QUESTION, "--text", "other.txt")
    assert "other.txt was not read into this memory, or has changed since" in read_error(wrong_file)


def test_a_memory_that_was_saved_from_python_knows_its_network(desk: Path) -> None:
    load(run_of("selective")).remember(make_text()).save("notes.mem")
    assert "lantern" in run("text", "ask", "notes.mem", QUESTION).out


def test_a_network_without_a_memory_says_so(desk: Path) -> None:
    done = run("text", "read", "notes.mem", "--model", model(), "a.txt")
    assert "reads no text into a memory that can be asked" in read_error(done)
    read("a.txt")
    answer = run("text", "ask", "notes.mem", "--model", model(), QUESTION)
    assert "reads no text into a memory that can be asked" in read_error(answer)


STORY = "The harbour was built in 1874. Its lighthouse was designed by Anna Olsen. Gulls nest there."


def make_answer(*sentences: str, text: str = "") -> MemoryAnswer:
    """Make an answer with these sentences of the story as evidence, best first."""
    starts = [STORY.index(sentence) for sentence in sentences]
    sources = tuple(SourceSpan(start, start + len(sentence), 0.5) for start, sentence in zip(starts, sentences))
    return MemoryAnswer(text, 0.5, sources, (), 20, 20)


def test_the_reader_points_at_the_words_of_a_network_that_says_none() -> None:
    built, designed, nest = (f"{sentence}." for sentence in STORY.removesuffix(".").split(". "))
    quotes = QuoteFinder(load(run_of("selective")).remember(STORY), STORY)
    question = "Who designed the lighthouse?"
    answer, notes = extract_text(make_answer(nest, designed, built), question, quotes)
    assert (answer.text, notes) == ("Anna Olsen", [])
    missed, notes = extract_text(make_answer(nest, built), question, quotes)
    assert missed.text == ""
    assert missed.probability < 0.5
    assert build_report(question, missed, notes, quotes)["probability"] == missed.probability
    assert "the reader sees no answer" in notes[0]
    away = QuoteFinder(load(run_of("selective")).remember(STORY))
    unseen, notes = extract_text(make_answer(designed), question, away)
    assert unseen.text == ""
    assert build_report(question, unseen, notes, away)["probability"] is None
    assert "the text is not available" in notes[0]


@pytest.mark.parametrize("text", ["his own", ""])
def test_a_generative_network_is_taken_at_its_word(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it generated nothing: then the answer is empty."""
    memory = LoadedMemory(None, None, None, [])  # type: ignore[arg-type]
    source = make_answer("Gulls nest there.", text=text)
    monkeypatch.setattr("mnemic.predict.long_text.answer_from_memory", lambda *_: source)
    monkeypatch.setattr("mnemic.predict.long_text.can_generate", lambda _: True)
    assert answer_from_memory(memory, "Who?") == (source, [])
