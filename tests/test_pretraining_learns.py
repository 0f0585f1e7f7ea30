"""Pre-training from files to falling losses: every part together, in seconds.

Generated documents of which each keeps to one place: the kind of animal tells its food, so masked
words can be known from their neighbours, and the place tells whether two texts belong together.
"""

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from test_readme import ROOT, blocks
from torch import Tensor, nn

from mnemic.data.corpora import FORMATS, Batch, Corpus, Maker, Stream, collate, cut, only, tokenised
from mnemic.encode import TransformerEncoder
from mnemic.objectives.pretraining import PretrainingLoss
from mnemic.objectives.unigram import counts_of, unigram_loss
from mnemic.recipe import build
from mnemic.respond.pretraining import PretrainingHeads, Said
from mnemic.text import TRAINERS, Subwords

FOODS = {"ant": "leaves", "bear": "honey", "cat": "mice", "dog": "bones", "elk": "grass"}
FOODS |= {"frog": "flies", "goat": "paper", "hare": "carrots"}
PLACES = ["Rome", "Oslo", "Lima", "Cairo", "Delhi", "Paris"]
HELD = 0.1


class Bert(nn.Module):
    """The encoder as it is, and the heads."""

    def __init__(self, width: int, vocab: int, *, pairs: bool) -> None:
        super().__init__()
        embeddings, stack = {"kind": "sum", "segments": 2}, {"kind": "encoder", "norm": "pre"}
        self.encode = TransformerEncoder(width, vocab, embeddings=embeddings, stack=stack)
        words = self.encode.embeddings.tokens
        self.respond = PretrainingHeads(width, vocab, words=words, pairs=pairs)

    def forward(self, tokens: Tensor, mask: Tensor, *, segments: Tensor, places: Tensor) -> Said:
        return self.respond(self.encode(tokens, mask, segments=segments), places)


def document(dice: random.Random) -> str:
    place = dice.choice(PLACES)
    animals = dice.choices(sorted(FOODS), k=dice.randint(4, 9))
    return " ".join(f"The {animal} in {place} eats {FOODS[animal]}." for animal in animals)


def corpus_in(folder: Path) -> Corpus:
    dice = random.Random(0)
    rows = [json.dumps({"text": document(dice)}) for _ in range(300)]
    (folder / "corpus.jsonl").write_text("\n".join(rows), encoding="utf-8")
    return Corpus.of([folder])


def batches(
    corpus: Corpus, part: Literal["train", "validation"], tokenizer: Subwords, kind: str
) -> Iterator[Batch]:
    maker = Maker(tokenizer=tokenizer, format=build(FORMATS, {"kind": kind}), most=32)
    stream = Stream(
        read=lambda place: tokenised(only(corpus.read(place), part, validation=HELD), tokenizer),
        make=maker,
        documents=100,
    )
    for dealt in cut(stream.from_position(), tokens=512):
        yield collate(dealt, tokenizer)


def trained(folder: Path, kind: str, objective: PretrainingLoss, steps: int) -> dict[str, float]:
    """The mean losses on held-out documents after training, and the unigram baseline."""
    corpus = corpus_in(folder)
    texts = [one.text for one in only(corpus.read(), "train", validation=HELD)]
    tokenizer = TRAINERS["wordpiece"](texts, vocab=200)
    torch.manual_seed(0)
    network = Bert(32, len(tokenizer), pairs="pair" in kind)
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3)
    seen, unseen = torch.zeros(2, len(tokenizer), dtype=torch.long)
    for batch in islice(batches(corpus, "train", tokenizer, kind), steps):
        loss = objective(network, batch)
        optimiser.zero_grad()
        (loss.total / loss.targets).backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        seen += counts_of(batch.tokens[~batch.fixed], len(tokenizer))
    totals, asked = Counter[str](), Counter[str]()
    for batch in islice(batches(corpus, "validation", tokenizer, kind), 20):
        with torch.no_grad():
            parts = objective.parts(network.eval(), batch)
        totals.update({name: part.total.item() for name, part in parts.items()})  # type: ignore[arg-type]
        asked.update({name: int(part.targets) for name, part in parts.items()})
        unseen += counts_of(batch.tokens[~batch.fixed], len(tokenizer))
    means = {name: totals[name] / asked[name] for name in totals}
    return {**means, "unigram": unigram_loss(seen, unseen)}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("segment-pair", {"masking": {"kind": "tokens"}}),
        ("full-sentences", {"masking": {"kind": "words"}, "nsp": 0.0}),
    ],
)
def test_200_steps_fall_far_below_the_unigram_baseline(
    tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    found = trained(tmp_path, kind, PretrainingLoss(**options), steps=200)
    assert 2 < found["unigram"] < 4
    assert found["mlm"] < 0.5 * found["unigram"]


@pytest.mark.slow
def test_600_steps_learn_which_texts_follow(tmp_path: Path) -> None:
    """A coin costs 0.693; every sixth stranger is of the same place and cannot be told."""
    assert trained(tmp_path, "segment-pair", PretrainingLoss(), steps=600)["nsp"] < 0.58


def test_the_example_of_the_documentation_runs(tmp_path: Path) -> None:
    code = "\n".join(
        b.text for b in blocks(ROOT / "docs" / "pre-training.md") if b.mark == "python"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *_, last = done.stdout.splitlines()
    masked, unigram = (float(word) for word in last.split() if "." in word)
    assert masked < unigram
