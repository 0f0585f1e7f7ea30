"""Asking, testing and looking inside a trained network."""

from pathlib import Path

import pytest
from app_runs import STORY, model, run
from PIL import Image

from mnemic.app.evidence import cell
from mnemic.app.plot import NO_FONT, draw
from mnemic.app.shade import shade
from mnemic.ask import Answer, Evidence

ASK = ("ask", "--model", model, "--story", "-")


def ask(*words: object, story: str = STORY) -> tuple[str, dict[str, object]]:
    """The same question for the eye and for a program."""
    asked = ("ask", "--model", model(), "--story", "-", *words)
    seen, told = run(*asked, stdin=story), run(*asked, "--json", stdin=story)
    assert seen.code == told.code == 0
    return seen.out, told.json


def test_the_answer_and_what_it_was_read_from() -> None:
    seen, told = ask("Where is Mary?")
    assert told["answer" if "answer" in told else "text"] == "kitchen"
    assert "Mary travelled to the kitchen." in seen
    assert all(f"hop {hop}" in seen for hop in (1, 2, 3))
    evidence = told["evidence"]
    assert isinstance(evidence, list)
    most = max(evidence, key=lambda one: max(one["weights"]))
    assert most["text"] == "Mary travelled to the kitchen."
