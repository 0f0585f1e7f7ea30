"""Read and write pictures as NumPy files, so that no library of pictures is needed."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from mnemic.data.pictures.captions import describe_scene
from mnemic.data.pictures.draw import draw_scenes
from mnemic.data.pictures.scenes import Scene
from mnemic.data.text_tasks.examples import TextError
from mnemic.data.text_tasks.files import read_lines
from mnemic.data.text_tasks.tables import parse_json_lines
from mnemic.files import ANYONE, replace_file, write_text


def read_pictures(path: Path) -> NDArray[numpy.uint8]:
    """Read the pictures of a .npy file: n y x c, bytes."""
    if path.suffix != ".npy":
        raise TextError(
            f"{path}: this network looks at pictures: give a .npy file with an array of bytes, height × width × colors "
            "or several of these, as numpy.save writes it"
        )
    try:
        pictures = numpy.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise TextError(f"{path} is no .npy file of numbers: {error}") from None
    if pictures.dtype != numpy.uint8 or pictures.ndim not in (3, 4):
        raise TextError(
            f"{path} has {pictures.dtype} of shape {pictures.shape}; expected uint8, height × width × colors or "
            "several of these"
        )
    return pictures.reshape(-1, *pictures.shape[-3:])


def read_captions(path: Path, count: int) -> list[str]:
    """Read the captions of a .npy file's pictures from the .jsonl beside it."""
    captions_path = path.with_suffix(".jsonl")
    expected = f'one JSON line per picture, such as {{"caption": "a red ring"}}, in {captions_path}'
    if not captions_path.is_file():
        raise TextError(f"{path}: this network finds the words of a caption in its picture: give {expected}")
    captions = []
    for number, row in parse_json_lines(read_lines(captions_path), str(captions_path)):
        if not isinstance(row.get("caption"), str):
            raise TextError(f"{captions_path}, line {number}: there is no caption: give {expected}")
        captions.append(str(row["caption"]))
    if len(captions) != count:
        raise TextError(f"{captions_path} has {len(captions)} captions for {count} pictures: give {expected}")
    return captions


def write_scenes(scenes: Sequence[Scene], path: Path) -> None:
    """Write pictures of scenes as .npy, and their captions and boxes as .jsonl."""
    with replace_file(path, mode=ANYONE) as file:
        numpy.save(file, draw_scenes(scenes).movedim(1, -1).numpy())
    rows = [json.dumps(describe(scene)) for scene in scenes]
    write_text(path.with_suffix(".jsonl"), "".join(f"{row}\n" for row in rows))


def describe(scene: Scene) -> dict[str, Any]:
    """Describe a scene as a JSON object."""
    objects = [
        {"shape": item.shape, "color": item.color, "size": item.size, "box": [round(edge, 2) for edge in item.box]}
        for item in scene
    ]
    return {"caption": describe_scene(scene).text, "objects": objects}
