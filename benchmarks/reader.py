"""How well the reader reads, declines and finds; and what its 8 bits cost.

    python benchmarks/reader.py --data SQUAD [--model reader] [--against runs/reader]

SQUAD is a folder with train-v1.1.json.gz and dev-v1.1.json.gz. Every question of dev is read in its
own paragraph (F1 and exact match, as SQuAD's script counts) and in another of the same article ("no
answer": balanced accuracy), and is searched for among all paragraphs of train and dev (recall). The
figures of --against, say of the run before it was stored in 8 bits, are measured the same way.
--part validation takes the articles that were held back of training instead, --articles the first
few. On a CPU all of dev takes the better part of an hour on one core.
"""

import argparse
import json
import sys
import time
from typing import Any

import torch

from mnemic.checkpoint.folder import Checkpoint, load
from mnemic.data import DATASETS
from mnemic.data.text_tasks.retrieval import ArticleFiles, judged_set
from mnemic.data.text_tasks.splits import room_of
from mnemic.encode import for_inference
from mnemic.evaluate.text_metrics import figures
from mnemic.recipe import build
from mnemic.train.distributed import start_processes

BARS = {"exact": 71.5, "f1": 82.0, "no answer": 85.0, "recall@1": 70.0, "recall@5": 88.0}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder with SQuAD's files")
    parser.add_argument("--model", default="reader", help="a shipped network, or a run's folder")
    parser.add_argument("--against", help="another one, to be compared with it")
    parser.add_argument("--part", choices=["test", "validation"], default="test")
    parser.add_argument("--articles", type=int, default=0, help="only so many; 0: all")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", choices=["float32", "bfloat16", "auto"], default="float32")
    given = parser.parse_args()
    device = start_processes(given.device)
    whole: dict[str, Any] = {"part": given.part, "precision": given.precision}
    for role in ("model", "against"):
        if name := getattr(given, role):
            whole[role] = {"name": name} | measured(load(name), given, device)
    if given.against:
        own, other = whole["model"]["figures"], whole["against"]["figures"]
        whole["gain"] = {name: own[name] - other[name] for name in own}
    whole["bars"] = BARS
    print(json.dumps(whole, indent=1))
    return 0


def measured(checkpoint: Checkpoint, given: argparse.Namespace, device: torch.device) -> Any:
    """All figures of one network."""
    files = build(DATASETS, checkpoint.recipe["data"] | {"folder": given.data})
    if not isinstance(files, ArticleFiles):
        sys.exit(f"error: data of kind {checkpoint.recipe['data']['kind']!r}; expected a reader")
    articles = files.told(given.part)[: given.articles or None]
    more = files.told("train") + files.told("validation") if given.part == "test" else []
    texts = judged_set(articles, checkpoint.tokenizer, room_of(files), more)
    network = for_inference(checkpoint.network.to(device), given.precision)
    began = time.monotonic()
    found = figures(network, texts.to(device))
    return {
        "figures": found,
        "questions": len(texts.search.right) if texts.search else 0,
        "paragraphs": len(texts.search.texts) if texts.search else 0,
        "seconds": round(time.monotonic() - began, 1),
    }


if __name__ == "__main__":
    sys.exit(main())
