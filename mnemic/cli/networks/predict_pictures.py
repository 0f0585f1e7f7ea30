"""Predict from pictures: captions, regions of words, or objects, one JSON line per picture."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemic.cli.render.console import print_json_line
from mnemic.cli.text_io import STDIN

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint

METHODS = ("align", "caption", "detect")


def predict_pictures(
    checkpoint: "Checkpoint", method: str, names: Sequence[str], num_beams: int, plot: Path | None
) -> None:
    """Predict from the pictures of .npy files; plot the first one's gaze."""
    from mnemic.data.pictures.files import read_pictures

    if STDIN in names:
        raise ValueError("this network looks at pictures: give .npy files with bytes, height × width × colors")
    for name in names:
        pictures = read_pictures(Path(name))
        if method == "caption":
            plot = describe_pictures(checkpoint, name, pictures, num_beams, plot)
            continue
        rows = align_pictures(checkpoint, name, pictures) if method == "align" else detect_rows(checkpoint, pictures)
        for number, row in enumerate(rows):
            print_json_line({"file": name, "picture": number} | row)


def describe_pictures(
    checkpoint: "Checkpoint", name: str, pictures: Any, num_beams: int, plot: Path | None
) -> Path | None:
    """Print captions of pictures; return ``plot`` if nothing was plotted."""
    from mnemic.predict.captions import caption_pictures

    captions = caption_pictures(checkpoint, pictures, num_beams=num_beams)
    for number, caption in enumerate(captions):
        row = {"file": name, "picture": number, "caption": caption.text}
        gaze = [{"word": gaze.word, "region": list(gaze.region), "weights": gaze.weights} for gaze in caption.gaze]
        print_json_line(row | {"log_probability": caption.log_probability} | ({"gaze": gaze} if gaze else {}))
    if plot is None or not captions:
        return plot
    plot_first(checkpoint, name, pictures[:1], captions[0], plot)
    return None


def align_pictures(checkpoint: "Checkpoint", name: str, pictures: Any) -> Iterator[dict[str, Any]]:
    """Yield the words of each picture's caption with their regions."""
    from mnemic.data.pictures.files import read_captions
    from mnemic.predict.pictures.align import align_captions

    captions = read_captions(Path(name), len(pictures))
    for caption, words in zip(captions, align_captions(checkpoint, pictures, captions)):
        yield {"caption": caption, "words": [asdict(word) for word in words]}


def detect_rows(checkpoint: "Checkpoint", pictures: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of each picture, likeliest first."""
    from mnemic.predict.pictures.detect import detect_objects

    for objects in detect_objects(checkpoint, pictures):
        yield {"objects": [asdict(item) for item in objects]}


def plot_first(checkpoint: "Checkpoint", name: str, pictures: Any, caption: Any, plot: Path) -> None:
    """Plot the gaze of a picture's caption."""
    from mnemic.cli.render.plot_gaze import GazePlot, plot_gaze
    from mnemic.predict.captions import to_tensor

    if not caption.gaze:
        raise ValueError("--plot shows where a network looks: this one reads no regions")
    tensor = to_tensor(pictures, checkpoint.sizes["channels"], checkpoint.sizes["side"])
    plot_gaze([GazePlot(Path(name).name, tensor[0], caption)], plot)
