"""Time generation against ``transformers`` with the same weights, threads and texts.

    python benchmarks/generation_speed.py [--batch 32] [--repeat 5] [--threads 2] [--tokens 32]

A BART of 6 + 6 layers of width 384, with random weights, is written as a Hugging Face folder and
read by both. Sources have lengths evenly spaced from --shortest to --longest, shuffled: one ragged
batch. Every answer has exactly --tokens tokens, by greedy search and with 4 beams; the texts must
be equal, or the benchmark ends with an error. Both take turns, --repeat times; a ratio is the
median over the turns of their time divided by ours in the same turn. On a busy machine use the
second number, which counts only processor time. With --device cuda both run there, in float32.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from mnemic.checkpoint.folder import Checkpoint, TrainingProgress
from mnemic.checkpoint.seq2seq_folder import save_seq2seq
from mnemic.models import build_model
from mnemic.respond.generate import SearchOptions, search_texts

PAD, END = 1, 2
BEAMS = (1, 4)
MIN_RATIOS = {"cpu": 2.0, "cuda": 1.0}


def make_network(vocab: int, width: int, depth: int, heads: int, length: int) -> Any:
    """Make a BART with random weights that prefer some tokens clearly."""
    attention = {"kind": "full", "heads": heads}
    embeddings = {"kind": "sum", "positions": {"kind": "learned", "length": length}}
    layers = {"depth": depth, "attention": attention, "norm": "post"}
    encode = {"kind": "transformer", "embeddings": embeddings, "stack": {"kind": "encoder", **layers}}
    respond = {"kind": "seq2seq", "embeddings": embeddings, "decoder": {"kind": "transformer", **layers}}
    torch.manual_seed(0)
    network = build_model(
        {"width": width, "encode": encode, "respond": respond}, {"vocab": vocab, "max_length": length}
    )
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if weight.dim() == 2:  # far from a plain copy of the last token, which tied words would give
                weight.normal_(std=(1 if "tokens" in name else 3) * weight.shape[1] ** -0.5)
    return network.eval()


def make_sources(batch: int, shortest: int, longest: int, vocab: int) -> tuple[Tensor, Tensor]:
    """Make a ragged batch of random tokens, and its mask."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.linspace(shortest, longest, batch).round().long()[torch.randperm(batch, generator=generator)]
    tokens = torch.randint(5, vocab, (batch, longest), generator=generator)
    mask = torch.arange(longest) < lengths.unsqueeze(1)
    return torch.where(mask, tokens, PAD), mask


@torch.inference_mode()
def generate(network: Any, tokens: Tensor, mask: Tensor, num_tokens: int, num_beams: int) -> Tensor:
    """Generate the best text of each source with mnemic, b n."""
    options = SearchOptions(END, num_tokens, num_beams, min_tokens=num_tokens)
    states = network.encode(tokens, mask)
    session = network.respond.start_session(states, mask, options)
    start_ids = torch.full(tokens.shape[:1], END, device=tokens.device)
    return search_texts(session, start_ids, options).tokens[:, 0]


def generate_with_transformers(model: Any, tokens: Tensor, mask: Tensor, num_tokens: int, num_beams: int) -> Tensor:
    """Generate the best text of each source with ``transformers``, b n."""
    texts = model.generate(
        input_ids=tokens, attention_mask=mask.long(), max_new_tokens=num_tokens, min_new_tokens=num_tokens,
        num_beams=num_beams, do_sample=False, decoder_start_token_id=END, eos_token_id=END, pad_token_id=PAD,
        bos_token_id=0, forced_eos_token_id=None, forced_bos_token_id=None,
    )  # fmt: skip
    return texts[:, 1:]


def time_in_turns(
    tasks: dict[str, Callable[[], Any]], repeat: int, device: torch.device
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
                spent[name].append((time.perf_counter() - clock, time.process_time() - processor))
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    for name, default in (("batch", 32), ("repeat", 5), ("threads", 2), ("tokens", 32), ("vocab", 16_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in (("shortest", 8), ("longest", 128), ("width", 384), ("depth", 6), ("heads", 6)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    import transformers

    transformers.logging.set_verbosity_error()
    device = torch.device(args.device)
    network = make_network(args.vocab, args.width, args.depth, args.heads, max(args.longest, args.tokens + 1))
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(
            recipe={}, seed=0, sizes={}, tokenizer=None, network=network,  # type: ignore[arg-type]
            progress=TrainingProgress(done=True), state={},
        )  # fmt: skip
        save_seq2seq(Path(folder) / "bart", checkpoint)
        model = transformers.BartForConditionalGeneration.from_pretrained(Path(folder) / "bart").eval().to(device)
    network = network.to(device)
    tokens, mask = (values.to(device) for values in make_sources(args.batch, args.shortest, args.longest, args.vocab))
    hardware = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{args.threads} threads"
    print(
        f"torch {torch.__version__}, transformers {transformers.__version__}, {hardware}; {args.batch} sources of "
        f"{args.shortest} to {args.longest} tokens, padded {mask.numel() / int(mask.sum()):.2f} times as many; "
        f"{args.tokens} new tokens each, {args.depth} + {args.depth} layers of {args.width}, {args.vocab} words"
    )
    for num_beams in BEAMS:
        sizes = (args.tokens, num_beams)
        tasks: dict[str, Callable[[], Tensor]] = {
            "transformers": lambda sizes=sizes: generate_with_transformers(model, tokens, mask, *sizes),  # type: ignore[misc]
            "mnemic": lambda sizes=sizes: generate(network, tokens, mask, *sizes),  # type: ignore[misc]
        }
        expected, texts = (task() for task in tasks.values())
        num_different = int((expected != texts).any(1).sum())
        spent = time_in_turns(tasks, args.repeat, device)
        pairs = list(zip(spent["transformers"], spent["mnemic"]))
        ratios = [median(first[clock] / second[clock] for first, second in pairs) for clock in (0, 1)]
        speeds = {name: args.batch * args.tokens / median(turn[0] for turn in turns) for name, turns in spent.items()}
        name = "greedy" if num_beams == 1 else f"{num_beams} beams"
        print(
            f"{name:8} {len(set(map(tuple, texts.tolist())))} texts, {num_different} differ; tokens a second: "
            f"{speeds['transformers']:.0f} transformers, {speeds['mnemic']:.0f} mnemic; {ratios[0]:.2f}x by the clock, "
            f"{ratios[1]:.2f}x of the processor, wanted {MIN_RATIOS[device.type]:.1f}x"
        )
        if num_different:
            raise SystemExit(f"{num_different} texts differ from those of transformers")


if __name__ == "__main__":
    main()
