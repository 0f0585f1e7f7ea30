"""Measure the reader's answers, rejections and retrieval, and the cost of 8-bit weights.

    python benchmarks/squad_reader.py --data SQUAD [--model reader] [--against runs/reader]

SQUAD is a folder with train-v1.1.json.gz and dev-v1.1.json.gz. The reader answers every question of
dev from its paragraph (F1 and exact match as in SQuAD's script) and from another paragraph of the
same article ("no answer": balanced accuracy), and retrieves its paragraph from all of train and dev
(recall). --against is measured in the same way, for example the run before quantization. --part
validation uses the articles that were held out of training instead, --articles only the first few.
On a CPU all of dev takes most of an hour on one core.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping
from typing import Any

import torch

from mnemic.checkpoint.folder import Checkpoint, load_checkpoint
from mnemic.data import DATASETS
from mnemic.data.contract import Split
from mnemic.data.text_tasks.retrieval import ArticleFiles, make_evaluation_dataset
from mnemic.encode import prepare_for_inference
from mnemic.encode.precision import Precision
from mnemic.evaluate.text_metrics import compute_metrics
from mnemic.recipe import build
from mnemic.train.distributed import init_distributed

TARGETS = {"exact": 71.5, "f1": 82.0, "no answer": 85.0, "recall@1": 70.0, "recall@5": 88.0}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder with SQuAD's files")
    parser.add_argument("--model", default="reader", help="a shipped network, or a run's folder")
    parser.add_argument("--against", help="another one, to be compared with it")
    parser.add_argument("--part", choices=["test", "validation"], default="test")
    parser.add_argument("--articles", type=int, default=0, help="only so many; 0: all")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", choices=["float32", "bfloat16", "auto"], default="float32")
    args = parser.parse_args()
    device = init_distributed(args.device)
    report: dict[str, Any] = {"part": args.part, "precision": args.precision}
    for role in ("model", "against"):
        if name := getattr(args, role):
            checkpoint = load_checkpoint(name)
            data = {"kind": "retrieval", "folder": args.data}
            report[role] = {"name": name} | measure_squad(
                checkpoint, data, device, part=args.part, num_articles=args.articles, precision=args.precision
            )
    if args.against:
        model_metrics, other_metrics = report["model"]["figures"], report["against"]["figures"]
        report["gain"] = {name: model_metrics[name] - other_metrics[name] for name in model_metrics}
    report["bars"] = TARGETS
    print(json.dumps(report, indent=1))
    return 0


def measure_squad(
    checkpoint: Checkpoint, data: Mapping[str, Any], device: torch.device, *, part: Split = "test",
    num_articles: int = 0, precision: Precision = "float32",
) -> dict[str, Any]:  # fmt: skip
    """Measure all metrics of one network on SQuAD, as ``data`` reads it."""
    files = build(DATASETS, data)
    if not isinstance(files, ArticleFiles):
        sys.exit(f"error: data of kind {data['kind']!r}; expected a reader")
    articles = files.read_split(part)[: num_articles or None]
    extra_articles = files.read_split("train") + files.read_split("validation") if part == "test" else []
    texts = make_evaluation_dataset(articles, checkpoint.tokenizer, files.window_options, extra_articles)
    network = prepare_for_inference(checkpoint.network.to(device), precision)
    started = time.monotonic()
    metrics = compute_metrics(network, texts.to(device))
    return {
        "figures": metrics,
        "questions": len(texts.retrieval.gold_texts) if texts.retrieval else 0,
        "paragraphs": len(texts.retrieval.texts) if texts.retrieval else 0,
        "seconds": round(time.monotonic() - started, 1),
    }


if __name__ == "__main__":
    sys.exit(main())
