"""The box on the page of what OCR has read: found, stored, exported and forgotten."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont
from store_runs import DROP_QUESTIONS, memory

from mnemic import Memory
from mnemic.store import CheckReport
from mnemic.store.answers import answer_to_dict
from mnemic.text.documents import Box
from mnemic.text.documents.boxes import make_box

__all__ = ["memory"]  # fixtures

pytestmark = pytest.mark.skipif(find_spec("rapidocr") is None, reason="rapidocr is not installed")
WIDTH, HEIGHT = 620, 400
TOPS = {"The rent is 700 euros.": 40, "The key is under the mat.": 300}
QUESTION = "Where is the key?"
OLD = {
    "sqlite": (*DROP_QUESTIONS, "DROP TABLE boxes", "PRAGMA user_version = 2"),
    "postgresql": (
        *DROP_QUESTIONS,
        "ALTER TABLE passages DROP COLUMN boxes",
        "UPDATE facts SET value = '2' WHERE name = 'schema'",
    ),
}


def draw() -> Image.Image:
    image = Image.new("RGB", (WIDTH, HEIGHT), "white")
    for text, top in TOPS.items():
        ImageDraw.Draw(image).text((60, top), text, fill="black", font=ImageFont.load_default(34))
    return image


def assert_on_key(box: Box | None, num_turns: int = 0) -> None:
    """The box is that of the second line: at 300 to 340 of 400 points, before it was turned."""
    assert box is not None
    upright = box.turn(num_turns)
    assert 0.70 < upright.top < 0.79 < 0.82 < upright.bottom < 0.90
    assert 0.05 < upright.left < 0.11 < 0.5 < upright.right < 0.9


# How a picture was turned is seen before it comes to an engine: all turns in one, one turn in all.
@pytest.mark.parametrize(
    ("memory", "num_turns"), [("sqlite", 0), ("sqlite", 1), ("sqlite", 2), ("sqlite", 3), ("postgresql", 1)],
    indirect=["memory"],
)  # fmt: skip
def test_the_box_of_an_answer_is_on_its_line(memory: Memory, tmp_path: Path, num_turns: int) -> None:
    path = tmp_path / "scan.png"
    draw().rotate(90 * num_turns, expand=True).save(path)  # counterclockwise
    memory.remember(path)
    answer = memory.ask(QUESTION)
    assert (answer.text, answer.line) == ("The key is under the mat.", 2)
    for box in (answer.box, answer.ranked[0].box, answer.evidence[0].box):
        assert_on_key(box, num_turns)
    row = json.loads(json.dumps(answer_to_dict(answer)))
    assert row["box"] == row["evidence"][0]["box"] == list(answer.box or ())
    assert memory.check() == CheckReport()
    (hit,) = memory.search("key")
    assert hit.box == answer.evidence[0].box.join(e.box for e in answer.evidence if e.box)  # type: ignore[union-attr]


def test_a_scan_is_exported_and_forgotten_with_its_boxes(memory: Memory, tmp_path: Path) -> None:
    draw().save(tmp_path / "scan.pdf", resolution=100)
    memory.remember(tmp_path / "scan.pdf")
    answer = memory.ask(QUESTION)
    assert answer.evidence[0].page == 1
    assert_on_key(answer.box)
    list(memory.export(tmp_path / "all.jsonl"))
    with Memory(tmp_path / "copy.db", embedder="none", reader=None) as copy:
        list(copy.take(tmp_path / "all.jsonl"))
        assert copy.ask(QUESTION).box == answer.box
        list(copy.export(tmp_path / "again.jsonl"))
        copy.forget(1)
        assert copy.store.connection.fetch_value("SELECT count(*) FROM boxes") == 0  # type: ignore[attr-defined]
    first, again = (
        [line for line in (tmp_path / name).read_text(encoding="utf-8").splitlines() if 'passage": [' in line]
        for name in ("all.jsonl", "again.jsonl")
    )
    assert first == again


def test_an_older_memory_opens(memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.note("The key is under the mat.")
    engine = "postgresql" if "://" in str(memory.path) else "sqlite"
    for statement in OLD[engine]:
        memory.store.connection.execute(statement)  # type: ignore[attr-defined]
    memory.store.close()
    for may_write in (False, True) if engine == "sqlite" else (True,):
        with monkeypatch.context() as patch:
            if not may_write:
                patch.setattr("mnemic.store.sqlite.connection.os.access", lambda *_: False)
            with Memory(str(memory.path), reader=None) as again:
                assert again.ask(QUESTION).text == "The key is under the mat."
                assert again.ask(QUESTION).box is None
                assert again.check().faults == ()


def test_a_box_is_on_the_page_and_not_empty() -> None:
    assert make_box(-0.1, 0.5, 1.3, 0.5) == Box(0, 0.5, 1, 0.5001)
    assert make_box(2, 2, 3, 3) == Box(0.9999, 0.9999, 1, 1)
    assert Box(0.1, 0.2, 0.3, 0.4).turn(4) == Box(0.1, 0.2, 0.3, 0.4)
