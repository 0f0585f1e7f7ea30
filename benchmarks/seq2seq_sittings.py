"""Fill `mnemic table seq2seq` on a GPU that is lent for some minutes at a time.

Here, once (SEQUENCES is a packed folder of `mnemic data sequences --pack`, DATA has squad and
multi30k):

    python benchmarks/seq2seq_sittings.py pack SEQUENCES DATA carry --set pretraining.train.epochs=2

writes the texts and the plan of the table in pieces of at most --piece MiB: carry/texts-0 …, to be
copied one by one into one folder. There (torch, numpy, tokenizers and safetensors are enough):

    python benchmarks/seq2seq_sittings.py start carry out --minutes 24 --rows none,infilling
    python benchmarks/seq2seq_sittings.py wait out RESULTS --seconds 560   again until it says done

``start`` returns at once and takes the options of ``run``, which does the same in the foreground:
--processes of them work on a row each, its pre-training before its tasks. A row that ends after the
time is over is lost, with what it has finished kept. RESULTS gets the lines of all finished cells,
with the texts that networks generated, and the logs. Then, here:

    python benchmarks/seq2seq_sittings.py join RESULTS carry TABLE   scores texts: TABLE/table.json
    python benchmarks/seq2seq_sittings.py resume RESULTS carry       carry/finished, for next time

BLEU, chrF, ROUGE and METEOR are computed by ``join`` alone. ``pack --tiny`` is for the CPU: small
networks and two steps, which take a minute.
"""

import argparse
import json
import os
import sys
import tarfile
import time
import traceback
from multiprocessing import get_context
from pathlib import Path
from shutil import rmtree
from typing import Any

from attention_sittings import MIB, log_output, split_file
from background_run import report, start_in_background
from compress_weights import write_atomically

from mnemic.reproduce.rows import append_rows, read_rows
from mnemic.reproduce.seq2seq.report import save_table
from mnemic.reproduce.seq2seq.rows import ROWS
from mnemic.reproduce.seq2seq.table import CELLS_FILE, Seq2SeqTable, fill_table, list_cells, load_cells

ARCHIVE, PLAN_FILE, FINISHED = "texts", "plan.json", "finished"
FOLDERS = {"data": "sequences", "squad": "squad", "multi30k": "multi30k"}
POLL_S = 2.0  # between looks at processes
TINY = [
    "model.width=16", "model.encode.stack.depth=1", "model.respond.decoder.depth=1", "train.steps=2", "train.batch=4",
    "train.matmul=float32", "train.validate=0", "train.keep=last", "squad.data.length=128", "squad.data.overlap=16",
    "questions.data.length=96", "translation.data.length=320",
]  # fmt: skip
TINY_LINES = 8  # of each file of Multi30k
TINY_PARAGRAPHS = 4  # of each file of SQuAD


def pack(args: argparse.Namespace) -> None:
    """Write the plan and the texts of the table in pieces."""
    args.carry.mkdir(parents=True, exist_ok=True)
    folders = {"sequences": args.sequences, "squad": args.data / "squad", "multi30k": args.data / "multi30k"}
    if args.tiny:
        folders |= {name: write_excerpt(folders[name], args.carry / f".{name}") for name in ("squad", "multi30k")}
    plan = {"sets": [*(TINY if args.tiny else ()), *args.sets], "seeds": args.seeds}
    write_atomically(args.carry / f".{PLAN_FILE}", json.dumps(plan, indent=1).encode())
    archive = args.carry / f".{ARCHIVE}.tar"  # what it holds is compressed already
    with tarfile.open(archive, "w") as file:
        file.add(args.carry / f".{PLAN_FILE}", PLAN_FILE)
        for name, folder in folders.items():
            file.add(folder, name)
    split_file(archive, args.carry, ARCHIVE, args.piece * MIB)
    for path in sorted(path for path in args.carry.iterdir() if not path.name.startswith(".")):
        print(f"{path}: {sum(file.stat().st_size for file in path.iterdir()) / MIB:.1f} MiB")


def write_excerpt(source: Path, folder: Path) -> Path:
    """Write the beginning of each file of SQuAD or Multi30k."""
    import gzip

    from mnemic.data.text_tasks.files import read_bytes

    folder.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        text = read_bytes(path).decode("utf-8")
        if ".json" in path.suffixes:
            articles = json.loads(text)["data"]
            paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
            excerpt = json.dumps({"data": [{"title": "", "paragraphs": paragraphs[:TINY_PARAGRAPHS]}]})
        else:
            excerpt = "".join(text.splitlines(keepends=True)[:TINY_LINES])
        (folder / path.name).write_bytes(gzip.compress(excerpt.encode("utf-8")))
    return folder


def load_table(folder: Path, device: str, rows: str = "") -> Seq2SeqTable:
    """Load the table whose plan and texts are in a folder."""
    plan = json.loads((folder / PLAN_FILE).read_text(encoding="utf-8"))
    folders: dict[str, Any] = {option: str(folder / name) for option, name in FOLDERS.items()}
    return Seq2SeqTable(**folders, **plan, rows=[name for name in rows.split(",") if name], device=device)


def run(args: argparse.Namespace) -> None:
    """Fill the table until everything is finished or the time is over; then write out/done."""
    args.out.mkdir(parents=True, exist_ok=True)
    args.deadline = time.monotonic() + 60 * args.minutes
    for name in ("done", "failed"):
        (args.out / name).unlink(missing_ok=True)
    try:
        unpack(args.carry, args.out)
        merge_lines(args.carry / FINISHED, args.out)
        run_processes(args)
    except BaseException:
        (args.out / "failed").write_text(traceback.format_exc(), encoding="utf-8")
        raise
    report(args, "done")
    (args.out / "done").write_text("", encoding="utf-8")


def unpack(carry: Path, out: Path) -> None:
    """Unpack the texts when all of their pieces are there."""
    while not (out / PLAN_FILE).is_file():
        last = list(carry.glob(f"{ARCHIVE}-*/{ARCHIVE}.*.last"))
        pieces = sorted(carry.glob(f"{ARCHIVE}-*/{ARCHIVE}.*"), key=lambda path: int(path.name.split(".")[1]))
        if not last or len(pieces) <= int(last[0].name.split(".")[1]):
            time.sleep(POLL_S / 4)
            continue
        joined, unpacked = out / f"{ARCHIVE}.tar", out / ".unpacked"
        write_atomically(joined, b"".join(path.read_bytes() for path in pieces))
        rmtree(unpacked, ignore_errors=True)
        with tarfile.open(joined) as archive:
            archive.extractall(unpacked, filter="data")
        joined.unlink()
        for name in (*FOLDERS.values(), PLAN_FILE):  # the plan last: it says that all is there
            (unpacked / name).rename(out / name)


def run_processes(args: argparse.Namespace) -> None:
    """Keep processes busy, a row each, until no row is left or the time is over."""
    context = get_context("spawn")
    table = load_table(args.out, args.device, args.rows)
    finished = load_cells(args.out)
    waiting = [row for row in table.selected_rows
               if any(cell.name not in finished for cell in list_cells(table) if cell.row == row)]  # fmt: skip
    processes: dict[str, tuple[Any, float]] = {}
    failures = []
    while (waiting or processes) and time.monotonic() < args.deadline:
        for row in [row for row in processes if not processes[row][0].is_alive()]:
            process, begin = processes.pop(row)
            report(args, f"{row}: {time.monotonic() - begin:.0f} s, exit {process.exitcode}")
            failures += [row] * (process.exitcode != 0)
        while waiting and len(processes) < args.processes:
            row = waiting.pop(0)
            row_args = argparse.Namespace(**vars(args), row=row)
            process = context.Process(target=log_output, args=(args.out / f"row-{row}.log", fill_row, row_args))
            process.start()
            processes[row] = (process, time.monotonic())
        time.sleep(min(POLL_S, max(args.deadline - time.monotonic(), 0)))
    for row, (process, _) in processes.items():
        report(args, f"the time is over: {row} has not ended")
        process.terminate()
        process.join()
    if failures:
        raise RuntimeError(f"rows failed, see their logs: {', '.join(failures)}")


def fill_row(args: argparse.Namespace) -> None:
    """Train and evaluate the cells of one row."""
    cell = ""
    for step in fill_table(load_table(args.out, args.device, args.row), args.out):
        if step.cell != cell:
            cell = step.cell
            report(args, f"{cell} begins")


def merge_lines(source: Path, target: Path) -> None:
    """Append the finished lines that a folder does not have yet."""
    known = load_cells(target)
    lines = [line for line in read_rows(source / CELLS_FILE) if line["cell"] not in known]
    if lines:
        append_rows(target / CELLS_FILE, lines)


def start(args: argparse.Namespace) -> None:
    """Start ``run`` in a session of its own, which outlives this command."""
    start_in_background(__file__, args.out)


def wait(args: argparse.Namespace) -> None:
    """Wait until everything is done, or for some seconds; then copy lines and logs."""
    deadline = time.monotonic() + args.seconds
    while time.monotonic() < deadline and not any((args.out / name).exists() for name in ("done", "failed")):
        time.sleep(1)
    args.results.mkdir(parents=True, exist_ok=True)
    for path in [args.out / CELLS_FILE, args.out / "log", *args.out.glob("*.log")]:
        if path.exists():
            write_atomically(args.results / path.name, path.read_bytes())
    for path in (args.out / "log", args.out / "failed"):
        if path.exists():
            print(*path.read_text(encoding="utf-8").splitlines()[-40:], sep="\n")


def join(args: argparse.Namespace) -> None:
    """Add the lines of RESULTS to TABLE, score their texts, and write its table.json."""
    args.table.mkdir(parents=True, exist_ok=True)
    unpack(args.carry, args.table)
    merge_lines(args.results, args.table)
    result = save_table(load_table(args.table, "cpu"), args.table)
    print(f"{args.table / 'table.json'}: {result['unfinished']} cells are not finished", *result["notes"], sep="\n")


def resume(args: argparse.Namespace) -> None:
    """Put the finished lines of RESULTS into ``carry``."""
    (args.carry / FINISHED).mkdir(parents=True, exist_ok=True)
    merge_lines(args.results, args.carry / FINISHED)
    print(args.carry / FINISHED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("pack")
    command.add_argument("sequences", type=Path)
    command.add_argument("data", type=Path)
    command.add_argument("carry", type=Path)
    command.add_argument("--set", action="append", default=[], dest="sets", metavar="KEY=VALUE", help="of the table")
    command.add_argument("--seeds", type=int, default=1)
    command.add_argument("--tiny", action="store_true", help="few texts and small networks, for the CPU")
    command.add_argument("--piece", type=int, default=28, help="MiB of a piece")
    command.set_defaults(action=pack)
    for name, action in (("run", run), ("start", start)):
        command = commands.add_parser(name)
        command.add_argument("carry", type=Path)
        command.add_argument("out", type=Path)
        command.add_argument("--minutes", type=float, default=24.0, help="until everything ends")
        command.add_argument("--rows", default="", help=f"of {', '.join(ROWS)}; without it all")
        command.add_argument("--processes", type=int, default=4, help="that share the GPU")
        command.add_argument("--device", default="cuda")
        command.set_defaults(action=action)
    command = commands.add_parser("wait")
    command.add_argument("out", type=Path)
    command.add_argument("results", type=Path)
    command.add_argument("--seconds", type=float, default=560)
    command.set_defaults(action=wait)
    command = commands.add_parser("join")
    command.add_argument("results", type=Path)
    command.add_argument("carry", type=Path)
    command.add_argument("table", type=Path)
    command.set_defaults(action=join)
    command = commands.add_parser("resume")
    command.add_argument("results", type=Path)
    command.add_argument("carry", type=Path)
    command.set_defaults(action=resume)
    args = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    args.action(args)


if __name__ == "__main__":
    main()
