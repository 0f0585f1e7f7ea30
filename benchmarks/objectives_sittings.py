"""Fill `mnemic table objectives` on a GPU that is lent for some minutes at a time.

Here, once (DATA has enwiki, glue and squad; TABLE is the folder of the table):

    python benchmarks/objectives_sittings.py pack DATA TABLE carry --scale full

writes sequences of single sentences into TABLE, as the command itself does, and packs them and the
files of the tasks in pieces of at most --piece MiB: carry/sequences-0 …, carry/tasks-0,
carry/names-0 … (for ERNIE alone), to be copied one by one into one folder. There (torch, numpy,
tokenizers and safetensors are enough):

    python benchmarks/objectives_sittings.py start carry out --minutes 24  returns at once
    python benchmarks/objectives_sittings.py wait out RESULTS            again until it says done

``start`` takes the options of ``run``, which does the same in the foreground: it takes the rows in
the order of ``ORDER`` or of --rows, pre-trains one alone on the GPU, since its time counts, and
then fine-tunes it on all tasks, --processes side by side. A row that would not end in time is left
to the next sitting, but for its finished cells. RESULTS gets the lines of all finished cells and
the logs. Then, here:

    python benchmarks/objectives_sittings.py join RESULTS TABLE DATA   writes TABLE/table.json
    python benchmarks/objectives_sittings.py resume RESULTS carry      carry/finished, to copy along
    python benchmarks/objectives_sittings.py plan TABLE                what is missing, in order

Networks do not travel: a row whose cells were not all finished is pre-trained again. With ``pack
--tiny`` networks are small enough for a CPU, and few texts take a minute.
"""

import argparse
import os
import tarfile
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
from shutil import rmtree
from typing import Any

from attention_sittings import log_output, merge_lines, wait
from background_run import join_pieces, report, split_file, start_in_background
from compress_weights import write_atomically

from mnemic.checkpoint.atomic_files import write_json
from mnemic.data.corpora.packed_folder import pack_folder
from mnemic.data.corpora.regroup import SENTENCES
from mnemic.files import read_json
from mnemic.reproduce.objectives.pretrain import BUDGETS
from mnemic.reproduce.objectives.report import save_table
from mnemic.reproduce.objectives.rows import load_rows, name_sequences, select_rows
from mnemic.reproduce.objectives.sequences import find_reason, prepare_sentences, prepare_sequences
from mnemic.reproduce.objectives.table import (
    DATA_FOLDER,
    ObjectivesStep,
    ObjectivesTable,
    TaskCell,
    claim,
    fill_network,
    is_finished,
    list_networks,
    list_tasks,
    load_lines,
    train_task,
)

MIB = 2**20
PLAN_FILE = "plan.json"  # of the table: its scale, settings and folders
# What is measured first: the effects that are expected to show, then all others.
ORDER = ("mlm", "electra", "sop", "nsp", "mlm-spans-sbo", "sentence-pairs", "lm", "none", "mlm-spans", "xlnet")
ARCHIVES = ("sequences", "tasks", "names")
FOLDERS = {"data": "enwiki", "glue": "glue", "squad": "squad"}  # of DATA
NAMES = name_sequences(SENTENCES, "entities")
POLL_S = 1.0
TINY = [
    "width=16", "depth=1", "heads=2", "vocab=300", "length=32", "tokens=2000", "seconds=0.5", "batch_tokens=500",
    "warmup=2", "pretraining=['train.matmul=float32', 'train.compile=false']",
    "tasks={ rte = { seeds = 2, sets = ['data.length=256', 'train.steps=2'] }, "
    "squad = { seeds = 1, sets = ['data.length=128', 'data.overlap=32', 'train.steps=2'] } }",
]  # fmt: skip


# Here ------------------------------------------------------------------------------------------


def pack(args: argparse.Namespace) -> None:
    """Write sequences of sentences, the plan of the table, and the archives in pieces."""
    sets = [*(TINY if args.tiny else ()), *args.sets]
    plan = {"scale_name": args.scale, "sets": sets, "rows": args.rows}
    table = load_table(plan, args.data, "cpu")
    root = args.table / DATA_FOLDER
    args.table.mkdir(parents=True, exist_ok=True)
    write_json(args.table / PLAN_FILE, plan)
    args.carry.mkdir(parents=True, exist_ok=True)
    contents: dict[str, list[tuple[Path, str]]] = {"sequences": [(args.table / PLAN_FILE, PLAN_FILE)]}
    for name, words in (("sequences", "text"), ("names", "entities")):
        if words == "text" or any(row.words == words for row in table.selected_rows.values()):
            sentences = prepare_sentences(table.data, words, table.scale, root)
            packed = args.table / "packed" / sentences.name
            if not packed.exists():
                packed.parent.mkdir(exist_ok=True)
                pack_folder(sentences, packed)
            contents.setdefault(name, []).append((packed, f"{DATA_FOLDER}/{sentences.name}"))
    contents["tasks"] = [(args.data / name, f"tasks/{name}") for name in ("glue", "squad")]
    for name, paths in contents.items():
        archive = args.carry / f".{name}.tar.xz"
        with tarfile.open(archive, "w:xz", preset=6 if name == "tasks" else 0) as file:  # sequences are compressed
            for path, target in paths:
                file.add(path, target)
        split_file(archive, args.carry, name, int(args.piece * MIB))
    for path in sorted(path for path in args.carry.iterdir() if path.is_dir()):
        print(f"{path}: {sum(file.stat().st_size for file in path.iterdir()) / MIB:.1f} MiB")


def load_table(plan: dict[str, Any], data: Path, device: str) -> ObjectivesTable:
    """Return the table of a plan, whose texts and tasks are in ``data``."""
    folders: dict[str, Any] = {option: str(data / name) for option, name in FOLDERS.items()}
    return ObjectivesTable(**folders, **plan, device=device)


def join(args: argparse.Namespace) -> None:
    """Add the lines of RESULTS to TABLE, and write its table.json."""
    merge_lines(args.results, args.table)
    table = load_table(read_json(args.table / PLAN_FILE), args.data, "cuda")
    result = save_table(table, args.table)
    result["command"] = result["command"].replace(f"{args.data}/", "")
    write_json(args.table / "table.json", result)
    print(f"{args.table / 'table.json'}: {result['unfinished']} cells are not measured")


def resume(args: argparse.Namespace) -> None:
    """Put the finished lines of RESULTS into ``carry``; those that failed are tried again."""
    merge_lines(args.results, args.carry / "finished")
    print(args.carry / "finished")


def print_plan(args: argparse.Namespace) -> None:
    """Print the rows in their order, with what is finished of each."""
    plan, lines = read_json(args.table / PLAN_FILE), load_lines(args.table)
    for name in order_rows(list(select_rows(plan["rows"]))):
        budgets = [budget for budget in BUDGETS if f"{name}-{budget}" in lines]
        num_tasks = sum(line["row"] == name and "task" in line for line in lines.values())
        print(f"{name}: networks at {' and '.join(budgets) or 'no budget'}, {num_tasks} fine-tunings")


# There -----------------------------------------------------------------------------------------


def run(args: argparse.Namespace) -> None:
    """Train row after row until everything is finished or the time is over; then write out/done."""
    args.out.mkdir(parents=True, exist_ok=True)
    args.deadline = time.monotonic() + 60 * args.minutes
    for name in ("done", "failed"):
        (args.out / name).unlink(missing_ok=True)
    try:
        while not unpack_archives(args):
            if time.monotonic() > args.deadline:
                raise TimeoutError(f"{args.carry} has not all pieces of sequences and tasks")
            time.sleep(POLL_S)
        merge_lines(args.carry / "finished", args.out)
        run_rows(args)
    except BaseException:
        (args.out / "failed").write_text(traceback.format_exc(), encoding="utf-8")
        raise
    report(args, "done")
    (args.out / "done").write_text("", encoding="utf-8")


def unpack_archives(args: argparse.Namespace) -> bool:
    """Unpack the archives whose pieces are all there; whether sequences and tasks are."""
    for name in ARCHIVES:
        content = None if (args.out / f".{name}").exists() else join_pieces(args.carry, name)
        if content is not None:
            archive = args.out / f"{name}.tar.xz"
            write_atomically(archive, content)
            with tarfile.open(archive) as file:
                file.extractall(args.out, filter="data")
            archive.unlink()
            (args.out / f".{name}").touch()
            report(args, f"{name} is there")
    return all((args.out / f".{name}").exists() for name in ARCHIVES[:2])


def load_table_there(args: argparse.Namespace) -> ObjectivesTable:
    """Return the table of a plan, whose sequences and tasks are unpacked."""
    plan = read_json(args.out / PLAN_FILE)
    options: dict[str, Any] = {"budgets": args.budgets, "seeds": args.seeds, "device": args.device}
    folders: dict[str, Any] = {option: str(args.out / "tasks" / option) for option in ("glue", "squad")}
    data = str(args.out / DATA_FOLDER / SENTENCES)
    return ObjectivesTable(data=data, **folders, **(plan | {"rows": args.rows or plan["rows"]}), **options)


def order_rows(names: Sequence[str]) -> list[str]:
    """Order rows by what is wanted first."""
    ordered = [*ORDER, *(name for name in load_rows() if name not in ORDER)]
    return [name for name in ordered if name in (names or ordered)]


def run_rows(args: argparse.Namespace) -> None:
    """Train one row after the other, while another process makes the sequences of later ones."""
    table = load_table_there(args)
    sequences = start_process(args, "sequences", make_sequences)
    row_s = 60 * args.row_minutes
    for name in args.rows or order_rows(list(table.selected_rows)):
        unpack_archives(args)
        row, root = table.selected_rows[name], args.out / DATA_FOLDER
        if find_reason(row, table.data, root):
            report(args, f"{name}: {find_reason(row, table.data, root)}")
            continue
        if time.monotonic() + row_s > args.deadline:
            report(args, f"{name}: no time, a row takes {row_s / 60:.1f} minutes")
            continue
        while not (root / row.sequences).is_dir() and sequences.is_alive():
            time.sleep(POLL_S / 4)
        started = time.monotonic()
        join_processes(args, [start_process(args, "network", train_row, name)])
        join_processes(args, [start_process(args, f"tasks-{n}", train_tasks, name) for n in range(args.processes)])
        left = [cell.name for cell in list_cells(args, name) if not is_finished(cell, args.out)]
        report(args, f"{name}: {time.monotonic() - started:.0f} s, {len(left)} fine-tunings are left")
        row_s = max(row_s, time.monotonic() - started) if left else time.monotonic() - started
        for budget in BUDGETS:  # networks do not travel
            rmtree(args.out / "networks" / f"{name}-{budget}", ignore_errors=True)
    sequences.terminate()
    sequences.join()


def start_process(args: argparse.Namespace, log: str, action: Callable[..., None], *names: str) -> Any:
    """Start an action in a process of its own, with a log."""
    action_args = argparse.Namespace(**vars(args), names=names)
    process = get_context("spawn").Process(target=log_output, args=(args.out / f"{log}.log", action, action_args))
    process.start()
    return process


def join_processes(args: argparse.Namespace, processes: Sequence[Any]) -> None:
    """Wait until processes end or the time is over."""
    for process in processes:
        process.join(timeout=max(args.deadline - time.monotonic(), 0))
        if process.is_alive():
            report(args, "the time is over")
            process.terminate()
            process.join()


def make_sequences(args: argparse.Namespace) -> None:
    """Make the sequences of rows in the order in which they are trained."""
    table = load_table_there(args)
    for name in args.rows or order_rows(list(table.selected_rows)):
        row = table.selected_rows[name]
        if not find_reason(row, table.data, args.out / DATA_FOLDER):
            prepare_sequences(table.data, [row], table.scale, args.out / DATA_FOLDER)


def train_row(args: argparse.Namespace) -> None:
    """Pre-train a row, unless all its cells are finished."""
    table, (name,) = load_table_there(args), args.names
    network = list_networks(table, args.out)[name]
    cells = list_cells(args, name)
    for step in fill_network(table, network, cells, args.out, ObjectivesStep(name, 0, 1, 0.0)):
        if step.message:
            report(args, step.message)


def train_tasks(args: argparse.Namespace) -> None:
    """Fine-tune a row's networks on what no other process does."""
    table, (name,) = load_table_there(args), args.names
    for cell in list_cells(args, name):
        if is_finished(cell, args.out) or not (cell.start / "checkpoint").is_dir():
            continue
        with claim(args.out, cell.name) as is_claimed:
            if is_claimed and not is_finished(cell, args.out):
                for step in train_task(table, cell, args.out, ObjectivesStep(cell.name, 0, 1, 0.0)):
                    if step.message:
                        report(args, step.message)


def list_cells(args: argparse.Namespace, name: str) -> list[TaskCell]:
    """List the fine-tunings of a row, the longest first within a seed."""
    table = load_table_there(args)
    networks = list_networks(table, args.out)
    cells = list_tasks(table, args.out, {name: networks[name]}) if name in networks else []
    first = ["squad", "sst2"]
    return sorted(cells, key=lambda cell: (cell.seed, first.index(cell.task) if cell.task in first else len(first)))


def start(args: argparse.Namespace) -> None:
    """Start ``run`` in a session of its own, which outlives this command."""
    start_in_background(__file__, args.out)


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("pack")
    for name in ("data", "table", "carry"):
        command.add_argument(name, type=Path)
    command.add_argument("--scale", default="full")
    command.add_argument("--rows", nargs="+", default=[])
    command.add_argument("--set", action="append", default=[], dest="sets", metavar="KEY=VALUE", help="of the scale")
    command.add_argument("--tiny", action="store_true", help="small networks, for the CPU")
    command.add_argument("--piece", type=float, default=28, help="MiB of a piece")
    command.set_defaults(action=pack)
    for name, action in (("run", run), ("start", start)):
        command = commands.add_parser(name)
        command.add_argument("carry", type=Path)
        command.add_argument("out", type=Path)
        command.add_argument("--minutes", type=float, default=24.0, help="until everything ends")
        command.add_argument("--row-minutes", type=float, default=6.0, help="of a row, before one is measured")
        command.add_argument("--processes", type=int, default=8, help="that fine-tune side by side")
        command.add_argument("--rows", nargs="+", default=[], help="in this order")
        command.add_argument("--budgets", nargs="+", default=[], choices=BUDGETS)
        command.add_argument("--seeds", type=int, default=0, help="of each task; 0: those of the scale")
        command.add_argument("--device", default="cuda")
        command.set_defaults(action=action)
    command = commands.add_parser("wait")
    command.add_argument("out", type=Path)
    command.add_argument("results", type=Path)
    command.add_argument("--seconds", type=float, default=560)
    command.set_defaults(action=wait)
    for name, action, folders in (
        ("join", join, ("results", "table", "data")), ("resume", resume, ("results", "carry")),
        ("plan", print_plan, ("table",)),
    ):  # fmt: skip
        command = commands.add_parser(name)
        for folder in folders:
            command.add_argument(folder, type=Path)
        command.set_defaults(action=action)
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    args = make_parser().parse_args(argv)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    args.action(args)


if __name__ == "__main__":
    main()
