"""Train the readers of 12 and 6 layers on a mix of domains, on a machine without a network.

Here, once (DATA has squad and qa; E5 is a folder made by convert_e5.py):

    python benchmarks/reader_mix.py pack DATA E5 carry

makes carry/data, carry/start-0, carry/start-1 …, of at most --piece MiB, to be copied one by one.
There, with all of them in carry:

    python benchmarks/reader_mix.py start carry out       begins in the background, and returns
    python benchmarks/reader_mix.py wait out RESULTS --seconds 560        again until it says done

``start`` takes the options of ``run``, which does the same in the foreground: train a reader of 12
layers per --seeds side by side, for --minutes-large; then one of 6 layers, taught by all of them,
for --minutes-small; store both in 8 bits, and measure them and today's reader by domain. A run
first takes a few steps to learn how many fit into its minutes. The data is read once, before the
processes fork. RESULTS gets the readers in pieces of 15 MiB (``cat NAME.tar.* | tar x``) and
results.tar.gz: figures, predictions and logs. --tiny does everything on the CPU in minutes, with
few questions and networks of one layer, to see that it works.
"""

import argparse
import json
import lzma
import os
import subprocess
import sys
import tarfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from compress_weights import WEIGHTS_FILE, pack_weights, unpack_weights, write_atomically

MIB = 2**20
PIECE_BYTES = 15 * MIB
PROBE_STEPS, TINY_STEPS = 40, 4  # the second half is timed
LOG_STEPS = 100  # steps per row of a log
TINY = ["data.length=96", "data.overlap=16", "data.articles=2", "train.batch=8", "train.matmul=float32"]
TINY_SOURCES: list[dict[str, Any]] = [
    {"path": "qa/squad2_unanswerable_part.jsonl*", "domain": "wikipedia", "max_questions": 150},
    {"path": "squad/train-v1.1.json*", "domain": "wikipedia", "validation": 0.03, "max_questions": 150},
    {"path": "qa/covidqa_train.jsonl*", "weight": 3.0, "validation": 0.25, "max_questions": 60},
    {"path": "qa/molweni_train.jsonl*", "weight": 0.5, "standalone": False, "max_questions": 60},
    {"documents": 20, "standalone": False},
    {"documents": 8, "split": "validation", "standalone": False},
    {"path": "squad/dev-v1.1.json*", "domain": "squad_dev", "split": "test", "max_questions": 40},
]
DATA: dict[str, Any] = {}  # what the parent process has read, for its children: "loaded", "sets"


# Here ------------------------------------------------------------------------------------------


def pack(args: argparse.Namespace) -> None:
    """Pack the data as .xz, and the weights in pieces."""
    from mnemic.recipe import load_recipe

    target, seen = args.carry / "data", set[Path]()
    for source in load_recipe("reader-12")["data"]["sources"]:
        for path in sorted(args.data.glob(source["path"])) if "path" in source else ():
            if path in seen or path.name.startswith("."):
                continue
            seen.add(path)
            content = path.read_bytes()
            name = path.relative_to(args.data)
            if path.suffix == ".gz":
                import gzip

                content, name = lzma.compress(gzip.decompress(content), preset=9), name.with_suffix(".xz")
            write_atomically(target / name, content)
    folder = args.carry / "start"
    pack_weights(args.weights, folder)
    content = (folder / WEIGHTS_FILE).read_bytes()
    (folder / WEIGHTS_FILE).unlink()
    size = args.piece * MIB
    for number, start in enumerate(range(0, len(content), size)):
        piece = args.carry / f"start-{number}"
        write_atomically(piece / f"{WEIGHTS_FILE}.{number}", content[start : start + size])
        if number == 0:
            for path in sorted(folder.iterdir()):
                path.rename(piece / path.name)
    folder.rmdir()
    for path in sorted(args.carry.iterdir()):
        print(f"{path}: {sum(file.stat().st_size for file in path.rglob('*') if file.is_file()) / MIB:.1f} MiB")


def unpack_weights_from(carry: Path) -> Path:
    """Join the pieces of the packed weights, and return the folder with the model."""
    pieces = sorted(carry.glob(f"start-*/{WEIGHTS_FILE}.*"), key=lambda path: int(path.suffix[1:]))
    if not pieces:
        raise SystemExit(f"no pieces of the weights in {carry}: pack them first")
    folder = pieces[0].parent
    write_atomically(folder / WEIGHTS_FILE, b"".join(path.read_bytes() for path in pieces))
    return unpack_weights(folder, carry / "e5-small")


# There -----------------------------------------------------------------------------------------


def run(args: argparse.Namespace) -> None:
    """Train, quantize and measure everything; write out/done or out/failed at the end."""
    args.out.mkdir(parents=True, exist_ok=True)
    try:
        run_stages(args)
    except BaseException:
        (args.out / "failed").write_text(traceback.format_exc(), encoding="utf-8")
        raise
    (args.out / "done").write_text("", encoding="utf-8")


def run_stages(args: argparse.Namespace) -> None:
    """Run all stages one after another; the processes of one run side by side."""
    import torch

    torch.set_num_threads(1)  # no threads before the processes fork
    start = unpack_weights_from(args.carry)
    report(args, f"weights in {start}")
    large = [f"reader-12-{seed}" for seed in args.seeds]
    load_all(args, make_recipe(args, "reader-12", start))
    report(args, f"{len(DATA['loaded'].train)} training questions")
    jobs = [
        partial(train_reader, args, name, "reader-12", start, seed, args.minutes_large)
        for name, seed in zip(large, args.seeds)
    ]
    run_jobs(args, dict(zip(large, jobs)))
    small = partial(
        train_reader, args, "reader-6", "reader-6", Path(args.start_small), args.seeds[0], args.minutes_small
    )
    run_jobs(args, {"reader-6": small})
    names = [*large, "reader-6"]
    run_jobs(args, {f"measure-{name}": partial(measure, args, name) for name in [*names, "reader"]})
    figures = {name: json.loads((args.out / f"{name}.json").read_text(encoding="utf-8")) for name in [*names, "reader"]}
    best = max(large, key=lambda name: figures[name]["mean f1"])
    write_atomically(args.out / "figures.json", json.dumps({"best": best} | figures, indent=1).encode())
    collect_results(args, [best, "reader-6"])
    report(args, f"done; the best reader of 12 layers is {best}")


def make_recipe(args: argparse.Namespace, name: str, start: Path) -> dict[str, Any]:
    """Load a recipe with its data, start and the options of the command line."""
    from mnemic.recipe import load_recipe, override
    from mnemic.train.initialize import start_recipe_from

    sets = [f"data.folder={args.carry / 'data'}", "train.validate=0", f"train.log={LOG_STEPS}"]
    if args.tiny:
        sets += TINY
    recipe = load_recipe(name, [*sets, *args.sets], change=partial(start_recipe_from, folder=start))
    if args.tiny:
        recipe = override(recipe, "data.sources", TINY_SOURCES)
        recipe = override(recipe, "model.encode.stack.depth", 1)
    if "teacher" in recipe:
        recipe = override(recipe, "teacher.folder", [str(args.out / f"reader-12-{seed}") for seed in args.seeds])
    return recipe


def load_all(args: argparse.Namespace, recipe: dict[str, Any]) -> None:
    """Read the training data and the evaluation sets, unless they are read."""
    from reader_domains import read_evaluation_sets

    from mnemic.data import DATASETS
    from mnemic.recipe import build

    if DATA:
        return
    DATA["loaded"] = build(DATASETS, recipe["data"]).load()
    sources = [f"data.sources={format_sources(TINY_SOURCES)}"] if args.tiny else []
    DATA["sets"] = read_evaluation_sets("reader-12", sources, str(args.carry / "data"), 12 if args.tiny else 0)


def format_sources(sources: list[dict[str, Any]]) -> str:
    """Format sources as TOML, for an override."""
    rows = (", ".join(f"{key} = {json.dumps(value)}" for key, value in source.items()) for source in sources)
    return f"[{', '.join(f'{{ {row} }}' for row in rows)}]"


def train_reader(args: argparse.Namespace, name: str, recipe_name: str, start: Path, seed: int, minutes: float) -> None:
    """Train one reader for some minutes, and store it in 8 bits, too."""
    import torch

    import mnemic.train.run as training
    from mnemic.checkpoint.folder import load_checkpoint, save_checkpoint
    from mnemic.recipe import override
    from mnemic.reproduce.publish import strip_checkpoint

    recipe = make_recipe(args, recipe_name, start)
    load_all(args, recipe)
    training.load_data = lambda recipe: DATA["loaded"]
    num_probe = TINY_STEPS if args.tiny else PROBE_STEPS
    probe = override(override(recipe, "train.steps", num_probe), "train.epochs", 1000)
    times: list[float] = []
    for step in training.fit(probe, args.out / "probe" / name, seed=seed, device=args.device, fresh=True):
        if step.step in (num_probe // 2, num_probe):
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            times.append(time.monotonic())
        if step.step == num_probe:
            break
    seconds = (times[1] - times[0]) / (num_probe - num_probe // 2)
    steps = max(int(minutes * 60 / seconds), num_probe)
    print(f"{name}: {seconds:.3f} s a step, so at most {steps} steps", flush=True)
    recipe = override(recipe, "train.steps", steps)
    for step in training.fit(recipe, args.out / name, seed=seed, device=args.device):
        if step.row is not None:
            row = step.row
            print(f"{row['step']}/{step.total_steps} loss {row['loss']:.4f} {row.get('losses')}", flush=True)
    checkpoint = load_checkpoint(args.out / name)
    save_checkpoint(args.out / "int8" / name, strip_checkpoint(checkpoint, "int8"), quantize=True)


def measure(args: argparse.Namespace, name: str) -> None:
    """Measure one reader as it will be loaded."""
    from reader_domains import measure_reader

    from mnemic.checkpoint.folder import load_checkpoint
    from mnemic.train.distributed import init_distributed

    folder = args.out / "int8" / name
    checkpoint = load_checkpoint(folder if folder.is_dir() else name)
    figures = measure_reader(checkpoint, DATA["sets"], init_distributed(args.device), args.out / f"{name}.jsonl.gz")
    scores = [value for key, value in figures["validation"]["figures"].items() if key.startswith("f1, ")]
    figures["mean f1"] = sum(scores) / max(len(scores), 1)
    write_atomically(args.out / f"{name}.json", json.dumps(figures, indent=1).encode())


def run_jobs(args: argparse.Namespace, jobs: dict[str, Callable[[], None]]) -> None:
    """Run jobs in parallel, each with a log; raise if one fails."""
    context = get_context("fork")
    processes = {
        name: context.Process(target=run_job, args=(args.out / f"{name}.log", job)) for name, job in jobs.items()
    }
    started = time.monotonic()
    for name, process in processes.items():
        process.start()
        if args.tiny:  # one at a time
            process.join()
        report(args, f"{name} begins")
    for name, process in processes.items():
        process.join()
        report(args, f"{name} ends after {time.monotonic() - started:.0f} s, exit {process.exitcode}")
    if failed := [name for name, process in processes.items() if process.exitcode]:
        raise RuntimeError(f"failed: {', '.join(failed)}; see their logs")


def run_job(log: Path, job: Callable[[], None]) -> None:
    """Run a job in its own process, with its output in a log."""
    with log.open("a", encoding="utf-8") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
        job()


def report(args: argparse.Namespace, text: str) -> None:
    """Append a line to out/log."""
    line = f"{time.strftime('%T')} {text}"
    print(line, flush=True)
    with (args.out / "log").open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def collect_results(args: argparse.Namespace, names: list[str]) -> None:
    """Pack the readers in pieces, and figures, predictions and logs in one file."""
    results = args.out / "results"
    for name in names:
        path = args.out / f"{name}.tar"
        with tarfile.open(path, "w") as archive:
            archive.add(args.out / "int8" / name, name)
        content = path.read_bytes()
        for number, start in enumerate(range(0, len(content), PIECE_BYTES)):
            write_atomically(results / f"{name}.tar.{number}", content[start : start + PIECE_BYTES])
    with tarfile.open(results / "results.tar.gz", "w:gz") as archive:
        for path in sorted(
            [*args.out.glob("*.json*"), *args.out.glob("*.log"), args.out / "log", *args.out.glob("*/log.tsv")]
        ):
            archive.add(path, path.relative_to(args.out))


def start(args: argparse.Namespace) -> None:
    """Start ``run`` in a session of its own, which outlives this command."""
    args.out.mkdir(parents=True, exist_ok=True)
    subprocess.run(["nvidia-cuda-mps-control", "-d"], check=False, capture_output=True) if has_mps() else None
    options = sys.argv[sys.argv.index("start") + 1 :]
    with (args.out / "output").open("w", encoding="utf-8") as file:
        subprocess.Popen(
            [sys.executable, __file__, "run", *options], stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )


def has_mps() -> bool:
    """Whether processes can share the GPU through CUDA's multi-process service."""
    from shutil import which

    return which("nvidia-cuda-mps-control") is not None


def wait(args: argparse.Namespace) -> None:
    """Wait until everything is done, or for some seconds; then copy the results."""
    deadline = time.monotonic() + args.seconds
    while time.monotonic() < deadline and not any((args.out / name).exists() for name in ("done", "failed")):
        time.sleep(1)
    for path in [args.out / "log", *sorted(args.out.glob("*.log")), args.out / "failed"]:
        if path.exists():
            print(f"== {path.name}", *path.read_text(encoding="utf-8").splitlines()[-12:], sep="\n")
    args.results.mkdir(parents=True, exist_ok=True)
    for path in sorted((args.out / "results").glob("*")):
        write_atomically(args.results / path.name, path.read_bytes())
    if (args.out / "figures.json").exists():
        print((args.out / "figures.json").read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("pack")
    command.add_argument("data", type=Path)
    command.add_argument("weights", type=Path, help="a Hugging Face folder")
    command.add_argument("carry", type=Path)
    command.add_argument("--piece", type=int, default=29, help="MiB of weights per piece")
    command.set_defaults(action=pack)
    for name, action in (("run", run), ("start", start)):
        command = commands.add_parser(name)
        command.add_argument("carry", type=Path)
        command.add_argument("out", type=Path)
        command.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
        command.add_argument("--minutes-large", type=float, default=11.0)
        command.add_argument("--minutes-small", type=float, default=4.0)
        command.add_argument("--start-small", default="reader", help="where the reader of 6 layers begins")
        command.add_argument("--set", action="append", default=[], dest="sets", metavar="KEY=VALUE")
        command.add_argument("--device", default="cuda")
        command.add_argument("--tiny", action="store_true", help="on the CPU, in minutes")
        command.set_defaults(action=action)
    command = commands.add_parser("wait")
    command.add_argument("out", type=Path)
    command.add_argument("results", type=Path)
    command.add_argument("--seconds", type=float, default=560)
    command.set_defaults(action=wait)
    args = parser.parse_args()
    if getattr(args, "tiny", False):
        args.device, args.minutes_large, args.minutes_small = "cpu", 0.0, 0.0
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    args.action(args)


if __name__ == "__main__":
    main()
