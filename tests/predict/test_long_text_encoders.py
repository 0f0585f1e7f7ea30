"""A memory wraps every kind of attention and stack: texts are read, and asked, with each."""

from pathlib import Path
from typing import Any

import pytest
import torch
from app_runs import run
from long_runs import QUESTION, make_text, tiny

from mnemic.encode import ATTENTIONS, STACKS
from mnemic.train.run import fit

LENGTH = 16  # of a segment, with its special tokens
STACK_SPECS: dict[str, dict[str, Any]] = {
    **{
        f"attention {kind}": {"kind": "encoder", "attention": {"kind": kind}} for kind in ATTENTIONS if kind != "masked"
    },
    **{f"stack {kind}": {"kind": kind} for kind in STACKS if kind != "encoder"},
}
STACK_SPECS["attention mlp-mixer"]["attention"]["length"] = LENGTH


@pytest.mark.parametrize("case", STACK_SPECS)
def test_a_text_is_read_and_asked_with_every_encoder(case: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    recipe = tiny("selective", 2)
    recipe["model"]["encode"] = {"kind": "transformer", "stack": {"depth": 1, **STACK_SPECS[case]}}
    recipe["data"] |= {"count": 40, "tokenizer": {"kind": "wordpiece", "vocab": 300}}
    assert len(list(fit(recipe, tmp_path / "run", device="cpu"))) == 2
    (tmp_path / "text.txt").write_text(make_text() * 3, encoding="utf-8")
    memory = tmp_path / "notes.mem"
    read = run("text", "read", memory, tmp_path / "text.txt", "--model", tmp_path / "run", "--device", "cpu", "--json")
    assert read.code == 0, read.err
    assert read.json["seen"] == read.json["total"] > 3 * LENGTH
    answer = run("text", "ask", memory, QUESTION, "--json")
    assert answer.code == 0, answer.err
    assert answer.json["evidence"]
