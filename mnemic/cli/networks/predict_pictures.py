"""Describe pictures: one JSON line per picture, and a plot of the gaze."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemic.cli.render.console import print_json_line
from mnemic.cli.text_io import STDIN

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint


def predict_pictures(checkpoint: "Checkpoint", names: Sequence[str], num_beams: int, plot: Path | None) -> None:
    """Describe the pictures of .npy files; plot where the network looked in the first one."""
    from mnemic.data.pictures.files import read_pictures
    from mnemic.predict.captions import caption_pictures

    if STDIN in names:
        raise ValueError("this network looks at pictures: give .npy files with bytes, height × width × colors")
    for name in names:
        pictures = read_pictures(Path(name))
        captions = caption_pictures(checkpoint, pictures, num_beams=num_beams)
        for number, caption in enumerate(captions):
            row = {"file": name, "picture": number, "caption": caption.text}
            gaze = [{"word": gaze.word, "region": list(gaze.region), "weights": gaze.weights} for gaze in caption.gaze]
            print_json_line(row | {"log_probability": caption.log_probability} | ({"gaze": gaze} if gaze else {}))
        if plot is not None and captions:
            plot_first(checkpoint, name, pictures[:1], captions[0], plot)
            plot = None


def plot_first(checkpoint: "Checkpoint", name: str, pictures: Any, caption: Any, plot: Path) -> None:
    """Plot the gaze of a picture's caption."""
    from mnemic.cli.render.plot_gaze import GazePlot, plot_gaze
    from mnemic.predict.captions import to_tensor

    if not caption.gaze:
        raise ValueError("--plot shows where a network looks: this one reads no regions")
    tensor = to_tensor(pictures, checkpoint.sizes["channels"], checkpoint.sizes["side"])
    plot_gaze([GazePlot(Path(name).name, tensor[0], caption)], plot)
