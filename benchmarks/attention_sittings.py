"""Fill `mnemic table attention` on a GPU that is lent for some minutes at a time.

Here, once (DATA has enwiki, imdb and sentences; TABLE is the folder of the table):

    python benchmarks/attention_sittings.py pack DATA TABLE carry --scale full

writes the texts of the table into TABLE, as the command itself does, and packs them in pieces of at
most --piece MiB: carry/words-0 …, carry/texts-0 …, carry/sequences-0 …, to be copied one by one
into one folder. There (torch, numpy, tokenizers and safetensors are enough):

    python benchmarks/attention_sittings.py start carry out --minutes 24    returns at once
    python benchmarks/attention_sittings.py wait out RESULTS --seconds 560  again until it says done

``start`` takes the options of ``run``, which does the same in the foreground. It first measures
cost alone, then trains --processes cells side by side, in the order of ``STAGES``; a cell whose
texts are not there yet is passed over, and one that would not end in time is left to the next
sitting. RESULTS gets the lines of all finished cells and the logs. Then, here:

    python benchmarks/attention_sittings.py join RESULTS TABLE     writes TABLE/table.json
    python benchmarks/attention_sittings.py resume RESULTS carry   carry/finished, to copy next time
    python benchmarks/attention_sittings.py plan TABLE             minutes of what is missing

Time is estimated from the tokens of a cell, --rate tokens per second for the baseline, what the
kind costs beside it where cost has been measured, and the seconds of finished cells of the column.
``pack --tiny`` is for the CPU: with few texts and small networks, everything takes a minute.
"""

import argparse
import gc
import json
import os
import sys
import tarfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

from attention_effects import EFFECTS_FILE, Effect, list_effects, load_effects, measure_effect
from background_run import join_pieces, report, split_file, start_in_background
from compress_weights import write_atomically

from mnemic.data.text_tasks.examples import TextError
from mnemic.recipe import ConfigError
from mnemic.reproduce.attention.columns import COLUMNS, COST, SourceFolders
from mnemic.reproduce.attention.cost import Cell as CostCell
from mnemic.reproduce.attention.report import save_table
from mnemic.reproduce.attention.sources import prepare_sources
from mnemic.reproduce.attention.table import (
    CELLS_FILE,
    DATA_FOLDER,
    AttentionTable,
    TableCell,
    claim,
    fill_cost,
    hash_cost,
    hash_sources,
    list_cells,
    load_cells,
    load_cost,
    train_cell,
)
from mnemic.reproduce.rows import append_rows, read_rows

MIB = 2**20
PLAN_FILE = "plan.json"  # of the table: its scale, settings and tokens
EFFECTS = "effects"  # in ``STAGES``: the networks of attention_effects.py
NIL_ROWS = ("full", "distance-aware", "external", "mlp-mixer", "multi-scale", "sinusoidal-relative")
# What is measured first: columns, and rows of them; without rows all that are left.
STAGES: tuple[tuple[str, Sequence[str]], ...] = (
    ("perplexity", ("transformer-xl-cache", "transformer-xl", "full", "relative")),
    (EFFECTS, ()),
    ("perplexity", ()),
    ("sst5", NIL_ROWS),
    ("imdb", NIL_ROWS),
    ("masked-words", ("full", "transformer-xl", "relative")),
    ("copies-256", ("lsh", "reversible-lsh", "full")),
    ("masked-words", ()),
    ("sst5", ()),
    ("copies-256", ()),
    ("imdb", ()),
    ("copies-1024", ()),
)
ARCHIVES = {  # the folders of TABLE in each, in the order in which they are needed
    "words": (PLAN_FILE, *(f"{DATA_FOLDER}/{name}/source.json" for name in ("enwiki", "imdb", "sentences")),
              f"{DATA_FOLDER}/enwiki-words"),
    "texts": (f"{DATA_FOLDER}/sentences", f"{DATA_FOLDER}/imdb"),
    "sequences": (f"{DATA_FOLDER}/enwiki-sequences",),
}  # fmt: skip
BASE_RATE = 600_000.0  # tokens per second of the baseline beside others, before anything is measured
POLL_S = 2.0  # between looks for pieces and free processes
TINY = [
    "width=16", "depth=1", "heads=2", "sources.enwiki={train=8, test=2, vocab=300}",
    "sources.imdb={train=60, test=20}", "sources.sentences={train=60, test=20}",
    "columns.perplexity.data={length=16, context=4}", "columns.masked-words.data.length=16",
    *(f"columns.{name}.data.length=16" for name in ("imdb", "sst5")),
    *(f"columns.{name}.data.overlap=4" for name in ("imdb", "sst5")),
    *(f"columns.{name}.train={{epochs=1, steps=3, batch=4, validate=0}}" for name in ("perplexity", "masked-words")),
    *(f"columns.{name}.train={{epochs=1, batch=8, log=1}}" for name in ("imdb", "sst5")),
    *(f"columns.copies-{length}.train={{steps=2, batch=2, validate=0}}" for length in (256, 1024)),
    "columns.copies-256.data={length=8, count=20, test_size=8}",
    "columns.copies-1024.data={length=12, count=20, test_size=8}",
    *(f"columns.{name}.seeds=1" for name in ("imdb", "sst5")),
    "cost={width=8, depth=1, lengths=[8, 16], repeats=1, depths=[1, 2], depth_length=8}",
]  # fmt: skip
TINY_COPIES = [
    "data.length=16", "data.symbols=8", "data.count=16", "data.validation_size=4", "data.test_size=8",
    "model.width=16", "model.encode.stack.inner=16", "model.encode.stack.attention.heads=2",
    "model.encode.stack.attention.chunk=4", "train.epochs=1", "train.batch=4", "train.log=0",
]  # fmt: skip


class Job(NamedTuple):
    """A cell or a network of an effect, with the tokens that it learns from."""

    name: str
    column: str  # or EFFECTS
    row: str
    seed: int
    num_tokens: float
    content: TableCell | Effect


JOBS: dict[tuple[Any, ...], list[Job]] = {}  # by folder and by which texts are there


class Plan(NamedTuple):
    """What a table is made of, as ``pack`` wrote it."""

    table: AttentionTable
    tokens: Mapping[str, float]  # of one network, by column
    copies: Sequence[str]  # changes of the recipe reformer-copies


# Here ------------------------------------------------------------------------------------------


def pack(args: argparse.Namespace) -> None:
    """Write the texts of the table, its plan, and the archives in pieces."""
    sets = [*(TINY if args.tiny else ()), *args.sets]
    folders = {"data": "enwiki", "classes": "imdb", "sentences": "sentences"}
    sources: dict[str, Any] = {key: str(args.data / name) for key, name in folders.items()}
    table = AttentionTable(**sources, scale_name=args.scale, sets=sets)
    prepare_sources(table.folders, table.selected_columns, table.scale, args.table / DATA_FOLDER)
    plan = {
        **folders, "scale_name": args.scale, "sets": sets, "tokens": count_tokens(table, args.table),
        "copies": TINY_COPIES if args.tiny else [],
    }  # fmt: skip
    write_atomically(args.table / PLAN_FILE, json.dumps(plan, indent=1).encode())
    for name, paths in ARCHIVES.items():
        archive = args.carry / f".{name}.tar.xz"
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive, "w:xz", preset=6) as file:
            for path in paths:
                file.add(args.table / path, path)
        split_file(archive, args.carry, name, args.piece * MIB)
    for path in sorted(args.carry.iterdir()):
        print(f"{path}: {sum(file.stat().st_size for file in path.iterdir()) / MIB:.1f} MiB")


def count_tokens(table: AttentionTable, folder: Path) -> dict[str, float]:
    """Count the tokens that one network of each column learns from, about."""
    root, counts = SourceFolders(folder / DATA_FOLDER), {}
    for name in COLUMNS:
        settings = table.scale.column_settings(name)
        train, length = settings.train, settings.max_tokens
        if name == "perplexity":
            tokens = json.loads((root.words / "words.json").read_text(encoding="utf-8"))["words"]["train"]
        elif name == "masked-words":
            about = json.loads((root.sequences / "corpus.json").read_text(encoding="utf-8"))
            tokens = about["lengths"]["train"]["tokens"]
        elif COLUMNS[name].source:
            texts = read_rows(root.root / COLUMNS[name].source / "train.jsonl")
            tokens = sum(min(len(text["text"].split()), length) for text in texts)
        else:
            tokens = 0
        epochs = tokens * train.get("epochs", 1)
        steps = train["steps"] * train["batch"] * length if "steps" in train else epochs
        counts[name] = float(min(epochs, steps) if epochs else steps)
    return counts


def join(args: argparse.Namespace) -> None:
    """Add the lines of RESULTS to TABLE, and write its table.json."""
    merge_lines(args.results, args.table)
    result = save_table(load_plan(args.table, "cuda").table, args.table)
    print(f"{args.table / 'table.json'}: {result['unfinished']} cells are not finished")


def resume(args: argparse.Namespace) -> None:
    """Put the finished lines of RESULTS into ``carry``; those that failed are tried again."""
    merge_lines(args.results, args.carry / "finished")
    print(args.carry / "finished")


def merge_lines(source: Path, target: Path) -> None:
    """Append the lines that a folder does not have yet."""
    for name in (CELLS_FILE, EFFECTS_FILE):
        known = [json.dumps(line) for line in read_rows(target / name)]
        lines = [line for line in read_rows(source / name) if "failed" not in line and json.dumps(line) not in known]
        if lines:
            append_rows(target / name, lines)


def load_plan(folder: Path, device: str) -> Plan:
    """Load the plan of a table."""
    plan = json.loads((folder / PLAN_FILE).read_text(encoding="utf-8"))
    tokens, copies = plan.pop("tokens"), plan.pop("copies")
    return Plan(AttentionTable(**plan, device=device), tokens, copies)


def print_plan(args: argparse.Namespace) -> None:
    """Print the estimated minutes of what is missing, stage by stage."""
    plan = load_plan(args.table, "cuda")
    total = 0.0
    jobs = [job for job in list_jobs(plan, args.table) if not is_finished(job, args.table)]
    seconds = estimate_seconds(jobs, plan, args.table, args.rate)
    for stage, (column, rows) in enumerate(STAGES):
        names = [job.name for job in jobs if find_stage(job) == stage]
        total += (minutes := sum(seconds[name] for name in names) / 60)
        rows_text = f" ({', '.join(rows)})" if rows else ""
        print(f"{column}{rows_text}: {len(names)} networks, {minutes:.1f} minutes of one process; in all {total:.1f}")


# There -----------------------------------------------------------------------------------------


def list_jobs(plan: Plan, folder: Path) -> list[Job]:
    """List all jobs whose texts are there, in the order of their stages."""
    root = SourceFolders(folder / DATA_FOLDER)
    has_texts = {
        "perplexity": root.words.is_dir(),
        "masked-words": root.sequences.is_dir(),
        **{name: (root.root / COLUMNS[name].source).joinpath("train.jsonl").is_file() for name in ("imdb", "sst5")},
    }
    key = (folder, *has_texts.values())
    if key in JOBS:
        return JOBS[key]
    jobs = [
        Job(cell.name, cell.column, cell.row, cell.seed, plan.tokens[cell.column], cell)
        for cell in list_cells(plan.table, folder, hash_sources(folder))
        if has_texts.get(cell.column, True)
    ]
    if has_texts["perplexity"]:
        effects = list_effects(root.words, plan.table.scale, plan.copies)
        jobs += [Job(effect.run, EFFECTS, effect.name, effect.seed, effect.num_tokens, effect) for effect in effects]
    JOBS[key] = sorted(jobs, key=find_stage)
    return JOBS[key]


def find_stage(job: Job) -> int:
    """Find the first stage that a job belongs to."""
    stages = (
        number for number, (column, rows) in enumerate(STAGES) if column == job.column and (not rows or job.row in rows)
    )
    return next(stages)


def is_finished(job: Job, folder: Path) -> bool:
    """Whether a job has its result."""
    if isinstance(job.content, Effect):
        return job.name in load_effects(folder)
    return "value" in load_cells(folder).get(job.name, {})


def estimate_seconds(jobs: Sequence[Job], plan: Plan, folder: Path, rate: float) -> dict[str, float]:
    """Estimate the seconds of jobs by name, from what is measured so far."""
    finished = load_cells(folder)
    effects = load_effects(folder)
    cost = load_cost(folder, f"{COST}-cuda", hash_cost(plan.table.scale))
    seconds: dict[str, float] = {}
    for job in jobs:
        seconds[job.name] = job.num_tokens / rate * find_cost_ratio(cost, job, plan)
    measured: dict[str, list[float]] = {}  # by column: how many times the estimate the finished ones took
    for job in list_jobs(plan, folder):
        line = effects.get(job.name, {}) if isinstance(job.content, Effect) else finished.get(job.name, {})
        if "seconds" in line:
            estimate = job.num_tokens / rate * find_cost_ratio(cost, job, plan)
            measured.setdefault(job.column, []).append(line["seconds"] / max(estimate, 1e-9))
    for job in jobs:
        if ratios := measured.get(job.column):
            seconds[job.name] *= sum(ratios) / len(ratios)
    return seconds


def find_cost_ratio(cost: Mapping[str, Mapping[int, CostCell]], job: Job, plan: Plan) -> float:
    """Return how many times the baseline's time a row takes in its column; 1 if unknown."""
    if job.column == EFFECTS or job.row not in cost:
        return 1.0
    length = plan.table.scale.column_settings(job.column).max_tokens
    cells = [cell for cell in cost[job.row].values() if "ratio" in cell]
    nearest = min(cells, key=lambda cell: abs(cell["tokens"] - length), default={"ratio": 1.0})
    return max(float(nearest["ratio"]), 1.0)


def run(args: argparse.Namespace) -> None:
    """Measure and train until everything is finished or the time is over; then write out/done."""
    args.out.mkdir(parents=True, exist_ok=True)
    args.deadline = time.monotonic() + 60 * args.minutes
    for name in ("done", "failed"):
        (args.out / name).unlink(missing_ok=True)
    rmtree(args.out / "begun", ignore_errors=True)  # of an earlier sitting on the same machine
    try:
        unpack_archives(args)
        while not (args.out / PLAN_FILE).is_file():
            time.sleep(POLL_S / 4)
            unpack_archives(args)
        merge_lines(args.carry / "finished", args.out)
        run_processes(args)
    except BaseException:
        (args.out / "failed").write_text(traceback.format_exc(), encoding="utf-8")
        raise
    report(args, "done")
    (args.out / "done").write_text("", encoding="utf-8")


def unpack_archives(args: argparse.Namespace) -> None:
    """Unpack the archives whose pieces are all there."""
    for name in ARCHIVES:
        content = None if (args.out / f".{name}").exists() else join_pieces(args.carry, name)
        if content is None:
            continue
        joined = args.out / f"{name}.tar.xz"
        write_atomically(joined, content)
        unpacked = args.out / f"{name}.new"
        rmtree(unpacked, ignore_errors=True)
        with tarfile.open(joined) as archive:
            archive.extractall(unpacked, filter="data")
        joined.unlink()
        for path in ARCHIVES[name]:
            target = args.out / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.is_dir():  # has its source.json from the first archive
                rmtree(target)
            (unpacked / path).rename(target)
        rmtree(unpacked)
        (args.out / f".{name}").touch()
        report(args, f"{name} is there")


def run_processes(args: argparse.Namespace) -> None:
    """Measure cost alone; then keep processes busy until nothing is left or the time is over."""
    context = get_context("spawn")
    if args.cost:
        process = context.Process(target=log_output, args=(args.out / "cost.log", measure_cost, args))
        process.start()
        process.join(timeout=max(args.deadline - time.monotonic(), 0))
        process.terminate()
        report(args, f"cost ends, exit {process.exitcode}")
    processes: dict[int, Any] = {}
    crashes = 0
    while time.monotonic() < args.deadline:
        unpack_archives(args)
        for number, process in list(processes.items()):
            if not process.is_alive():
                crashes += process.exitcode != 0
                del processes[number]
        is_complete = all((args.out / f".{name}").exists() for name in ARCHIVES)
        has_jobs = next(find_jobs(args), None) is not None
        if not processes and not has_jobs and is_complete:
            return
        if has_jobs and crashes < args.processes:
            for number in (number for number in range(args.processes) if number not in processes):
                log = args.out / f"process-{number}.log"
                processes[number] = context.Process(target=log_output, args=(log, work, args))
                processes[number].start()
        elif not processes and crashes >= args.processes:
            raise RuntimeError("too many processes failed; see their logs")
        time.sleep(min(POLL_S, max(args.deadline - time.monotonic(), 0)))
    report(args, "the time is over")
    for process in processes.values():
        process.terminate()
        process.join()


def log_output(log: Path, action: Callable[[argparse.Namespace], None], args: argparse.Namespace) -> None:
    """Run an action of a process of its own, with its output in a log."""
    import torch

    torch.set_num_threads(1)
    with log.open("a", encoding="utf-8") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
        action(args)


def measure_cost(args: argparse.Namespace) -> None:
    """Measure the time and memory of all rows at all lengths."""
    plan = load_plan(args.out, args.device)
    for step in fill_cost(plan.table, args.out, args.device, 0, 1):
        print(step.cell, step.detail, flush=True)


def find_jobs(args: argparse.Namespace) -> Iterator[Job]:
    """Find the jobs that are neither finished nor begun, and would end in time."""
    plan = load_plan(args.out, args.device)
    jobs = [job for job in list_jobs(plan, args.out) if not is_finished(job, args.out)]
    jobs = [job for job in jobs if not (args.out / "begun" / job.name).exists()]
    seconds = estimate_seconds(jobs, plan, args.out, args.rate)
    for job in jobs:
        if time.monotonic() + seconds[job.name] < args.deadline:
            yield job


def work(args: argparse.Namespace) -> None:
    """Do one job after another until none is left that would end in time."""
    import torch

    (args.out / "begun").mkdir(exist_ok=True)
    while (job := next(find_jobs(args), None)) is not None:
        with claim(args.out, job.name) as is_claimed:
            mark = args.out / "begun" / job.name
            if not is_claimed or mark.exists():
                time.sleep(POLL_S / 20)
                continue
            mark.touch()  # in this sitting nothing is tried twice
        started = time.monotonic()
        if isinstance(job.content, Effect):
            try:
                measure_effect(job.content, args.out, args.device)
            except (ConfigError, TextError, torch.OutOfMemoryError) as error:
                append_rows(args.out / EFFECTS_FILE, [{"effect": job.row, "seed": job.seed, "failed": str(error)}])
                print(f"{job.name}: {error}", flush=True)
        else:
            for step in train_cell(job.content, args.out, args.device, 0, 1):
                if step.message:
                    print(step.message, flush=True)
        report(args, f"{job.name}: {time.monotonic() - started:.0f} s")
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def start(args: argparse.Namespace) -> None:
    """Start ``run`` in a session of its own, which outlives this command."""
    start_in_background(__file__, args.out)


def wait(args: argparse.Namespace) -> None:
    """Wait until everything is done, or for some seconds; then copy lines and logs."""
    deadline = time.monotonic() + args.seconds
    while time.monotonic() < deadline and not any((args.out / name).exists() for name in ("done", "failed")):
        time.sleep(1)
    args.results.mkdir(parents=True, exist_ok=True)
    for path in [args.out / CELLS_FILE, args.out / EFFECTS_FILE, args.out / "log", *args.out.glob("*.log")]:
        if path.exists():
            write_atomically(args.results / path.name, path.read_bytes())
    for path in (args.out / "log", args.out / "failed"):
        if path.exists():
            print(*path.read_text(encoding="utf-8").splitlines()[-40:], sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("pack")
    command.add_argument("data", type=Path)
    command.add_argument("table", type=Path)
    command.add_argument("carry", type=Path)
    command.add_argument("--scale", default="full")
    command.add_argument("--set", action="append", default=[], dest="sets", metavar="KEY=VALUE", help="of the scale")
    command.add_argument("--tiny", action="store_true", help="few texts and small networks, for the CPU")
    command.add_argument("--piece", type=int, default=28, help="MiB of a piece")
    command.set_defaults(action=pack)
    for name, action in (("run", run), ("start", start)):
        command = commands.add_parser(name)
        command.add_argument("carry", type=Path)
        command.add_argument("out", type=Path)
        command.add_argument("--minutes", type=float, default=24.0, help="until everything ends")
        command.add_argument("--processes", type=int, default=8, help="that share the GPU")
        command.add_argument("--rate", type=float, default=BASE_RATE, help="tokens per second of the baseline")
        command.add_argument("--no-cost", dest="cost", action="store_false", help="do not measure time and memory")
        command.add_argument("--device", default="cuda")
        command.set_defaults(action=action)
    command = commands.add_parser("wait")
    command.add_argument("out", type=Path)
    command.add_argument("results", type=Path)
    command.add_argument("--seconds", type=float, default=560)
    command.set_defaults(action=wait)
    command = commands.add_parser("join")
    command.add_argument("results", type=Path)
    command.add_argument("table", type=Path)
    command.set_defaults(action=join)
    command = commands.add_parser("resume")
    command.add_argument("results", type=Path)
    command.add_argument("carry", type=Path)
    command.set_defaults(action=resume)
    command = commands.add_parser("plan")
    command.add_argument("table", type=Path)
    command.add_argument("--rate", type=float, default=BASE_RATE)
    command.set_defaults(action=print_plan)
    args = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    args.action(args)


if __name__ == "__main__":
    main()
