"""Calibrate the networks that ``reader_mix.py`` trained, and install them in the package.

    python benchmarks/reader_mix.py join RESULTS FOLDER
    python benchmarks/ship_readers.py FOLDER RESULTS --command "python benchmarks/reader_mix.py …"

The probability of "no answer" is fitted to the predictions for held-out questions of all domains
that came back in RESULTS (Platt scaling, which leaves every answer as it is). Cards keep the
sources and licenses of the network that they replace, and have the figures of RESULTS.
"""

import argparse
import gzip
import io
import json
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from reader_mix import DISTILLED, SMALL

from mnemic import __version__
from mnemic.checkpoint.atomic_files import hash_file, write_json
from mnemic.checkpoint.folder import MANIFEST, Checkpoint, load_checkpoint, save_checkpoint
from mnemic.checkpoint.shipped import CARD, WEIGHTS, size_in_bytes
from mnemic.evaluate.calibration import LOGIT_EPS, Calibration, apply_calibration, fit_platt_scaling
from mnemic.files import read_json
from mnemic.reproduce.publish import install_folder

BERT_MASS = "bert-mass"
SHIPPED = {DISTILLED: ("reader", ""), SMALL: ("reader-small", "reader"), BERT_MASS: (BERT_MASS, "reader-small")}
FITTED_SETS = ("validation", "hard")  # whose questions are held out of training


def read_member(results: Path, name: str) -> bytes:
    """Read a file of results.tar.gz."""
    with tarfile.open(results / "results.tar.gz") as archive:
        file = archive.extractfile(name)
        assert file is not None
        return file.read()


def read_predictions(results: Path, name: str) -> Iterator[tuple[str, bool, float]]:
    """Yield each question's set, whether it has an answer, and the probability of that."""
    with gzip.open(io.BytesIO(read_member(results, f"{name}.jsonl.gz")), "rt", encoding="utf-8") as lines:
        for line in lines:
            set_name, _, has_answer, probability, *_ = json.loads(line)
            yield set_name, has_answer, probability


def fit_calibration(results: Path, name: str) -> Calibration:
    """Fit the probability of "no answer" to held-out questions."""
    rows = [row for row in read_predictions(results, name) if row[0] in FITTED_SETS]
    probability = torch.tensor([row[2] for row in rows], dtype=torch.float64)
    return fit_platt_scaling(-probability.logit(LOGIT_EPS), torch.tensor([not row[1] for row in rows]))


def summarize_figures(results: Path, name: str) -> dict[str, float]:
    """Select the figures of a card: SQuAD's, and those of questions that look answerable."""
    figures = json.loads(read_member(results, f"{name}.json"))
    squad = {key: round(value, 2) for key, value in figures["squad"].items()}
    return squad | {f"hard: {key}": value for key, value in figures["hard"]["figures"].items()}


def install(name: str, args: argparse.Namespace) -> None:
    """Install one network, calibrated, with its card."""
    target, shared = SHIPPED[name]
    checkpoint: Checkpoint = load_checkpoint(args.folder / name)
    card: dict[str, Any] = read_json(args.into / target / CARD) | {
        "data": checkpoint.recipe["data"],
        "command": args.command,
        "mnemic": __version__,
        "seconds": round(sum(row["seconds"] for row in checkpoint.progress.history), 1),
    }
    if name != BERT_MASS:
        calibration = fit_calibration(args.results, name)
        print(f"{target}: no-answer logits times {calibration.scale:.3f}, {calibration.shift:+.3f}")
        apply_calibration(checkpoint.network.respond, calibration)
        card["figures"] = summarize_figures(args.results, name)
    with TemporaryDirectory() as temporary_folder:
        folder = Path(temporary_folder) / target
        save_checkpoint(folder, replace(checkpoint, state={}), quantize=True, share_with=shared)
        write_json(folder / CARD, card)
        manifest = read_json(folder / MANIFEST)
        manifest["files"][CARD] = hash_file(folder / CARD)
        write_json(folder / MANIFEST, manifest)
        install_folder(folder, args.into / target)
    print(f"{args.into / target}: {size_in_bytes(args.into / target)} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--command", required=True, help="what trained them, for the cards")
    parser.add_argument("--networks", nargs="+", default=list(SHIPPED), choices=list(SHIPPED))
    args = parser.parse_args()
    args.into = WEIGHTS  # networks that share weights refer to those installed
    for name in args.networks:
        install(name, args)


if __name__ == "__main__":
    main()
