"""Measure three effects of attention that should be certain, on networks of one size.

    mnemic data words --data enwiki --out words --set data.vocab=20000
    python benchmarks/attention_effects.py words --out runs/effects

- ``memory``: Transformer-XL with segments of a quarter of the table's length, trained with a memory
  of none, one and four segments, and tested with up to sixteen. The one without a memory is also
  tested on windows that overlap, so that each word is predicted from three quarters of one or more.
- ``length``: causal networks trained on half of the table's length, tested on it and on four times
  as many words. Learned positions have a row for each place of the longer texts.
- ``copies``: the recipe ``reformer-copies``, trained with four rounds of hashing, with one, and
  without hashing, with five seeds each, and tested with eight, four, two and one.

Sizes and training are those of the column ``perplexity`` of `mnemic table attention`; ``--scale``
and ``--set`` are its options. Finished networks are not trained again. The report is JSON lines,
one per network, with the metrics of each test.
"""

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from language_model_memory import cut_dataset

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.data import DATASETS
from mnemic.evaluate.text_metrics import compute_metrics
from mnemic.recipe import Recipe, build, load_recipe, merge_recipes, override, parse_assignment
from mnemic.reproduce.attention.columns import build_encode, resize_encoder
from mnemic.reproduce.attention.rows import load_rows
from mnemic.reproduce.attention.scale import Scale, load_scale
from mnemic.reproduce.rows import append_rows, read_rows
from mnemic.train.run import fit

EFFECTS_FILE = "effects.jsonl"
EFFECTS = ("memory", "copies", "length")
LENGTH_ROWS = ("relative", "full", "full-no-positions", "sinusoidal-relative", "transformer-xl")
ROUNDS = (8, 4, 2, 1)  # of hashing, in tests
COPY_SEEDS = 5
MEMORY_WORDS = 100_000  # of the test text: a stream is read segment by segment
ATTENTION = "model.encode.stack.attention"


class Effect(NamedTuple):
    """A network to train, and what is changed in each of its tests."""

    name: str
    seed: int
    recipe: Recipe
    tests: Mapping[str, Mapping[str, Any]]  # label → dotted keys of model and data
    max_words: int = 0  # of a test; 0: all
    num_tokens: int = 0  # of training

    @property
    def run(self) -> str:
        """The name of its run."""
        return f"{self.name}-{self.seed}"


def list_effects(words: Path, scale: Scale, copies: Sequence[str] = (), names: Sequence[str] = EFFECTS) -> list[Effect]:
    """List the networks of some effects; ``copies`` changes the recipe of ``copies``."""
    makers = {
        "memory": lambda: list_memories(words, scale),
        "copies": lambda: list_copies(copies),
        "length": lambda: list_lengths(words, scale),
    }
    return [effect for name in names for effect in makers[name]()]


def list_memories(words: Path, scale: Scale) -> Iterator[Effect]:
    """List Transformer-XLs that learn with memories of several lengths."""
    settings = scale.column_settings("perplexity")
    segment = settings.max_tokens // 4
    for num_segments in (0, 1, 4):
        recipe = resize_encoder(load_recipe("transformer-xl-words"), scale)
        recipe = set_keys(recipe, {
            "data.folder": str(words), "data.length": segment, "model.width": scale.width,
            "model.encode.embeddings.dropout": scale.dropout, "model.encode.memory_length": num_segments * segment,
        })  # fmt: skip
        train = {**settings.train, "batch": settings.train["batch"] * settings.max_tokens // segment}
        recipe = recipe | {"train": merge_recipes(recipe["train"], train)}
        lengths = [0, segment // 2, *(segment * factor for factor in (1, 2, 4, 8, 16))]
        tests: dict[str, dict[str, Any]] = {str(length): {"model.encode.memory_length": length} for length in lengths}
        if not num_segments:
            tests["overlapping windows"] = {"data.stream": False, "data.context": 3 * segment // 4}
        num_tokens = count_words(words) * int(recipe["train"]["epochs"])
        yield Effect(f"memory-{num_segments * segment}", 0, recipe, tests, MEMORY_WORDS, num_tokens)


def list_lengths(words: Path, scale: Scale) -> Iterator[Effect]:
    """List causal networks that are tested on longer texts than they learn from."""
    settings, rows = scale.column_settings("perplexity"), load_rows()
    short, long = settings.max_tokens // 2, settings.max_tokens * 2
    for name in LENGTH_ROWS:
        recipe = load_recipe("transformer-words")
        recipe = override(recipe, "model.encode", build_encode(rows[name], scale, long, is_causal=True))
        keys = {"data.folder": str(words), "data.length": short, "data.context": short // 2, "model.width": scale.width}
        recipe = set_keys(recipe, keys)
        train = {**settings.train, "batch": settings.train["batch"] * settings.max_tokens // short}
        recipe = recipe | {"train": merge_recipes(recipe["train"], train)}
        tests = {str(length): {"data.length": length, "data.context": length // 2} for length in (short, long)}
        yield Effect(f"length-{name}", 0, recipe, tests, 0, count_words(words) * int(recipe["train"]["epochs"]))


def list_copies(sets: Sequence[str]) -> Iterator[Effect]:
    """List Reformers that copy, trained with several rounds of hashing or with full attention."""
    recipe = load_recipe("reformer-copies", sets)
    chunk = recipe["model"]["encode"]["stack"]["attention"]["chunk"]
    length = recipe["data"]["length"]
    hashing = {f"{ATTENTION}.chunk": chunk, f"{ATTENTION}.buckets": 0}
    tests = {str(rounds): {**hashing, f"{ATTENTION}.rounds": rounds} for rounds in ROUNDS}
    ways: dict[str, dict[str, Any]] = {
        "4": {f"{ATTENTION}.rounds": 4},
        "1": {f"{ATTENTION}.rounds": 1},
        "full": {f"{ATTENTION}.rounds": 1, f"{ATTENTION}.buckets": 1, f"{ATTENTION}.chunk": length},
    }
    num_tokens = recipe["data"]["count"] * length * int(recipe["train"]["epochs"])
    for way, keys in ways.items():
        for seed in range(COPY_SEEDS):
            yield Effect(f"copies-{way}", seed, set_keys(recipe, keys), tests, 0, num_tokens)


def set_keys(recipe: Recipe, keys: Mapping[str, Any]) -> Recipe:
    """Set several dotted keys of a recipe."""
    for key, value in keys.items():
        recipe = override(recipe, key, value)
    return recipe


def count_words(words: Path) -> int:
    """Count the training words of a folder of encoded words."""
    return int(json.loads((words / "words.json").read_text(encoding="utf-8"))["words"]["train"])


def measure_effect(effect: Effect, folder: Path, device: str) -> dict[str, Any]:
    """Train a network unless it is there, test it, and append its line; return the line."""
    run = folder / "runs" / effect.run
    started = time.monotonic()
    for _ in fit(effect.recipe, run, seed=effect.seed, device=device):
        pass
    history = load_checkpoint(run).progress.history
    line = {
        "effect": effect.name,
        "seed": effect.seed,
        "tests": {label: test_network(effect, keys, run, device) for label, keys in effect.tests.items()},
        "steps": history[-1]["steps"],
        "seconds": round(sum(row["seconds"] for row in history), 1),
        "wall_seconds": round(time.monotonic() - started, 1),
    }
    append_rows(folder / EFFECTS_FILE, [line])
    return line


def test_network(effect: Effect, keys: Mapping[str, Any], run: Path, device: str) -> dict[str, float]:
    """Test a network with changed options of its model and data."""
    model_keys = {key: value for key, value in keys.items() if key.startswith("model.")}
    checkpoint = load_checkpoint(run, overrides=model_keys)
    recipe = set_keys(effect.recipe, {key: value for key, value in keys.items() if key.startswith("data.")})
    dataset = build(DATASETS, recipe["data"]).dataset("test", checkpoint.tokenizer, checkpoint.labels)
    dataset = cut_dataset(dataset, effect.max_words) if effect.max_words else dataset
    metrics = compute_metrics(checkpoint.network.to(device), dataset.to(device))
    return {name: round(value, 3) for name, value in metrics.items()}


def load_effects(folder: Path) -> dict[str, dict[str, Any]]:
    """Load the finished lines by the names of their runs."""
    return {f"{line['effect']}-{line['seed']}": line for line in read_rows(folder / EFFECTS_FILE) if "tests" in line}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", type=Path, help="a folder that `mnemic data words` wrote")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the runs")
    parser.add_argument("--effects", default=",".join(EFFECTS), help="some of them, separated by commas")
    parser.add_argument("--scale", default="small", help="of `mnemic table attention`")
    parser.add_argument("--set", action="append", default=[], dest="sets", help="KEY=VALUE of the scale")
    parser.add_argument("--copies", action="append", default=[], help="KEY=VALUE of the recipe reformer-copies")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    names = args.effects.split(",")
    if unknown := [name for name in names if name not in EFFECTS]:
        parser.error(f"there is no effect {unknown[0]!r}; effects: {', '.join(EFFECTS)}")
    for text in (*args.sets, *args.copies):
        parse_assignment(text)
    finished = load_effects(args.out)
    for effect in list_effects(args.words, load_scale(args.scale, args.sets), args.copies, names):
        line = finished.get(effect.run) or measure_effect(effect, args.out, args.device)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
