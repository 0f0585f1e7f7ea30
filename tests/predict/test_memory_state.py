"""What is remembered is a value: kept, read on, edited, compared; bad ones are named."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from long_runs import BACKGROUND, FACT, QUESTION, make_text, run_of
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from mnemic.predict.memory_state import MAX_SNAPSHOTS, State, StateError, load_state_file, thin_snapshots
from mnemic.predict.model import load


def test_looks_at_the_slots_stay_few_and_evenly_apart() -> None:
    looks, stride = torch.arange(1, MAX_SNAPSHOTS + 2).unsqueeze(1), 1
    looks, stride = thin_snapshots(looks, stride)
    assert (stride, len(looks)) == (2, MAX_SNAPSHOTS // 2)
    assert (looks % stride == 0).all()


def test_a_memory_survives_the_disk_and_is_read_on(carrying: Path, tmp_path: Path) -> None:
    model = load(carrying)
    first = model.remember(make_text())
    first.save(tmp_path / "notes.mem")
    back = model.load_state(tmp_path / "notes.mem")
    assert [f.name for f in tmp_path.iterdir()] == ["notes.mem"]
    for name, tensor in first.memory._asdict().items():
        assert torch.equal(tensor, getattr(back.memory, name))
    for name in ("spans", "worth", "history"):
        assert torch.equal(getattr(first, name), getattr(back, name))
    assert back == first
    assert back.origin == str(carrying)  # so that mnemic text ask finds the network
    both = model.remember(BACKGROUND, back)
    assert both.seen == both.total == model.remember(BACKGROUND).seen + first.seen
    assert both.segments == len(both.history) == model.remember(BACKGROUND).segments + first.segments
    assert int(both.spans[-1, 1]) == len((make_text() + BACKGROUND).rstrip())
    assert torch.equal(model.remember(make_text()).memory.slots, first.memory.slots)
    answer = model.ask(both, QUESTION)
    assert answer.text == "lantern"
    quoted = (make_text() + BACKGROUND)[answer.evidence[0].start : answer.evidence[0].end]
    assert quoted in FACT


def test_states_are_equal_if_all_they_hold_is(carrying: Path) -> None:
    model = load(carrying)
    state = model.remember(make_text())
    assert state == model.remember(make_text()) == dataclasses.replace(state, origin="elsewhere")
    assert state != model.remember(make_text(), name="a.txt")
    assert state != dataclasses.replace(state, worth=state.worth + 1)
    assert state != dataclasses.replace(state, memory=state.forget(2, 25).memory)
    assert state != model.remember(make_text(), state)
    assert state != "a text"


def test_what_is_forgotten_is_a_stretch_and_no_more(carrying: Path) -> None:
    state = load(carrying).remember(make_text())
    assert state.forget(4, 4) is state  # empty, though within the fact
    assert state.forget(len(make_text()) + 5, len(make_text()) + 9) is state  # never read
    assert state.forget(len(make_text()) + 5, 10**30) is state
    assert state.forget(np.int64(0), np.int64(9)) == state.forget(0, 9)
    invalid: Any = [(9, 4), (-5, 9), (-9, -5), (1.5, 3), ("a", "b"), (True, 4)]
    for start, end in invalid:
        with pytest.raises(ValueError, match="0 ≤ start ≤ end, not"):
            state.forget(start, end)


def test_a_memory_that_holds_nothing_gives_no_answer(carrying: Path) -> None:
    """A network would say its likeliest word; there is nothing that it could prove it with."""
    model = load(carrying)
    for state in (model.remember(""), model.remember(make_text()).forget(0, len(make_text()))):
        assert (state.filled, state.slots) == (0, 16)
        answer = model.ask(state, QUESTION)
        assert (answer.text, answer.probability, answer.evidence) == ("", 0.0, ())
        assert (answer.seen, answer.total) == (state.seen, state.total)


def test_what_is_no_text_and_no_memory_is_said(carrying: Path) -> None:
    model: Any = load(carrying)
    for value, message in ((b"abc", "not bytes"), (Path("a.txt"), "not PosixPath")):
        with pytest.raises(ValueError, match=f"a text as a str, {message}; of a file: Path"):
            model.remember(value)
    for use in (lambda: model.ask("n.mem", QUESTION), lambda: model.remember("a", "n.mem")):
        with pytest.raises(StateError, match="expected a State, not str; load_state"):
            use()


def test_a_memory_that_cannot_be_written_leaves_nothing_behind(
    carrying: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = load(carrying).remember(make_text())
    with pytest.raises(StateError, match="there is no folder"):
        state.save(tmp_path / "none" / "notes.mem")
    with pytest.raises(StateError, match="is a folder; give a file"):
        state.save(tmp_path)
    state.save(tmp_path / "notes.mem")

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device", "beside")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*notes.mem'"):
        load(carrying).remember("").save(tmp_path / "notes.mem")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.mem"]
    assert load(carrying).load_state(tmp_path / "notes.mem") == state


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seen": "many"}, "is damaged .invalid literal"),
        ({"texts": "[[1"}, "is damaged .Expecting"),
        ({"texts": "[[1]]"}, "is damaged"),
        ({"kind": "notes"}, "of a kind known here: 'notes'"),
        ({"kind": None, "network": None}, "is no memory; expected a file that"),
        ({"stride": None}, "is not whole, or of another version"),
        ({"stride": "0"}, "is damaged .a count is below zero"),
        ({"texts": '[[5, 3, "a"]]'}, "is damaged .a text record is"),
    ],
)
def test_a_damaged_memory_is_named(change: dict[str, str | None], message: str, tmp_path: Path) -> None:
    path, state = tmp_path / "notes.mem", load(run_of("selective")).remember(make_text())
    state.save(path)
    with safe_open(path, "pt") as file:
        about = file.metadata() | change
    about = {name: value for name, value in about.items() if value is not None}
    save_file(load_file(path), path, metadata=about)
    with pytest.raises(StateError, match=f"notes.mem .*{message}"):
        load_state_file(path)


def test_a_memory_whose_parts_do_not_fit_is_named(tmp_path: Path) -> None:
    path, state = tmp_path / "notes.mem", load(run_of("selective")).remember(make_text())
    for change, message in (
        ({"spans": state.spans[:-1]}, "salience values"),
        ({"spans": state.spans[:1], "worth": state.worth[:1]}, "from a unit that is none of the 1"),
        ({"memory": state.memory._replace(mask=state.memory.mask[:, :-1])}, "not as many"),
    ):
        dataclasses.replace(state, **change).save(path)
        with pytest.raises(StateError, match=message):
            load_state_file(path)


@pytest.mark.parametrize("tensor_name", ["spans", "worth", "memory.slots"])
def test_a_byte_that_changed_is_noticed(tensor_name: str, tmp_path: Path) -> None:
    path = tmp_path / "notes.mem"
    load(run_of("selective")).remember(make_text()).save(path)
    contents = bytearray(path.read_bytes())
    size = int.from_bytes(contents[:8], "little")
    offset = 8 + size + json.loads(contents[8 : 8 + size])[tensor_name]["data_offsets"][0]
    contents[offset] ^= 1
    path.write_bytes(contents)
    with pytest.raises(StateError, match=r"notes.mem is damaged \("):
        load_state_file(path)


def test_places_that_run_backwards_are_noticed_in_a_memory_without_a_digest(tmp_path: Path) -> None:
    path, state = tmp_path / "notes.mem", load(run_of("selective")).remember(make_text())
    state.save(path)
    with safe_open(path, "pt") as file:
        about = {name: value for name, value in file.metadata().items() if name != "digest"}
    save_file(load_file(path), path, metadata=about)
    assert load_state_file(path) == state  # as those were that older versions wrote
    for spans in (state.spans.flip(1), state.spans - state.characters, state.spans + state.characters):
        save_file(load_file(path) | {"spans": spans.contiguous()}, path, metadata=about)
        with pytest.raises(StateError, match=r"is damaged .a unit is no span of the"):
            load_state_file(path)


def test_a_text_may_be_named_by_a_path(tmp_path: Path) -> None:
    model = load(run_of("selective"))
    state = model.remember(make_text(), name=tmp_path / "a.txt")
    state.save(tmp_path / "notes.mem")
    assert model.load_state(tmp_path / "notes.mem").texts[0].name == str(tmp_path / "a.txt")
    with pytest.raises(ValueError, match="name is a str or a path, not int"):
        model.remember(make_text(), name=5)


def test_a_memory_of_another_network_is_refused(carrying: Path, tmp_path: Path) -> None:
    model, changed = load(carrying), load(carrying)
    with torch.no_grad():
        next(changed.network.parameters()).add_(1.0)
    state = model.remember(make_text())
    state.save(tmp_path / "notes.mem")
    for use in (
        lambda: changed.ask(state, QUESTION),
        lambda: changed.remember(make_text(), state),
        lambda: changed.load_state(tmp_path / "notes.mem"),
    ):
        with pytest.raises(StateError, match="another network"):
            use()
    (tmp_path / "broken.mem").write_bytes(b"no memory")
    with pytest.raises(StateError, match="is no memory"):
        model.load_state(tmp_path / "broken.mem")
    with pytest.raises(StateError, match="there is no memory"):
        model.load_state(tmp_path / "none.mem")
    assert isinstance(state, State)
    assert len(repr(state)) < 120


def test_nothing_but_a_memory_is_written_over(carrying: Path, tmp_path: Path) -> None:
    state, path = load(carrying).remember(make_text()), tmp_path / "notes.mem"
    state.save(path)
    state.forget(0, 5).save(path)
    assert load_state_file(path) == state.forget(0, 5)
    (tmp_path / "text.txt").write_text("precious", encoding="utf-8")
    with pytest.raises(StateError, match=r"text.txt is no memory"):
        state.save(tmp_path / "text.txt")
    assert (tmp_path / "text.txt").read_text(encoding="utf-8") == "precious"


def test_what_is_no_question_is_told_so(carrying: Path) -> None:
    model = load(carrying)
    state = model.remember(make_text())
    with pytest.raises(ValueError, match="a question is a str, not NoneType"):
        model.ask(state, None)  # type: ignore[arg-type]


def test_a_network_that_stores_masked_words_alone_reads_no_text() -> None:
    model = load(run_of("selective"))
    model.network.tokens = "masked"
    with pytest.raises(ValueError, match=r"stores masked words alone .*segments.tokens = 'controller'"):
        model.remember(make_text())
