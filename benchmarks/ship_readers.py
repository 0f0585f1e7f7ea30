"""Calibrate readers that were trained, and install them in the package.

    python benchmarks/reader_mix.py join RESULTS FOLDER
    python benchmarks/ship_readers.py RESULTS FOLDER/reader-12=reader --command "mnemic train …"

RESULTS has NAME.jsonl.gz and NAME.json of ``reader_mix.py``, or of ``reader_domains.py``. The
probability of "no answer" is fitted to the predictions for held-out questions of all domains
(Platt scaling, which leaves every answer as it is). Cards keep the sources and licenses of the
network that they replace, and have the figures of RESULTS. The networks that share its weights are
stored again, so that they refer to the new file: train them with its frozen word vectors first.
"""

import argparse
import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from mnemic import __version__
from mnemic.checkpoint.atomic_files import hash_file, write_json
from mnemic.checkpoint.folder import MANIFEST, RECIPE, Checkpoint, load_checkpoint, save_checkpoint
from mnemic.checkpoint.shipped import CARD, WEIGHTS, list_networks, size_in_bytes
from mnemic.evaluate.calibration import LOGIT_EPS, Calibration, apply_calibration, fit_platt_scaling
from mnemic.files import read_json
from mnemic.reproduce.publish import install_folder

FITTED_SETS = ("validation", "hard")  # whose questions are held out of training


def read_predictions(results: Path, name: str) -> Iterator[tuple[str, bool, float]]:
    """Yield each question's set, whether it has an answer, and the probability of that."""
    with gzip.open(results / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
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
    report = json.loads((results / f"{name}.json").read_text(encoding="utf-8"))
    squad = {key: report["test"]["figures"][f"{key}, squad_dev"] for key in ("f1", "exact")}
    others = report.get("squad", {}).get("figures", {}).items()  # of both texts of a question, and of finding
    squad |= {key: round(value, 2) for key, value in others if key.startswith(("no answer", "recall"))}
    return squad | {f"hard: {key}": value for key, value in report["hard"]["figures"].items()}


def list_sharing(target: str) -> list[str]:
    """List the shipped networks that share weights with another one."""
    recipes = {name: read_json(WEIGHTS / name / RECIPE) for name in list_networks()}
    return [name for name, recipe in recipes.items() if recipe.get("shared", {}).get("network") == target]


def install(checkpoint: Checkpoint, target: str, card: Mapping[str, Any]) -> None:
    """Install a network with its card; what it shares with another one stays shared."""
    shared = read_json(WEIGHTS / target / RECIPE).get("shared", {}).get("network", "")
    with TemporaryDirectory() as temporary_folder:
        folder = Path(temporary_folder) / target
        save_checkpoint(folder, replace(checkpoint, state={}), quantize=True, share_with=shared)
        write_json(folder / CARD, card)
        manifest = read_json(folder / MANIFEST)
        manifest["files"][CARD] = hash_file(folder / CARD)
        write_json(folder / MANIFEST, manifest)
        install_folder(folder, WEIGHTS / target)
    print(f"{WEIGHTS / target}: {size_in_bytes(WEIGHTS / target)} bytes")


def ship(run: Path, target: str, args: argparse.Namespace) -> None:
    """Calibrate and install one network, and store those that share its weights again."""
    sharing = {name: load_checkpoint(name) for name in list_sharing(target)}
    cards = {name: read_json(WEIGHTS / name / CARD) for name in (target, *sharing)}
    checkpoint = load_checkpoint(run)
    calibration = fit_calibration(args.results, run.name)
    print(f"{target}: no-answer logits times {calibration.scale:.3f}, {calibration.shift:+.3f}")
    apply_calibration(checkpoint.network.respond, calibration)
    card = cards[target] | {
        "data": checkpoint.recipe["data"],
        "command": args.command,
        "mnemic": __version__,
        "seconds": round(sum(row["seconds"] for row in checkpoint.progress.history), 1),
        "figures": summarize_figures(args.results, run.name),
    }
    install(checkpoint, target, card)
    for name, shared_checkpoint in sharing.items():
        install(shared_checkpoint, name, cards[name])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("networks", nargs="+", metavar="RUN=NAME", help="those whose weights others share first")
    parser.add_argument("--command", required=True, help="what trained them, for the cards")
    args = parser.parse_args()
    for network in args.networks:
        run, _, target = network.partition("=")
        ship(Path(run), target, args)


if __name__ == "__main__":
    main()
