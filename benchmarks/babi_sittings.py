"""Fill `mnemic table babi` on a GPU that is lent for some minutes at a time.

Here, once (DATA is the folder with en and en-10k):

    python benchmarks/babi_sittings.py pack DATA carry

writes the stories to carry/stories-0, to be copied. There (torch, numpy, tokenizers and safetensors
are enough):

    python benchmarks/babi_sittings.py start carry out --recipe slot-rewriting --minutes 24
    python benchmarks/babi_sittings.py wait out RESULTS --seconds 560   again until it says done

``start`` returns at once and takes the options of ``run``, which does the same in the foreground:
all runs of the table, joint or with --tasks-apart one per task, until they are finished or the time
is over. RESULTS gets the table's folder (finished runs, the state of the others, the best network)
in pieces of at most --piece MiB, and the log. Copy those pieces beside the stories, and the next
``start`` with the same options resumes from them. Then, here:

    python benchmarks/babi_sittings.py join RESULTS TABLE               TABLE/table.json

With --minutes and small settings (--set model.width=16 …) it also runs on a CPU.
"""

import argparse
import os
import sys
import tarfile
import time
import traceback
from contextlib import closing
from pathlib import Path
from shutil import rmtree
from typing import Any

from background_run import join_pieces, report, split_file, start_in_background

MIB = 2**20
STORIES, TABLE = "stories", "table"  # archives, and the folders of the same names in ``out``
SIZES = ("en", "en-10k")
REPORT_S = 30.0  # between lines of the log


def pack(args: argparse.Namespace) -> None:
    """Write the stories in pieces."""
    args.carry.mkdir(parents=True, exist_ok=True)
    folders = {args.data / name: name for name in SIZES if (args.data / name).is_dir()}
    if not folders:
        raise FileNotFoundError(
            f"{args.data} has neither {SIZES[0]} nor {SIZES[1]}; give the folder that contains them"
        )
    write_archive(folders, args.carry, STORIES, args.piece)


def write_archive(folders: dict[Path, str], target: Path, name: str, piece: float) -> None:
    """Write folders, under other names, as an archive in pieces; remove older pieces."""
    for folder in target.glob(f"{name}-*"):
        rmtree(folder)
    archive = target / f".{name}.tar.xz"
    with tarfile.open(archive, "w:xz", preset=3) as file:
        for folder, folder_name in folders.items():
            file.add(folder, folder_name)
    split_file(archive, target, name, int(piece * MIB))
    for path in sorted(target.glob(f"{name}-*/*")):
        print(f"{path}: {path.stat().st_size / MIB:.1f} MiB")


def unpack(source: Path, name: str, target: Path) -> bool:
    """Unpack an archive whose pieces are all there; say if they are."""
    content = join_pieces(source, name)
    if content is None:
        return False
    target.mkdir(parents=True, exist_ok=True)
    joined = target / f".{name}.tar.xz"
    joined.write_bytes(content)
    with tarfile.open(joined) as archive:
        archive.extractall(target, filter="data")
    joined.unlink()
    return True


def run(args: argparse.Namespace) -> None:
    """Train until all runs are finished or the time is over; then write out/done."""
    args.out.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + 60 * args.minutes
    for name in ("done", "failed"):
        (args.out / name).unlink(missing_ok=True)
    try:
        if not unpack(args.carry, STORIES, args.out / STORIES):
            raise FileNotFoundError(f"{args.carry} has no {STORIES}-0 … of `pack`; copy all of its pieces there")
        if not (args.out / TABLE).is_dir() and unpack(args.carry, TABLE, args.out):
            report(args, "resumes the runs of another sitting")
        train_until(args, deadline)
    except BaseException:
        (args.out / "failed").write_text(traceback.format_exc(), encoding="utf-8")
        raise
    report(args, "done")
    (args.out / "done").write_text("", encoding="utf-8")


def train_until(args: argparse.Namespace, deadline: float) -> None:
    """Train the missing runs of the table; write table.json if none is left."""
    from mnemic.reproduce.babi_table import BabiTable, list_missing_groups, save_result, train_missing_runs

    table = BabiTable(
        recipe=args.recipe, data=str(args.out / STORIES), size=args.size, joint=not args.tasks_apart, seeds=args.seeds,
        sets=args.sets, device=args.device, at_once=args.at_once, lanes=args.lanes,
        tasks=[int(task) for task in args.tasks.split(",")] if args.tasks else list(range(1, 21)),
    )  # fmt: skip
    folder, next_report, num_steps = args.out / TABLE, time.monotonic(), 0
    with closing(train_missing_runs(table, folder)) as steps:
        for group, progress in steps:
            num_steps += 1
            if (now := time.monotonic()) > next_report:
                report(args, describe_step(group, progress, num_steps))
                next_report = now + REPORT_S
            if now > deadline:
                report(args, f"the time is over after {num_steps} steps; the state of all runs is kept")
                break
    if list_missing_groups(table, folder):
        return
    result = save_result(table, folder)["ours"]
    report(args, f"mean error {result['mean_error']:.2f} ± {result['std']:.2f}, best {result['best']:.2f}")


def describe_step(group: Any, progress: Any, num_steps: int) -> str:
    """Describe a step of a group of runs; waits until it is computed."""
    step = progress.step
    losses = " ".join(f"{loss:.4f}" for loss in step.loss.flatten().tolist())
    seeds = ",".join(map(str, group.seeds))
    return f"seeds {seeds}: step {step.number} of {progress.total_steps}, {num_steps} in this sitting, loss {losses}"


def start(args: argparse.Namespace) -> None:
    """Start ``run`` in a session of its own, which outlives this command."""
    start_in_background(__file__, args.out)


def wait(args: argparse.Namespace) -> None:
    """Wait until everything is done, or for some seconds; then copy the table and the log."""
    deadline = time.monotonic() + args.seconds
    while time.monotonic() < deadline and not any((args.out / name).exists() for name in ("done", "failed")):
        time.sleep(1)
    args.results.mkdir(parents=True, exist_ok=True)
    if (args.out / TABLE).is_dir():
        write_archive({args.out / TABLE: TABLE}, args.results, TABLE, args.piece)
    for name in ("log", "failed"):
        (args.results / name).unlink(missing_ok=True)
        if (args.out / name).exists():
            text = (args.out / name).read_text(encoding="utf-8")
            (args.results / name).write_text(text, encoding="utf-8")
            print(*text.splitlines()[-40:], sep="\n")


def join(args: argparse.Namespace) -> None:
    """Unpack the table's folder of RESULTS into TABLE."""
    unpacked = args.table.with_name(f".{args.table.name}.new")
    rmtree(unpacked, ignore_errors=True)
    if not unpack(args.results, TABLE, unpacked):
        raise FileNotFoundError(f"{args.results} has no {TABLE}-0 … of `wait`")
    (unpacked / TABLE).rename(args.table)
    unpacked.rmdir()
    print(*sorted(path for path in args.table.rglob("*") if path.is_file()), sep="\n")


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``run``."""
    command.add_argument("carry", type=Path)
    command.add_argument("out", type=Path)
    command.add_argument("--recipe", default="slot-rewriting")
    command.add_argument("--size", choices=("1k", "10k"), default="10k")
    command.add_argument("--tasks-apart", action="store_true", help="one network per task, not one for all")
    command.add_argument("--tasks", default="", help="such as 1,2,3; without it all")
    command.add_argument("--seeds", type=int, default=5)
    command.add_argument("--set", action="append", default=[], dest="sets", metavar="KEY=VALUE", help="of the recipe")
    command.add_argument("--at-once", type=int, default=0, help="runs per program; 0: all on a GPU")
    command.add_argument("--lanes", type=int, default=0, help="programs in parallel; 0: 20 on a GPU")
    command.add_argument("--minutes", type=float, default=24.0, help="until everything ends")
    command.add_argument("--device", default="cuda")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("pack")
    command.add_argument("data", type=Path)
    command.add_argument("carry", type=Path)
    command.add_argument("--piece", type=float, default=15, help="MiB of a piece")
    command.set_defaults(action=pack)
    for name, action in (("run", run), ("start", start)):
        command = commands.add_parser(name)
        add_options(command)
        command.set_defaults(action=action)
    command = commands.add_parser("wait")
    command.add_argument("out", type=Path)
    command.add_argument("results", type=Path)
    command.add_argument("--seconds", type=float, default=560)
    command.add_argument("--piece", type=float, default=15, help="MiB of a piece")
    command.set_defaults(action=wait)
    command = commands.add_parser("join")
    command.add_argument("results", type=Path)
    command.add_argument("table", type=Path)
    command.set_defaults(action=join)
    args = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    args.action(args)


if __name__ == "__main__":
    main()
