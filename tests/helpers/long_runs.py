"""Train small networks that read a text into a memory, once for all tests."""

from pathlib import Path

from app_runs import Result, run
from shared_folders import copy_shared

from mnemic.recipe import Recipe, load_recipe
from mnemic.train.run import fit

TINY = [
    'data={kind="long-recall", count=500, length=16, segments=2, where="first"}',
    'data.tokenizer={kind="wordpiece", vocab=400}',
    "model.width=32",
    'model.encode={kind="transformer", stack={kind="encoder", depth=1, norm="pre"}}',
    "train.epochs=10", "train.batch=32", "train.rate=0.005", "train.validate=0", "train.save=7",
    'train.matmul="float32"', 'train.schedule={kind="constant"}',
    'model.respond={kind="predictor"}',
]  # fmt: skip
MEMORIES = {
    "blended": ['model.memory={kind="blended", slots=16, hops=2}'],
    "selective": ['model.memory={kind="selective", slots=16, hops=2}', "model.segments.unit=sentences"],
}


def tiny(kind: str, steps: int, *sets: str) -> Recipe:
    recipe = load_recipe("bert-mass", [*TINY, *MEMORIES[kind], f"train.steps={steps}", *sets])
    del recipe["phases"]
    return recipe | {"objective": {"kind": "bert-mass", "ctrl": 0.3, "read": 0.1}}


def run_of(kind: str) -> Path:
    """Train a network on documents of one and two segments; return its run."""

    def train(folder: Path) -> None:
        for _ in fit(tiny(kind, 100, "train.save=1000"), folder / "run", device="cpu"):
            pass

    return copy_shared(f"long-{kind}", train) / "run"


BACKGROUND = "the old mill slept all winter . the grey road waited at noon . " * 4


def make_text() -> str:
    return f"  felix has the lantern . {BACKGROUND}"


FACT = "felix has the lantern ."
QUESTION = "what does felix have ?"


def write_texts(folder: Path) -> Path:
    """Write two texts, and two files that are not texts."""
    (folder / "a.txt").write_text(make_text(), encoding="utf-8")
    (folder / "b.txt").write_text("clara has the kettle . ", encoding="utf-8")
    (folder / "binary").write_bytes(b"a text \xaa\xff")
    (folder / "rows.jsonl").write_text('{"text": "a"}\n', encoding="utf-8")
    return folder


def read(*arguments: object, memory: object = "notes.mem", stdin: str = "") -> Result:
    """Run ``mnemic text read`` into a memory file."""
    options = ("--model", run_of("selective"), "--device", "cpu", "--json")
    return run("text", "read", memory, *options, *arguments, stdin=stdin)


def read_error(result: Result) -> str:
    """Check that a command failed with a one-line error; return the line."""
    assert (result.code, result.err.count("\n")) == (2, 1), result
    assert not result.out or result.json == {"error": result.err.removeprefix("error: ").rstrip("\n")}
    return result.err
