"""Find the text in pictures by rapidocr, whose package has the models."""

from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from mnemic.text.chinese import han_fraction
from mnemic.text.documents.boxes import Box, make_box
from mnemic.text.documents.office.fragment import Fragment
from mnemic.text.documents.office.page_lines import Line, build_lines
from mnemic.text.documents.office.page_text import WordSet, build_page
from mnemic.text.documents.piece import DocumentError, DocumentPiece

INSTALL_OCR = "pip install 'mnemic[ocr]' reads it"
MAX_SIDE = 3000  # pixels; a larger picture is scaled down
MAX_DETECTION_SIDE = 1600  # pixels; lines are found in a smaller copy, and read in the picture
GOOD_SCORE = 0.75  # of an upright picture, on average
SIDEWAYS = 0.5  # factor of the score of a picture whose lines run up or down
STEPS = ("Det", "Rec")  # find lines, read them


class TextBox(NamedTuple):
    """A line of text in a picture, its box in pixels, and its score."""

    text: str
    x_min: float
    top: float
    x_max: float
    bottom: float
    score: float


class UprightText(NamedTuple):
    """The lines of text in an image, turned until they could be read."""

    boxes: list[TextBox]
    size: tuple[int, int]  # height and width of the turned image
    num_turns: int  # counterclockwise


def has_ocr() -> bool:
    """Check whether the packages for text in pictures are installed."""
    return all(find_spec(name) is not None for name in ("rapidocr", "onnxruntime"))


@lru_cache(maxsize=1)
def load_engine() -> Any:
    """Load the models of rapidocr from its package."""
    import rapidocr

    folder = Path(rapidocr.__file__).parent / "models"
    params: dict[str, Any] = {
        "Global.log_level": "critical",
        "Global.max_side_len": MAX_SIDE,
        "Global.use_cls": False,  # it turns single lines that were upright
        "Det.limit_type": "max",
        "Det.limit_side_len": MAX_DETECTION_SIDE,
        "Rec.rec_batch_num": 1,  # lines of a batch are padded to the longest
        "EngineConfig.onnxruntime.intra_op_num_threads": 1,  # others wait for a busy processor
        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
    }
    for step in STEPS:  # rapidocr downloads a model only if it gets no path
        paths = sorted(folder.glob(f"*_{step.lower()}_*.onnx"))
        if not paths:
            raise DocumentError(f"rapidocr has no models in {folder}; pip install --force-reinstall rapidocr")
        params[f"{step}.model_path"] = str(paths[0])
    return rapidocr.RapidOCR(params=params)


def find_boxes(image: Any) -> list[TextBox]:
    """Find the lines of text in an image, an array of height × width × 3 colors."""
    output = load_engine()(image)
    boxes: list[TextBox] = []
    if output.boxes is None or output.txts is None:
        return boxes
    for text, corners, score in zip(output.txts, output.boxes, output.scores):
        (x_min, top), (x_max, bottom) = corners.min(0).tolist(), corners.max(0).tolist()
        if text.strip():
            boxes.append(TextBox(text.strip(), x_min, top, x_max, bottom, float(score)))
    return boxes


def read_image(image: Any, page: int | None = None) -> Iterator[DocumentPiece]:
    """Read the text of an image in reading order; its lines are numbered from 1."""
    upright = find_upright(image)
    height, width = upright.size
    lines = build_lines(build_fragments(upright.boxes, height), width)
    if lines:
        piece = build_page(lines, page, WordSet())
        yield piece._replace(boxes=tuple(locate_line(line, upright) for line in lines))


def locate_line(line: Line, upright: UprightText) -> Box:
    """Return the box of a line in the image before it was turned."""
    assert line.bounds is not None, "a line is made of fragments"
    (x_min, y_min, x_max, y_max), (height, width) = line.bounds, upright.size
    box = make_box(x_min / width, 1 - y_max / height, x_max / width, 1 - y_min / height)
    return box.turn(upright.num_turns)


def find_upright(image: Any) -> UprightText:
    """Find the lines of an image, turned if needed."""
    import numpy

    best, best_score = UprightText([], image.shape[:2], 0), -1.0
    for num_turns in (0, 2, 1, 3):
        if num_turns == 2 and is_sideways(best.boxes):
            continue
        turned = numpy.ascontiguousarray(numpy.rot90(image, num_turns))
        boxes = find_boxes(turned)
        score = sum(box.score for box in boxes) / max(len(boxes), 1) * (SIDEWAYS if is_sideways(boxes) else 1)
        if score > best_score:
            best, best_score = UprightText(boxes, turned.shape[:2], num_turns), score
        if not boxes or score >= GOOD_SCORE:
            break
    return best


def is_sideways(boxes: list[TextBox]) -> bool:
    """Check whether most lines run up or down; rapidocr reads those, but not in order."""
    lines = [box for box in boxes if len(box.text) > 2 and not han_fraction(box.text)]  # Chinese may run down
    return sum(box.bottom - box.top > box.x_max - box.x_min for box in lines) > len(boxes) / 2


def build_fragments(boxes: list[TextBox], height: float) -> list[Fragment]:
    """Build fragments of boxes; those at the same height are one row."""
    fragments: list[Fragment] = []
    row, row_bottom = -1, 0.0
    for box in sorted(boxes, key=lambda box: box.top + box.bottom):
        middle = (box.top + box.bottom) / 2
        if middle > row_bottom:
            row += 1
            row_bottom = box.bottom - 0.2 * (box.bottom - box.top)
        margin = 0.1 * (box.bottom - box.top)  # boxes are a little larger than their lines
        word_width = (box.x_max - box.x_min) * len(box.text.split()[0]) / len(box.text)
        fragments.append(
            Fragment(
                box.text, box.x_min, height - box.bottom + margin, box.x_max, height - box.top - margin, word_width, row
            )
        )
    return sorted(fragments, key=lambda fragment: (fragment.row, fragment.x_min))
