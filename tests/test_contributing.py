"""The worked examples of CONTRIBUTING.md run."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
from app_runs import run
from recipe_runs import train

from mnemic.memory import MEMORIES

CONTRIBUTING = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")


def load_worked_example(class_name: str) -> Any:
    """Run the example of CONTRIBUTING.md that defines a class, and return the class."""
    blocks = re.findall(r"^```python\n(.*?)^```$", CONTRIBUTING, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(next(block for block in blocks if f"class {class_name}" in block), names)
    return names[class_name]


def test_the_worked_example_of_a_memory_is_trained_and_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MEMORIES, "cosine", load_worked_example("CosineMemory"))
    block = re.search(r"^   ```toml\n(.*?)^   ```$", CONTRIBUTING, re.MULTILINE | re.DOTALL)
    assert block is not None
    recipe = tomllib.loads(block[1]) | {"data": {"kind": "generated-babi", "tasks": [1], "count": 300}}
    folder = train(tmp_path, recipe)
    story = ("--sentence", "Mary went to the garden.", "--sentence", "John went to the office.")
    report = run("story", "ask", "Where is Mary?", "--model", folder, *story, "--json").json
    assert len(report["evidence"]) == 2


def test_the_worked_example_of_attention_sees_what_is_near() -> None:
    attention = load_worked_example("LocalAttention")(8, heads=2, reach=2)
    x = torch.randn(1, 9, 8, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(1, 1, 1, 9, dtype=torch.bool)
    changed = x.clone()
    changed[0, 4] += 1
    difference = (attention(x, x, mask) - attention(changed, changed, mask)).abs().amax(-1)[0] > 1e-6
    assert difference.nonzero().flatten().tolist() == [2, 3, 4, 5, 6]
