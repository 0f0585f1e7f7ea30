"""Measure the speed of BERT pre-training: tokens per second, and share of peak.

    python benchmarks/pretraining_speed.py [--data DIR] [--sizes 768x12 512x8] [--steps 60]

The peak is that of one large product of bfloat16 matrices, measured on this machine. Training steps
are those of ``mnemic train bert-pretrain`` at other widths and depths: data, masks, loss, clipping
and AdamW. Only necessary operations count: real tokens without padding, the output layer at masked
positions only, three times the forward products. DIR is a folder of ``mnemic data sequences``;
without it sequences are random, with the lengths of English Wikipedia. ``--set`` changes the
recipe; ``--heads`` also times an output layer at every position.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mnemic.data import DATASETS
from mnemic.data.corpora.batches import CorpusDataset, make_corpus_dataset
from mnemic.data.corpora.sequence_folder import SequenceArrays
from mnemic.models import IGNORE
from mnemic.objectives import OBJECTIVES, Loss
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.pretraining.masked import mask_batch
from mnemic.objectives.pretraining.token_masking import TokenMasking
from mnemic.recipe import Recipe, build, load_recipe
from mnemic.text import TRAINERS
from mnemic.train.initialize import build_network
from mnemic.train.loop import build_optimizer
from mnemic.train.phases import build_sampler, read_phases, train_phase

VOCAB_SIZE, MAX_LENGTH, MEAN_LENGTH, LENGTH_DEVIATION = 16_384, 128, 108, 17  # of bert-pretrain on English Wikipedia
NUM_WARMUP_STEPS = 10  # not timed: compilation, and the allocator


def time_work(work: Callable[[], Any], device: torch.device) -> float:
    """Return the seconds of some work, from an idle device to an idle device."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started


def measure_peak_flops(device: torch.device, size: int, repeat: int = 50) -> float:
    """Measure operations per second of matrix products, best of three."""
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))

    def products() -> None:
        for _ in range(repeat):
            a @ b

    products()
    return 2 * size**3 * repeat / min(time_work(products, device) for _ in range(3))


def make_random_dataset(count: int, vocab: int) -> CorpusDataset:
    """Make a dataset of random ids with the lengths of a real corpus."""
    generator = np.random.default_rng(0)
    lengths = np.clip(generator.normal(MEAN_LENGTH, LENGTH_DEVIATION, count), 16, MAX_LENGTH).astype("<i4")
    lengths[0] = MAX_LENGTH
    tokens = generator.integers(5, vocab, lengths.sum()) * 2 + 1
    arrays = SequenceArrays(tokens.astype("<u2"), lengths, lengths, np.full(count, IGNORE, dtype="|i1"))
    return make_corpus_dataset(arrays, TRAINERS["byte-bpe"](["a"], vocab=300))


def compute_full_head_loss(network: Any, batch: Any, carried: Any = None) -> Loss:
    """Compute the masked-word loss with an output layer at all positions."""
    masked_batch = mask_batch(batch, TokenMasking())
    count = batch.mask.numel()
    targets = torch.full((count + 1,), IGNORE, device=batch.mask.device)
    targets = targets.index_copy(0, masked_batch.inputs.answer_mask, masked_batch.targets)[:-1]
    all_positions = torch.arange(count, device=batch.mask.device)
    logits = network(masked_batch.inputs._replace(answer_mask=all_positions)).logits
    return Loss(*cross_entropy(logits.masked_logits.float(), targets), carried)


def count_token_flops(recipe: Recipe, corpus: CorpusDataset, vocab: int) -> float:
    """Count the mean operations per token, forward and backward."""
    width, stack = recipe["model"]["width"], recipe["model"]["encode"]["stack"]
    inner = stack.get("inner") or 4 * width
    lengths = corpus.lengths.double()
    tokens_attended = float(lengths.square().sum() / lengths.sum())  # per token, on average
    layer_flops = 2 * (4 * width**2 + 2 * width * inner) + 4 * width * tokens_attended
    masked_share = recipe["objective"]["masking"]["rate"] * float(1 - 2 / lengths.mean())
    return 3 * (stack["depth"] * layer_flops + masked_share * 2 * (width**2 + width * vocab))


def time_step(recipe: Recipe, corpus: CorpusDataset, vocab: int, steps: int) -> float:
    """Train ``steps`` steps and return the mean seconds per step."""
    phase = read_phases(recipe)[0]
    sizes = {"vocab": vocab, "max_length": corpus.max_length}
    network = build_network(recipe["model"], sizes, 0).to(corpus.device)
    sampler = build_sampler(phase, network, corpus, [torch.arange(len(corpus))], [0])
    optimizer = build_optimizer(network, phase.settings)
    steps_iterator = train_phase(phase, network, corpus, sampler, optimizer=optimizer)
    for _ in range(NUM_WARMUP_STEPS):
        next(steps_iterator)
    return time_work(lambda: [next(steps_iterator) for _ in range(steps)], corpus.device) / steps


def measure_size(recipe: Recipe, corpus: CorpusDataset, vocab: int, steps: int) -> dict[str, float]:
    """Measure the speed of one size of network."""
    seconds = time_step(recipe, corpus, vocab, steps)
    tokens = read_phases(recipe)[0].settings.batch * float(corpus.lengths.double().mean())
    return {
        "seconds a step": seconds,
        "tokens a second": tokens / seconds,
        "operations a second": count_token_flops(recipe, corpus, vocab) * tokens / seconds,
        "steps in 10 minutes": 600 / seconds,
    }


def load_sized_recipe(name: str, settings: list[str]) -> Recipe:
    """Load the recipe of a size such as 768x12, width and depth."""
    width, depth = (int(number) for number in name.split("x"))
    sizes = [f"model.width={width}", f"model.encode.stack.depth={depth}", "train.epochs=1000000"]
    heads = f"model.encode.stack.attention.heads={max(width // 64, 1)}"
    return load_recipe("bert-pretrain", ["data.folder=", *sizes, heads, *settings])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="a folder of mnemic data sequences")
    parser.add_argument("--sizes", nargs="+", default=["768x12", "512x8"])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--product", type=int, default=8192, help="rows of the peak's matrices")
    parser.add_argument("--heads", action="store_true")
    parser.add_argument("--set", action="append", default=[], dest="sets")
    parser.add_argument("--out", type=Path, help="a file for the measurements, as JSON")
    args = parser.parse_args()
    device = torch.device(args.device)
    OBJECTIVES["everywhere"] = lambda **_: compute_full_head_loss
    report: dict[str, Any] = {"torch": torch.__version__, "device": str(device)}
    if device.type == "cuda":
        report["device"] = torch.cuda.get_device_name(device)
    report["peak"] = peak_flops = measure_peak_flops(device, args.product)
    print(f"{report['device']}: {peak_flops / 1e12:.1f} Tflop/s in one product", flush=True)
    for name in args.sizes:
        recipe = load_sized_recipe(name, args.sets)
        corpus, vocab = make_random_dataset(20_000, VOCAB_SIZE), VOCAB_SIZE
        if args.data:
            data = build(DATASETS, recipe["data"] | {"folder": args.data}).load()
            corpus, vocab = data.train, len(data.tokenizer)
        metrics = measure_size(recipe, corpus.to(device), vocab, args.steps)
        metrics["share of peak"] = metrics["operations a second"] / peak_flops
        report[name] = metrics
        print(
            f"{name}: {1000 * metrics['seconds a step']:.1f} ms a step, "
            f"{metrics['tokens a second']:,.0f} tokens/s, {100 * metrics['share of peak']:.1f} % of peak, "
            f"{metrics['steps in 10 minutes']:,.0f} steps in 10 minutes",
            flush=True,
        )
        if args.heads:
            full_head_recipe = recipe | {"objective": {"kind": "everywhere"}}
            full_head_s = time_step(full_head_recipe, corpus.to(device), vocab, args.steps)
            metrics["seconds a step, head everywhere"] = full_head_s
            print(f"  the head at every place: {1000 * full_head_s:.1f} ms a step", flush=True)
    if args.out:
        args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
