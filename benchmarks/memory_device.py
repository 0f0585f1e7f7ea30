"""Open memories whose networks compute on a GPU, for benchmarks that ask thousands of questions.

Answers are the same but for rounding: on a GPU the networks compute in float32, on a processor in
bfloat16 where it has instructions for it. Times are those of a GPU, and mean nothing.
"""

from dataclasses import replace
from pathlib import Path

import torch

from mnemic import Memory
from mnemic.checkpoint.folder import Checkpoint, load_checkpoint
from mnemic.checkpoint.shipped import EMBEDDERS, READERS
from mnemic.encode import prepare_for_inference
from mnemic.store.answer.reader import SpanReader, resolve_reader
from mnemic.store.retrieve.embedders import CheckpointEmbedder, resolve_embedder


def open_memory(path: Path, device: str = "cpu", *, embedder: str = EMBEDDERS[0], reader: str = READERS[0]) -> Memory:
    """Open a memory, with its networks on a device; it is made with this embedder."""
    if device == "cpu":
        return Memory(path, embedder=embedder, reader=reader)
    torch.set_float32_matmul_precision("high")
    embedding, reading = resolve_embedder(embedder), resolve_reader(reader)
    assert isinstance(embedding, CheckpointEmbedder)
    assert isinstance(reading, SpanReader)
    embedding.checkpoint = load_on_device(embedder, device)
    vars(reading)["checkpoint"] = load_on_device(reader, device)
    return Memory(path, embedder=embedding, reader=reading)


def load_on_device(name: str, device: str) -> Checkpoint:
    """Load a checkpoint for inference in float32 on a device."""
    checkpoint = load_checkpoint(name)
    return replace(checkpoint, network=prepare_for_inference(checkpoint.network.to(device), "float32"))
