"""Train without the command line's packages: ``python -m mnemic train RECIPE --out DIR``.

A machine that has torch, numpy, tokenizers and safetensors is enough; so is ``torchrun
--nproc-per-node 2 -m mnemic train …``. ``python -m mnemic table babi …`` rebuilds a table,
with ``--recipe all`` all of them, ``table words …`` compares language models; ``python -m
mnemic average RUN RUN`` makes one network of several; ``python -m mnemic ship RUN
NAME`` puts a trained network into the package; ``python -m mnemic prepare RECIPE --data TEXTS
--out DIR`` makes the sequences of pre-training, so that training can begin at once, elsewhere too,
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

from mnemic.checkpoint.average import average
from mnemic.checkpoint.shipped import WEIGHTS
from mnemic.recipe import load
from mnemic.reproduce.all_tables import ALL, check, every, place_of, save_summary
from mnemic.reproduce.babi_table import BabiTable, rebuild, save_result
from mnemic.reproduce.publish import ship
from mnemic.reproduce.words_table import RECIPES as WORD_RECIPES
from mnemic.reproduce.words_table import WordsTable
from mnemic.reproduce.words_table import rebuild as rebuild_words
from mnemic.reproduce.words_table import save_result as save_words
from mnemic.train.initialize import with_start
from mnemic.train.interrupt import patient
from mnemic.train.prepare import prepare
from mnemic.train.run import Report, fit


def main(words: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    try:
        commands = {
            "average": average_runs,
            "prepare": prepare_corpus,
            "ship": ship_run,
            "table": table,
            "train": train,
        }
        command = commands.get(words[0]) if words else None
        return command(words[1:]) if command else train(words)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; run the same command again to go on", file=sys.stderr)
        return 130


def train(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("python -m mnemic train", description=__doc__)
    parser.add_argument("recipe", help="a recipe's name or the path of a .toml file")
    parser.add_argument("--out", required=True, type=Path, help="folder of the run")
    parser.add_argument("--data", help="folder of the data; short for --set data.folder=DIR")
    parser.add_argument(
        "--start", type=Path, help="an encoder to begin with: a run, a BERT or reader"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="sets")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--fresh", action="store_true", help="replace the run that stands in --out")
    given = parser.parse_args(words)
    sets = [*given.sets, *([f"data.folder={given.data}"] if given.data else [])]
    change = None if given.start is None else partial(with_start, folder=given.start)
    recipe = load(given.recipe, sets, change=change)
    steps = fit(recipe, given.out, seed=given.seed, device=given.device, fresh=given.fresh)
    leads = os.environ.get("RANK", "0") == "0"  # of the processes that torchrun started
    with patient() as stopped, closing(steps):
        for report in steps:
            if report.row is not None and leads:
                print(line_of(report), flush=True)
            if stopped():
                raise KeyboardInterrupt
    return 0


def line_of(report: Report) -> str:
    """A line of the log, as text."""
    row = report.row or {}
    told = row.get("figures") or {"error": row["validation"]}
    held = ", ".join(f"{name} {number:.4g}" for name, number in told.items() if number is not None)
    held = f"  validation {held}" if held else ""
    parts = "".join(f"  {name} {own:.4f}" for name, own in row.get("losses", {}).items())
    return (
        f"phase {row['phase']} of {report.phases}  step {report.step} of {report.total}"
        f"  loss {row['loss']:.4f}{parts}{held}  {row['seconds']:.1f} s"
    )


def table(words: Sequence[str]) -> int:
    if words and words[0] == "words":
        return words_table(words[1:])
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
    given = parser.parse_args(words)
    asked = BabiTable(**{k: v for k, v in vars(given).items() if k not in ("table", "out")})
    if asked.recipe != ALL:
        watch(asked, given.out)
        print(json.dumps(save_result(asked, given.out), indent=1))
        return 0
    tables = every(asked)
    check(tables)
    for number, one in enumerate(tables, start=1):
        place = place_of(one, given.out)
        print(f"table {number} of {len(tables)}: {place.name}", file=sys.stderr, flush=True)
        watch(one, place)
        whole = save_summary(tables[:number], given.out)
    print(json.dumps(whole, indent=1))
    return 0


def words_table(words: Sequence[str]) -> int:
    """Language models on the same words, with a line an epoch; the table is printed as JSON."""
    parser = argparse.ArgumentParser("python -m mnemic table words")
    parser.add_argument("--data", required=True, help="documents, or what mnemic data words made")
    parser.add_argument("--recipes", nargs="+", default=WORD_RECIPES)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="sets")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", required=True, type=Path)
    given = vars(parser.parse_args(words))
    folder = given.pop("out")
    asked = WordsTable(**given)
    with patient() as stopped, closing(rebuild_words(asked, folder)) as steps:
        for name, seed, _, report in steps:
            if report.row is not None:
                held = report.row.get("figures", {}).get("perplexity", float("nan"))
                print(
                    f"{name} seed {seed}  step {report.step} of {report.total}  loss "
                    f"{report.row['loss']:.4f}  validation perplexity {held:.1f}",
                    file=sys.stderr,
                    flush=True,
                )
            if stopped():
                raise KeyboardInterrupt
    print(json.dumps(save_words(asked, folder), indent=1))
    return 0


def average_runs(words: Sequence[str]) -> int:
    """Several finished runs become one."""
    parser = argparse.ArgumentParser("python -m mnemic average", description=average.__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="folders of finished runs")
    parser.add_argument("--out", required=True, type=Path, help="folder of their mean")
    average(**vars(parser.parse_args(words)))
    return 0


def ship_run(words: Sequence[str]) -> int:
    """A finished run becomes a network of the package; its card is printed."""
    parser = argparse.ArgumentParser("python -m mnemic ship", description=ship.__doc__)
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument("name", help="what it will be called: mnemic ask --model NAME")
    parser.add_argument("--command", required=True, help="what was typed to train it")
    parser.add_argument("--precision", choices=["float16", "float32", "int8"], default="float16")
    parser.add_argument("--device", default="cpu", help="where it is tested: cpu, cuda or auto")
    parser.add_argument("--shares", default="", help="the shipped network it has weights of")
    parser.add_argument("--into", type=Path, default=WEIGHTS, help="another folder, to try it")
    print(json.dumps(ship(**vars(parser.parse_args(words))), indent=1))
    return 0


def prepare_corpus(words: Sequence[str]) -> int:
    """The sequences that a recipe pre-trains on, in a folder; what is in it is printed."""
    parser = argparse.ArgumentParser("python -m mnemic prepare", description=prepare.__doc__)
    parser.add_argument("recipe", help="such as bert-pretrain")
    parser.add_argument("--data", required=True, help="folder of .jsonl or .txt files")
    parser.add_argument("--out", required=True, type=Path, help="folder of the sequences")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="sets")
    given = parser.parse_args(words)
    recipe = load(given.recipe, [*given.sets, f"data.folder={given.data}"])
    print(json.dumps(prepare(recipe, given.out), indent=1))
    return 0


def watch(table: BabiTable, folder: Path) -> None:
    """Train what is missing of a table, with a line now and then."""
    with patient() as stopped, closing(rebuild(table, folder)) as steps:
        for group, (phase, _, step, total) in steps:
            if step.number % 1000 == 0 or step.number == total:
                print(
                    f"tasks {group.recipe['data']['tasks']}  phase {phase.number + 1}"
                    f"  step {step.number} of {total}  loss {step.loss.mean():.4f}",
                    file=sys.stderr,
                    flush=True,
                )
            if stopped():
                raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
