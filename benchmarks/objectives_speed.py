"""Measure pre-training before and after, and each objective's time per token against masked words.

    python benchmarks/objectives_speed.py --size 768x12        products in bf16, and states, too
    python benchmarks/objectives_speed.py --size 512x8 --objectives bert electra xlnet

Each line is for about two minutes of a GPU, most of it compilation. The first one prints the share
of the device's peak (see pretraining_speed.py) at ``train.matmul`` ``bf16`` and ``bf16-states``;
the second the nanoseconds per token of each objective, on sequences and sizes that are equal, and
how many times those of masked words they are. ``--set`` changes all recipes.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from pretraining_speed import (
    VOCAB_SIZE,
    count_token_flops,
    load_sized_recipe,
    make_random_dataset,
    measure_peak_flops,
    time_step,
)

from mnemic.recipe import Recipe, load_recipe, override
from mnemic.train.phases import read_phases

PRECISIONS = ("bf16", "bf16-states")
RECIPES = {"bert": "bert-pretrain", "electra": "electra-pretrain", "xlnet": "xlnet-pretrain", "gpt": "gpt-pretrain"}
NUM_SEQUENCES = 20_000
EMBEDDINGS = {"kind": "sum", "segments": 2, "epsilon": 1e-12, "positions": {"kind": "learned", "length": 512}}


def load_objective_recipe(name: str, size: str, settings: list[str]) -> Recipe:
    """Load the recipe of an objective at a size such as 768x12, without dropout."""
    width, depth = (int(number) for number in size.split("x"))
    recipe = load_recipe(RECIPES[name], ["data.folder=", f"model.width={width}", "train.epochs=1000000"])
    if name == "electra":  # the same encoder as the others
        recipe = override(override(recipe, "model.encode.embeddings", EMBEDDINGS), "model.encode.stack.inner", 0)
    stack = recipe["model"]["encode"]["stack"]
    heads = "attention.heads" if "attention" in stack else "heads"
    settings_by_key: dict[str, Any] = {"depth": depth, "dropout": 0.0, heads: max(width // 64, 1)}
    for key, value in settings_by_key.items():
        recipe = override(recipe, f"model.encode.stack.{key}", value)
    recipe = override(recipe, "model.encode.embeddings.dropout", 0.0)
    return load_recipe_settings(recipe, settings)


def load_recipe_settings(recipe: Recipe, settings: list[str]) -> Recipe:
    """Change a recipe by settings such as train.batch=64."""
    return load_recipe("bert-pretrain", ["data.folder=", *settings], change=lambda _: recipe)


def compare_precisions(args: argparse.Namespace, corpus: Any) -> dict[str, Any]:
    """Measure masked words at each precision: tokens per second, and the share of the peak."""
    peak = measure_peak_flops(corpus.device, args.product)
    report: dict[str, Any] = {"peak": peak}
    for precision in PRECISIONS:
        recipe = load_sized_recipe(args.size, [*args.sets, f"train.matmul={precision}"])
        tokens = read_phases(recipe)[0].settings.batch * float(corpus.lengths.double().mean())
        speed = tokens / time_step(recipe, corpus, VOCAB_SIZE, args.steps)
        share = count_token_flops(recipe, corpus, VOCAB_SIZE) * speed / peak
        report[precision] = {"tokens a second": speed, "share of peak": share}
        print(f"{args.size} {precision}: {speed:,.0f} tokens/s, {100 * share:.1f} % of peak", flush=True)
    return report


def compare_objectives(args: argparse.Namespace, corpus: Any) -> dict[str, Any]:
    """Measure the time per token of each objective, and how many times that of the first it is."""
    report: dict[str, Any] = {}
    for name in args.objectives:
        recipe = load_objective_recipe(name, args.size, args.sets)
        tokens = read_phases(recipe)[0].settings.batch * float(corpus.lengths.double().mean())
        report[name] = 1e9 * time_step(recipe, corpus, VOCAB_SIZE, args.steps) / tokens
        ratio = report[name] / report[args.objectives[0]]
        print(f"{args.size} {name}: {report[name]:,.0f} ns a token, {ratio:.2f} × {args.objectives[0]}", flush=True)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="768x12", help="width and depth")
    parser.add_argument("--objectives", nargs="+", choices=RECIPES, default=[])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--product", type=int, default=8192, help="rows of the peak's matrices")
    parser.add_argument("--set", action="append", default=[], dest="sets")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="a file for the measurements, as JSON")
    args = parser.parse_args()
    corpus = make_random_dataset(NUM_SEQUENCES, VOCAB_SIZE).to(args.device)
    report = compare_objectives(args, corpus) if args.objectives else compare_precisions(args, corpus)
    if args.out:
        args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
