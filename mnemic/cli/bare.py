"""Train without typer and rich: ``python -m mnemic train RECIPE --out DIR``.

It needs only torch, numpy, tokenizers and safetensors, and also runs under ``torchrun
--nproc-per-node 2 -m mnemic train …``. ``python -m mnemic table babi …`` rebuilds a published
table, or all of them with ``--recipe all``; ``table words …`` compares language models; ``python -m
mnemic average RUN RUN`` averages the weights of several runs; ``python -m mnemic ship RUN NAME``
copies a trained network into the package; ``python -m mnemic prepare RECIPE --data TEXTS
--out DIR`` writes the sequences for pre-training, which later runs, also on other machines, read
with ``--data DIR``.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from mnemic.checkpoint.average import average_checkpoints
from mnemic.checkpoint.shipped import WEIGHTS
from mnemic.recipe import load_recipe
from mnemic.reproduce.all_tables import ALL, check_tables, list_tables, save_summary, table_folder_of
from mnemic.reproduce.babi_table import BabiTable, save_result, train_missing_runs
from mnemic.reproduce.publish import publish_checkpoint
from mnemic.reproduce.words_table import DEFAULT_RECIPES as DEFAULT_WORD_RECIPES
from mnemic.reproduce.words_table import WordsTable
from mnemic.reproduce.words_table import save_result as save_words_result
from mnemic.reproduce.words_table import train_missing_runs as train_word_models
from mnemic.train.initialize import start_recipe_from
from mnemic.train.interrupt import defer_interrupts
from mnemic.train.prepare import prepare_sequences
from mnemic.train.run import StepReport, fit


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    argv = sys.argv[1:] if argv is None else argv
    try:
        commands = {
            "average": average_runs,
            "prepare": prepare_corpus,
            "ship": ship_run,
            "table": rebuild_table,
            "train": train,
        }
        command = commands.get(argv[0]) if argv else None
        return command(argv[1:]) if command else train(argv)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; run the same command again to go on", file=sys.stderr)
        return 130


def train(argv: Sequence[str]) -> int:
    """Train a recipe and print one line per log row."""
    parser = argparse.ArgumentParser("python -m mnemic train", description=__doc__)
    parser.add_argument("recipe", help="a recipe's name or the path of a .toml file")
    parser.add_argument("--out", required=True, type=Path, help="folder of the run")
    parser.add_argument("--data", help="folder of the data; short for --set data.folder=DIR")
    parser.add_argument("--start", type=Path, help="encoder to start from: a run, a Hugging Face BERT, or reader")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="sets")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--fresh", action="store_true", help="replace an existing run in --out")
    args = parser.parse_args(argv)
    sets = [*args.sets, *([f"data.folder={args.data}"] if args.data else [])]
    change = None if args.start is None else partial(start_recipe_from, folder=args.start)
    recipe = load_recipe(args.recipe, sets, change=change)
    steps = fit(recipe, args.out, seed=args.seed, device=args.device, fresh=args.fresh)
    is_first_process = os.environ.get("RANK", "0") == "0"  # torchrun starts several
    with defer_interrupts() as is_interrupted, closing(steps):
        for report in steps:
            if report.row is not None and is_first_process:
                print(format_log_line(report), flush=True)
            if is_interrupted():
                raise KeyboardInterrupt
    return 0


def format_log_line(report: StepReport) -> str:
    """Format a log row as one line of text."""
    row = report.row or {}
    metrics = row.get("figures") or {"error": row["validation"]}
    validation = ", ".join(f"{name} {number:.4g}" for name, number in metrics.items() if number is not None)
    validation = f"  validation {validation}" if validation else ""
    losses = "".join(f"  {name} {loss:.4f}" for name, loss in row.get("losses", {}).items())
    return (
        f"phase {row['phase']} of {report.num_phases}  step {report.step} of {report.total_steps}"
        f"  loss {row['loss']:.4f}{losses}{validation}  {row['seconds']:.1f} s"
    )


def rebuild_table(argv: Sequence[str]) -> int:
    """Rebuild one bAbI table, or all of them, and print the result as JSON."""
    if argv and argv[0] == "words":
        return rebuild_words_table(argv[1:])
    parser = argparse.ArgumentParser("python -m mnemic table")
    parser.add_argument("table", choices=["babi", "words"])
    parser.add_argument("--recipe", required=True, help="a name, or all: every published table")
    parser.add_argument("--data", required=True)
    parser.add_argument("--size", choices=["1k", "10k"], default="1k")
    parser.add_argument("--joint", action="store_true")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tasks", type=int, nargs="+", default=list(range(1, 21)))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="sets")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--at-once", type=int, default=0)
    parser.add_argument("--lanes", type=int, default=0)
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args(argv)
    settings = BabiTable(**{k: v for k, v in vars(args).items() if k not in ("table", "out")})
    if settings.recipe != ALL:
        train_table(settings, args.out)
        print(json.dumps(save_result(settings, args.out), indent=1))
        return 0
    tables = list_tables(settings)
    check_tables(tables)
    for number, table in enumerate(tables, start=1):
        table_folder = table_folder_of(table, args.out)
        print(f"table {number} of {len(tables)}: {table_folder.name}", file=sys.stderr, flush=True)
        train_table(table, table_folder)
        summary = save_summary(tables[:number], args.out)
    print(json.dumps(summary, indent=1))
    return 0


def rebuild_words_table(argv: Sequence[str]) -> int:
    """Train language models on the same words and print their perplexities as JSON."""
    parser = argparse.ArgumentParser("python -m mnemic table words")
    parser.add_argument("--data", required=True, help="documents, or a folder that mnemic data words wrote")
    parser.add_argument("--recipes", nargs="+", default=DEFAULT_WORD_RECIPES)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="sets")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", required=True, type=Path)
    options = vars(parser.parse_args(argv))
    folder = options.pop("out")
    table = WordsTable(**options)
    with defer_interrupts() as is_interrupted, closing(train_word_models(table, folder)) as steps:
        for name, seed, _, report in steps:
            if report.row is not None:
                perplexity = report.row.get("figures", {}).get("perplexity", float("nan"))
                print(
                    f"{name} seed {seed}  step {report.step} of {report.total_steps}  loss "
                    f"{report.row['loss']:.4f}  validation perplexity {perplexity:.1f}",
                    file=sys.stderr,
                    flush=True,
                )
            if is_interrupted():
                raise KeyboardInterrupt
    print(json.dumps(save_words_result(table, folder), indent=1))
    return 0


def average_runs(argv: Sequence[str]) -> int:
    """Average the weights of several finished runs."""
    parser = argparse.ArgumentParser("python -m mnemic average", description=average_checkpoints.__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="folders of finished runs")
    parser.add_argument("--out", required=True, type=Path, help="folder for the average")
    average_checkpoints(**vars(parser.parse_args(argv)))
    return 0


def ship_run(argv: Sequence[str]) -> int:
    """Add a finished run to the package's networks and print its card as JSON."""
    parser = argparse.ArgumentParser("python -m mnemic ship", description=publish_checkpoint.__doc__)
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument("name", help="name of the network, for mnemic ask --model NAME")
    parser.add_argument("--command", required=True, help="the command that trained it")
    parser.add_argument("--precision", choices=["float16", "float32", "int8"], default="float16")
    parser.add_argument("--device", default="cpu", help="device of its test: cpu, cuda or auto")
    parser.add_argument("--shares", default="", help="shipped network that it shares weights with")
    parser.add_argument("--into", type=Path, default=WEIGHTS, help="target folder, if not the package's")
    print(json.dumps(publish_checkpoint(**vars(parser.parse_args(argv))), indent=1))
    return 0


def prepare_corpus(argv: Sequence[str]) -> int:
    """Write the pre-training sequences of a recipe and print their counts as JSON."""
    parser = argparse.ArgumentParser("python -m mnemic prepare", description=prepare_sequences.__doc__)
    parser.add_argument("recipe", help="such as bert-pretrain")
    parser.add_argument("--data", required=True, help="folder of .jsonl or .txt files")
    parser.add_argument("--out", required=True, type=Path, help="folder of the sequences")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="sets")
    args = parser.parse_args(argv)
    recipe = load_recipe(args.recipe, [*args.sets, f"data.folder={args.data}"])
    print(json.dumps(prepare_sequences(recipe, args.out), indent=1))
    return 0


def train_table(table: BabiTable, folder: Path) -> None:
    """Train the missing runs of a table and print the progress now and then."""
    with defer_interrupts() as is_interrupted, closing(train_missing_runs(table, folder)) as steps:
        for group, (phase, _, step, total) in steps:
            if step.number % 1000 == 0 or step.number == total:
                print(
                    f"tasks {group.recipe['data']['tasks']}  phase {phase.number + 1}"
                    f"  step {step.number} of {total}  loss {step.loss.mean():.4f}",
                    file=sys.stderr,
                    flush=True,
                )
            if is_interrupted():
                raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
