"""Train the readers of 12 and 6 layers on a mix of domains, on a machine without a network.

Here, once (DATA has squad and qa; E5 is a folder made by convert_e5.py):

    python benchmarks/reader_mix.py pack DATA E5 carry

makes carry/questions (encoded for training, and those for measuring), carry/data (SQuAD) and
carry/e5-small-0 …, of at most --piece MiB, to be copied one by one into one folder. There:

    python benchmarks/reader_mix.py start carry out       begins in the background, and returns
    python benchmarks/reader_mix.py wait out RESULTS --seconds 560        again until it says done

``start`` takes the options of ``run``, which does the same in the foreground, and waits for pieces
that are not there yet. It trains side by side a reader of 12 layers and a teacher per --seeds,
which only reads (those of odd seeds mostly Wikipedia); trains the reader on with the answers of all
of them, once per seed, and averages these; then one of 6 layers, from the layers of that mean, and
its answers; then bert-mass with that one's encoder; and measures them by domain. With --go-on both
readers go on from copies of folders in carry/weights: reader and reader-small. --minutes are those
of the first readers, of the distilled ones, of the layers, and of the small reader. A run first
takes a few steps to learn how many fit into its minutes. --compare are networks to measure beside
them. RESULTS gets the networks in 8 bits as soon as they are there, in pieces of 15 MiB (``join``
puts them together), and results.tar.gz: figures, predictions and logs. --tiny does everything on
the CPU in minutes, with few questions and networks of few layers, to see that it works.
"""

import argparse
import gzip
import io
import json
import lzma
import os
import shutil
import sys
import tarfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from background_run import report, start_in_background
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
FIRST, TEACHER, DISTILLED = "reader-12", "reader-12-teacher", "reader-12-distilled"
LAYERS, SMALL = "reader-6-layers", "reader-small"
TINY_DEPTHS = {FIRST: 2, TEACHER: 2, DISTILLED: 2, LAYERS: 1, SMALL: 1}
FROZEN = 'train.frozen=["encode.embeddings.tokens"]'  # word vectors that both readers share
GO_ON = {FIRST: ["train.batch=128", "train.rate=0.00012", FROZEN], DISTILLED: [FROZEN]}
WIKIPEDIA_WEIGHT = 3.0  # of its questions for teachers of odd seeds
START = "e5-small"
QUESTIONS_FILE = "questions.xz"
TENSORS_FILE, MISSING = "weights.safetensors", "missing.json"
PARENTS = {SMALL: (DISTILLED, FIRST), "bert-mass": (SMALL,)}  # whose weights a network shares, the first that is there
DATA: dict[str, Any] = {}  # what the parent process has read, for its children: "loaded", "articles", "sets"


# Here ------------------------------------------------------------------------------------------


def pack(args: argparse.Namespace) -> None:
    """Pack the questions and SQuAD's files as .xz, and the weights in pieces."""
    for path in sorted((args.data / "squad").glob("*-v1.1.json.gz")):
        content = lzma.compress(gzip.decompress(path.read_bytes()), preset=9)
        write_atomically(args.carry / "data" / "squad" / f"{path.stem}.xz", content)
    pack_questions(args)
    pack_network(args.start, args.carry, START, args.piece * MIB)
    for path in sorted(args.carry.iterdir()):
        print(f"{path}: {sum(file.stat().st_size for file in path.rglob('*') if file.is_file()) / MIB:.1f} MiB")


def pack_questions(args: argparse.Namespace) -> None:
    """Read and encode all questions, and pack them; token ids take two bytes."""
    import torch
    from reader_domains import read_evaluation_sets

    from mnemic.data import DATASETS
    from mnemic.data.text_tasks.altered_questions import ALTERED_SUFFIX
    from mnemic.recipe import build, load_recipe
    from mnemic.train.initialize import start_recipe_from

    sources = [f"data.sources={format_sources(TINY_SOURCES)}"] if args.tiny else []
    sets = [f"data.folder={args.data}", *sources]
    recipe = load_recipe("reader-12", sets, change=partial(start_recipe_from, folder=args.start))
    files = build(DATASETS, recipe["data"])
    loaded = files.load()._replace(validation=None)
    articles = [(article.source.path, len(article.examples)) for article in list_articles(files)]
    ids = [example.question_id for article in list_articles(files) for example in article.examples]
    pool, train = loaded.train.token_pool, replace(loaded.train, token_pool=torch.empty(0))
    packed = {
        "loaded": loaded._replace(train=train), "token_pool": pool.to(torch.uint16), "articles": articles,
        "is_altered": torch.tensor([question_id.endswith(ALTERED_SUFFIX) for question_id in ids]),
        "sets": read_evaluation_sets("reader-12", sources, str(args.data), 12 if args.tiny else 0),
    }  # fmt: skip
    file = io.BytesIO()
    torch.save(packed, file)
    write_atomically(args.carry / "questions" / QUESTIONS_FILE, lzma.compress(file.getvalue(), preset=6))


def format_sources(sources: list[dict[str, Any]]) -> str:
    """Format sources as TOML, for an override."""
    rows = (", ".join(f"{key} = {json.dumps(value)}" for key, value in source.items()) for source in sources)
    return f"[{', '.join(f'{{ {row} }}' for row in rows)}]"


def list_articles(files: Any) -> list[Any]:
    """List the articles of the training questions, in the order of the dataset."""
    from mnemic.data.text_tasks.questions import split_answer_lists

    return split_answer_lists(files.articles_by_split["train"])


def pack_network(weights: Path, carry: Path, name: str, piece_bytes: int) -> None:
    """Pack a Hugging Face folder in pieces; the last one is marked."""
    folder = carry / name
    pack_weights(weights, folder)
    content = (folder / WEIGHTS_FILE).read_bytes()
    (folder / WEIGHTS_FILE).unlink()
    starts = range(0, len(content), piece_bytes)
    for number, start in enumerate(starts):
        piece = carry / f"{name}-{number}"
        suffix = ".last" if number == len(starts) - 1 else ""
        write_atomically(piece / f"{WEIGHTS_FILE}.{number}{suffix}", content[start : start + piece_bytes])
        for path in sorted(folder.iterdir()) if number == 0 else ():
            path.rename(piece / path.name)
    folder.rmdir()


def join(args: argparse.Namespace) -> None:
    """Put the networks of RESULTS together, as checkpoints in FOLDER."""
    for path in sorted(args.results.glob("*.tar.0")):
        name = path.name.removesuffix(".tar.0")
        pieces = sorted(args.results.glob(f"{name}.tar.*"), key=lambda piece: int(piece.suffix[1:]))
        joined = args.folder / f"{name}.tar"
        write_atomically(joined, b"".join(piece.read_bytes() for piece in pieces))
        with tarfile.open(joined) as archive:
            archive.extractall(args.folder, filter="data")
        joined.unlink()
    for path in sorted(args.folder.glob(f"*/{MISSING}"), key=lambda path: list(PARENTS).index(path.parent.name)):
        restore_shared(path.parent, find_parent(path.parent))
    print(*sorted(args.folder.iterdir()), sep="\n")


def find_parent(folder: Path) -> Path:
    """Find the network, in the same folder, whose weights a network shares."""
    parents = (folder.parent / name for name in PARENTS[folder.name])
    return next(parent for parent in parents if parent.is_dir())


def drop_shared(folder: Path, parent: Path) -> None:
    """Drop from a checkpoint's file the tensors that are those of its parent."""
    from safetensors.torch import load_file, save_file

    weights, shared = load_file(folder / TENSORS_FILE), load_file(parent / TENSORS_FILE)
    missing = [name for name, value in weights.items() if name in shared and value.equal(shared[name])]
    save_file({name: value for name, value in weights.items() if name not in missing}, folder / TENSORS_FILE)
    write_atomically(folder / MISSING, json.dumps(missing).encode())


def restore_shared(folder: Path, parent: Path) -> None:
    """Copy the tensors that ``drop_shared`` left out from the parent."""
    from safetensors.torch import load_file, save_file

    weights, shared = load_file(folder / TENSORS_FILE), load_file(parent / TENSORS_FILE)
    missing = json.loads((folder / MISSING).read_text(encoding="utf-8"))
    save_file(weights | {name: shared[name] for name in missing}, folder / TENSORS_FILE)
    (folder / MISSING).unlink()


# There -----------------------------------------------------------------------------------------


def wait_for_network(carry: Path, name: str) -> Path:
    """Wait for all pieces of a packed network, join them, and return its folder."""
    while (
        not (last := list(carry.glob(f"{name}-*/{WEIGHTS_FILE}.*.last")))
        or len(pieces := list(carry.glob(f"{name}-*/{WEIGHTS_FILE}.*"))) < int(last[0].name.split(".")[-2]) + 1
    ):
        time.sleep(0.5)
    pieces.sort(key=lambda path: int(path.name.removesuffix(".last").rpartition(".")[2]))
    folder = pieces[0].parent
    write_atomically(folder / WEIGHTS_FILE, b"".join(path.read_bytes() for path in pieces))
    return unpack_weights(folder, carry / name)


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
    teachers = [f"{TEACHER}-{seed}" for seed in args.seeds]
    load_questions(args.carry / "questions" / QUESTIONS_FILE)
    start = wait_for_network(args.carry, START)
    report(args, f"{len(DATA['loaded'].train)} training questions")
    minutes, seed, weights = args.minutes, args.seeds[0], args.carry / "weights"
    first_start = weights / "reader" if args.go_on else start
    jobs = {FIRST: partial(train_reader, args, FIRST, first_start, seed, minutes[0])}
    jobs |= {
        name: partial(train_reader, args, name, start, seed, minutes[0]) for name, seed in zip(teachers, args.seeds)
    }
    run_jobs(args, {**jobs, "measure-others": partial(measure_others, args)})
    distilled = [f"{DISTILLED}-{seed}" for seed in args.seeds]
    jobs = {
        name: partial(train_reader, args, name, args.out / FIRST, seed, minutes[1])
        for name, seed in zip(distilled, args.seeds)
    }
    run_jobs(args, jobs | {f"measure-{name}": partial(measure, args, name) for name in teachers})
    run_jobs(args, {"average": partial(average, args, distilled)})
    collect_network(args, DISTILLED)
    measurements = {f"measure-{name}": partial(measure, args, name) for name in (DISTILLED, FIRST)}
    if args.go_on:
        small_start = weights / "reader-small"
    else:
        small_start = args.out / LAYERS
        layers = partial(train_reader, args, LAYERS, args.out / DISTILLED, seed, minutes[2])
        run_jobs(args, {LAYERS: layers})
    run_jobs(args, {SMALL: partial(train_reader, args, SMALL, small_start, seed, minutes[3]), **measurements})
    collect_network(args, SMALL)
    collect_figures(args)
    measure_small = partial(measure, args, SMALL)
    run_jobs(args, {f"measure-{SMALL}": measure_small, "bert-mass": partial(train_bert_mass, args)})
    collect_network(args, "bert-mass")
    collect_figures(args)
    report(args, "done")


def average(args: argparse.Namespace, names: list[str]) -> None:
    """Average the distilled readers of all seeds, and store their mean in 8 bits."""
    from mnemic.checkpoint.average import average_checkpoints

    if len(names) == 1:
        shutil.copytree(args.out / names[0], args.out / DISTILLED)
    else:
        average_checkpoints([args.out / name for name in names], args.out / DISTILLED)
    save_int8(args, DISTILLED)


def make_recipe(args: argparse.Namespace, name: str, start: Path) -> dict[str, Any]:
    """Load a recipe with its data, start and the options of the command line."""
    from mnemic.recipe import load_recipe, override
    from mnemic.train.initialize import start_recipe_from

    sets = [f"data.folder={args.carry / 'data'}", "train.validate=0", f"train.log={LOG_STEPS}", "train.save=100000"]
    if args.tiny:
        sets += [*TINY, f"model.encode.stack.depth={TINY_DEPTHS[name]}"]
    if args.go_on:
        sets += GO_ON.get(name, [])
    recipe = load_recipe(name, [*sets, *args.sets], change=partial(start_recipe_from, folder=start))
    if "teacher" in recipe:
        names = [FIRST, *(f"{TEACHER}-{seed}" for seed in args.seeds)] if name == DISTILLED else [DISTILLED]
        recipe = override(recipe, "teacher.folder", [str(args.out / teacher) for teacher in names])
    return recipe


def load_questions(path: Path) -> None:
    """Load the training data and the evaluation sets."""
    import torch

    packed = torch.load(io.BytesIO(lzma.decompress(path.read_bytes())), weights_only=False)  # our own file
    loaded = packed["loaded"]
    train = replace(loaded.train, token_pool=packed["token_pool"].long())
    loaded = loaded._replace(train=train, validation=())
    DATA.update(loaded=loaded, **{name: packed[name] for name in ("articles", "is_altered", "sets")})


def encode_sets(args: argparse.Namespace) -> None:
    """Encode the evaluation sets once for all readers, which have one vocabulary."""
    import torch
    from reader_domains import encode_set

    tokenizer, length = DATA["loaded"].tokenizer, DATA["loaded"].sizes["max_length"]
    sets = {name: encode_set(examples, tokenizer, length) for name, examples in DATA["sets"].items() if examples}
    torch.save(sets, args.out / "sets.pt")


def train_reader(args: argparse.Namespace, name: str, start: Path, seed: int, minutes: float) -> None:
    """Train one reader for some minutes, and store it in 8 bits, too."""
    import torch

    import mnemic.train.run as training
    from mnemic.evaluate.calibration import Calibration
    from mnemic.recipe import override

    kind = name if name in TINY_DEPTHS else name.rpartition("-")[0]  # without its seed
    recipe = make_recipe(args, kind, start)
    if kind == TEACHER and seed % 2:
        recipe = override(recipe, "data.sources", prefer_wikipedia(recipe["data"]["sources"]))
    train = change_mix(recipe["data"])
    print(f"{float(train.weights.sum()):.0f} questions an epoch", flush=True)
    training.load_data = lambda recipe: DATA["loaded"]._replace(train=train)
    training.calibrate_no_answer = lambda network, dataset: Calibration(1.0, 0.0)  # later, on all domains
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
    if name != LAYERS:
        save_int8(args, name)


def prefer_wikipedia(sources: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return sources with a greater weight of those from Wikipedia."""
    factors = [WIKIPEDIA_WEIGHT if source.get("domain") == "wikipedia" else 1.0 for source in sources]
    return [{**source, "weight": factor * source.get("weight", 1.0)} for source, factor in zip(sources, factors)]


def change_mix(data: dict[str, Any]) -> Any:
    """Return the training set with a recipe's weights of sources, articles and passages."""
    import torch

    train = DATA["loaded"].train
    mix = train.mix._replace(
        num_articles=data["articles"],
        texts_per_article=data["passages"],
        questions_per_text=data["questions_per_passage"],
        wrong_fraction=data["negatives"],
    )
    weights = {source.get("path", ""): source.get("weight", 1.0) for source in reversed(data["sources"])}
    counts = torch.tensor([count for _, count in DATA["articles"]])
    by_article = torch.tensor([weights.get(path, 1.0) for path, _ in DATA["articles"]])
    by_question = by_article.repeat_interleave(counts)
    if not data["augment"].get("altered"):
        by_question = by_question.masked_fill(DATA["is_altered"], 0)
    return replace(train, mix=mix, weights=by_question)


def save_int8(args: argparse.Namespace, name: str) -> None:
    """Store a network as it ships."""
    from mnemic.checkpoint.folder import load_checkpoint, save_checkpoint
    from mnemic.reproduce.publish import strip_checkpoint

    checkpoint = strip_checkpoint(load_checkpoint(args.out / name), "int8")
    save_checkpoint(args.out / "int8" / name, checkpoint, quantize=True)


def train_bert_mass(args: argparse.Namespace) -> None:
    """Train bert-mass on SQuAD's articles, with the encoder of the small reader."""
    from mnemic.recipe import load_recipe
    from mnemic.train.initialize import start_recipe_from
    from mnemic.train.run import fit

    sets = [f"data.folder={args.carry / 'data' / 'squad'}", "train.validate=0", "train.save=100000"]
    if args.tiny:
        sets += [f"phases.{number}.train.steps=1" for number in range(4)] + [
            "train.workers=0", "train.matmul=float32", "data.segments=2", "data.length=64",
            *(f"phases.{number}.train.segments=2" for number in range(4)),
            *(f"phases.{number}.train.batch=2" for number in range(4)),
        ]  # fmt: skip
    change = partial(start_recipe_from, folder=args.out / "int8" / SMALL)
    recipe = load_recipe("bert-mass-articles", sets, change=change)
    for step in fit(recipe, args.out / "bert-mass", seed=0, device=args.device):
        if step.row is not None:
            print(f"{step.phase} {step.row['step']}/{step.total_steps} loss {step.row['loss']:.4f}", flush=True)
    save_int8(args, "bert-mass")


def measure(args: argparse.Namespace, name: str) -> None:
    """Measure one reader as it will be loaded: by domain, and on SQuAD with retrieval."""
    import torch
    from reader_domains import measure_reader
    from squad_reader import measure_squad

    from mnemic.checkpoint.folder import load_checkpoint
    from mnemic.train.distributed import init_distributed

    folder, device = args.out / "int8" / Path(name).name, init_distributed(args.device)
    checkpoint = load_checkpoint(folder if folder.is_dir() else name)
    sets = torch.load(args.out / "sets.pt", weights_only=False)  # our own file
    figures = measure_reader(checkpoint, sets, device, args.out / f"{folder.name}.jsonl.gz")
    if not args.tiny and TEACHER not in name:
        data = {"kind": "retrieval", "folder": str(args.carry / "data" / "squad")}
        figures["squad"] = measure_squad(checkpoint, data, device)
    write_atomically(args.out / f"{folder.name}.json", json.dumps(figures, indent=1).encode())


def measure_others(args: argparse.Namespace) -> None:
    """Encode the evaluation sets, and measure networks that are trained already."""
    encode_sets(args)
    for name in args.compare:
        measure(args, name)
        print(name, flush=True)


def run_jobs(args: argparse.Namespace, jobs: Mapping[str, Callable[[], None]]) -> None:
    """Run jobs in parallel, each with a log; raise if one fails that others need."""
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
    failed = [name for name, process in processes.items() if process.exitcode]
    if failed := [name for name in failed if args.tiny or not name.startswith("measure")]:
        raise RuntimeError(f"failed: {', '.join(failed)}; see their logs")


def run_job(log: Path, job: Callable[[], None]) -> None:
    """Run a job in its own process, with its output in a log."""
    with log.open("a", encoding="utf-8") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
        job()


def collect_network(args: argparse.Namespace, name: str) -> None:
    """Pack a network in pieces, without the weights that it shares."""
    folder = args.out / "int8" / name
    if name in PARENTS:
        folder = args.out / "packed" / name
        shutil.copytree(args.out / "int8" / name, folder)
        drop_shared(folder, find_parent(args.out / "int8" / name))
    path = args.out / f"{name}.tar"
    with tarfile.open(path, "w") as archive:
        archive.add(folder, name)
    content = path.read_bytes()
    for number, start in enumerate(range(0, len(content), PIECE_BYTES)):
        write_atomically(args.out / "results" / f"{name}.tar.{number}", content[start : start + PIECE_BYTES])


def collect_figures(args: argparse.Namespace) -> None:
    """Pack figures, predictions and logs in one file."""
    path = args.out / "results" / "results.tar.gz"
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for file in sorted(
            [*args.out.glob("*.json*"), *args.out.glob("*.log"), args.out / "log", *args.out.glob("*/log.tsv")]
        ):
            archive.add(file, file.relative_to(args.out))


def start(args: argparse.Namespace) -> None:
    """Start ``run`` in a session of its own, which outlives this command."""
    start_in_background(__file__, args.out)


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
    for path in sorted(args.out.glob("*.json")):
        print(path.name, path.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("pack")
    command.add_argument("data", type=Path)
    command.add_argument("start", type=Path, help="a Hugging Face folder")
    command.add_argument("carry", type=Path)
    command.add_argument("--tiny", action="store_true", help="few questions, for run --tiny")
    command.add_argument("--piece", type=int, default=29, help="MiB of weights per piece")
    command.set_defaults(action=pack)
    for name, action in (("run", run), ("start", start)):
        command = commands.add_parser(name)
        command.add_argument("carry", type=Path)
        command.add_argument("out", type=Path)
        command.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
        command.add_argument("--minutes", type=float, nargs="+", default=[7.2, 5.6, 2.0, 4.0])
        command.add_argument("--go-on", action="store_true", help="from the readers in carry/weights")
        command.add_argument("--compare", nargs="+", default=[], metavar="NETWORK")
        command.add_argument("--set", action="append", default=[], dest="sets", metavar="KEY=VALUE")
        command.add_argument("--device", default="cuda")
        command.add_argument("--tiny", action="store_true", help="on the CPU, in minutes")
        command.set_defaults(action=action)
    command = commands.add_parser("join")
    command.add_argument("results", type=Path)
    command.add_argument("folder", type=Path)
    command.set_defaults(action=join)
    command = commands.add_parser("wait")
    command.add_argument("out", type=Path)
    command.add_argument("results", type=Path)
    command.add_argument("--seconds", type=float, default=560)
    command.set_defaults(action=wait)
    args = parser.parse_args()
    if getattr(args, "tiny", False):
        args.device, args.minutes = "cpu", [0.0, 0.0, 0.0, 0.0]
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    args.action(args)


if __name__ == "__main__":
    main()
