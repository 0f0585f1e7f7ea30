"""How fast a BERT is pre-trained: tokens a second, and the share of the device's own peak.

    python benchmarks/pretraining_speed.py [--data DIR] [--sizes 768x12 512x8] [--steps 60]

The peak is that of one large product of bfloat16 matrices, measured on this machine. Training
steps are those of ``mnemic train bert-pretrain`` at other widths and depths: data, masks, loss,
clipping and AdamW. Only what is needed counts as work: real tokens, no padding, the vocabulary at
masked places alone, three times the forward products. DIR is a folder of ``mnemic data
sequences``; without it sequences are random, with the lengths of English Wikipedia. ``--set``
changes the recipe; ``--heads`` also times a head that scores the vocabulary at every place.
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
from mnemic.data.corpora import CorpusSet, Sequences, corpus_set
from mnemic.models import IGNORE
from mnemic.objectives import OBJECTIVES, Loss
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.masking import TokenMasking
from mnemic.objectives.pretraining import ask
from mnemic.recipe import Recipe, build, load
from mnemic.text import TRAINERS
from mnemic.train.initialize import new_network
from mnemic.train.loop import optimiser_of
from mnemic.train.phases import draws_of, phases, train_phase

VOCAB, LENGTH, MEAN, DEVIATION = 16_384, 128, 108, 17  # of bert-pretrain on English Wikipedia
WARM = 10  # steps before the clock starts: compiling, and the allocator


def timed(work: Callable[[], Any], device: torch.device) -> float:
    """Seconds, from an idle device to an idle device."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def peak(device: torch.device, size: int, repeat: int = 50) -> float:
    """Operations a second of the best of three rows of products."""
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))

    def products() -> None:
        for _ in range(repeat):
            a @ b

    products()
    return 2 * size**3 * repeat / min(timed(products, device) for _ in range(3))


def random_set(count: int, vocab: int) -> CorpusSet:
    """Sequences of random ids, as long as those of a real corpus."""
    dice = np.random.default_rng(0)
    lengths = np.clip(dice.normal(MEAN, DEVIATION, count), 16, LENGTH).astype("<i4")
    lengths[0] = LENGTH
    tokens = dice.integers(5, vocab, lengths.sum()) * 2 + 1
    own = Sequences(tokens.astype("<u2"), lengths, lengths, np.full(count, IGNORE, dtype="|i1"))
    return corpus_set(own, TRAINERS["byte-bpe"](["a"], vocab=300))


def everywhere(network: Any, batch: Any, carried: Any = None) -> Loss:
    """The loss of masked words, after scoring the vocabulary at all places."""
    asked = ask(batch, TokenMasking())
    count = batch.mask.numel()
    targets = torch.full((count + 1,), IGNORE, device=batch.mask.device)
    targets = targets.index_copy(0, asked.inputs.inside, asked.targets)[:-1]
    inside = torch.arange(count, device=batch.mask.device)
    said = network(asked.inputs._replace(inside=inside)).scores
    return Loss(*cross_entropy(said.words.float(), targets), carried)


def work(recipe: Recipe, corpus: CorpusSet, vocab: int) -> float:
    """Operations that a token needs on average, forward and backward."""
    width, stack = recipe["model"]["width"], recipe["model"]["encode"]["stack"]
    inner = stack.get("inner") or 4 * width
    lengths = corpus.lengths.double()
    seen = float(lengths.square().sum() / lengths.sum())  # how many tokens a token sees
    layer = 2 * (4 * width**2 + 2 * width * inner) + 4 * width * seen
    masked = recipe["objective"]["masking"]["rate"] * float(1 - 2 / lengths.mean())
    return 3 * (stack["depth"] * layer + masked * 2 * (width**2 + width * vocab))


def seconds_a_step(recipe: Recipe, corpus: CorpusSet, vocab: int, steps: int) -> float:
    """Train ``steps`` steps against the clock."""
    phase = phases(recipe)[0]
    sizes = {"vocab": vocab, "longest": corpus.longest}
    network = new_network(recipe["model"], sizes, 0).to(corpus.device)
    draws = draws_of(phase, network, corpus, [torch.arange(len(corpus))], [0])
    optimiser = optimiser_of(network, phase.settings)
    going = train_phase(phase, network, corpus, draws, optimiser=optimiser)
    for _ in range(WARM):
        next(going)
    return timed(lambda: [next(going) for _ in range(steps)], corpus.device) / steps


def measured(recipe: Recipe, corpus: CorpusSet, vocab: int, steps: int) -> dict[str, float]:
    """The figures of one size."""
    seconds = seconds_a_step(recipe, corpus, vocab, steps)
    tokens = phases(recipe)[0].settings.batch * float(corpus.lengths.double().mean())
    return {
        "seconds a step": seconds,
        "tokens a second": tokens / seconds,
        "operations a second": work(recipe, corpus, vocab) * tokens / seconds,
        "steps in 10 minutes": 600 / seconds,
    }


def sized(name: str, sets: list[str]) -> Recipe:
    width, depth = (int(part) for part in name.split("x"))
    own = [f"model.width={width}", f"model.encode.stack.depth={depth}", "train.epochs=1000000"]
    heads = f"model.encode.stack.attention.heads={max(width // 64, 1)}"
    return load("bert-pretrain", ["data.folder=", *own, heads, *sets])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="a folder of mnemic data sequences")
    parser.add_argument("--sizes", nargs="+", default=["768x12", "512x8"])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--product", type=int, default=8192, help="rows of the peak's matrices")
    parser.add_argument("--heads", action="store_true")
    parser.add_argument("--set", action="append", default=[], dest="sets")
    parser.add_argument("--out", type=Path, help="a file for the figures, as JSON")
    given = parser.parse_args()
    device = torch.device(given.device)
    OBJECTIVES["everywhere"] = lambda **_: everywhere
    found: dict[str, Any] = {"torch": torch.__version__, "device": str(device)}
    if device.type == "cuda":
        found["device"] = torch.cuda.get_device_name(device)
    found["peak"] = top = peak(device, given.product)
    print(f"{found['device']}: {top / 1e12:.1f} Tflop/s in one product", flush=True)
    for name in given.sizes:
        recipe = sized(name, given.sets)
        corpus, vocab = random_set(20_000, VOCAB), VOCAB
        if given.data:
            data = build(DATASETS, recipe["data"] | {"folder": given.data}).data()
            corpus, vocab = data.train, len(data.words)
        own = measured(recipe, corpus.to(device), vocab, given.steps)
        own["share of peak"] = own["operations a second"] / top
        found[name] = own
        print(
            f"{name}: {1000 * own['seconds a step']:.1f} ms a step, "
            f"{own['tokens a second']:,.0f} tokens/s, {100 * own['share of peak']:.1f} % of peak, "
            f"{own['steps in 10 minutes']:,.0f} steps in 10 minutes",
            flush=True,
        )
        if given.heads:
            whole = recipe | {"objective": {"kind": "everywhere"}}
            slow = seconds_a_step(whole, corpus.to(device), vocab, given.steps)
            own["seconds a step, head everywhere"] = slow
            print(f"  the head at every place: {1000 * slow:.1f} ms a step", flush=True)
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
