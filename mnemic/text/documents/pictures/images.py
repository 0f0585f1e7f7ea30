"""Read pictures (.png, .jpg, .tiff and others): the text that they show."""

from collections.abc import Iterator
from typing import Any

from mnemic.text.documents.pictures.ocr import INSTALL_OCR, MAX_SIDE, has_ocr, read_image
from mnemic.text.documents.piece import DocumentError, DocumentPart, Note, Source

MAX_PIXELS = 100_000_000
MAX_FRAMES = 500  # pages of a TIFF file
FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF")


def read_picture(source: Source) -> Iterator[DocumentPart]:
    """Read one piece per page of a picture; a page without text becomes a note."""
    if not has_ocr():
        raise DocumentError(f"a picture; {INSTALL_OCR}")
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None  # the limit here is an error, not a warning
    try:
        with source.path.open("rb") as file, Image.open(file, formats=FORMATS) as image:
            num_frames = getattr(image, "n_frames", 1) if image.format == "TIFF" else 1
            for number in range(min(num_frames, MAX_FRAMES)):
                image.seek(number)
                page = number + 1 if num_frames > 1 else None
                pieces: list[DocumentPart] = list(read_image(convert_image(image), page))
                yield from pieces or [Note(f"page {page} shows no text" if page else "it shows no text")]
    except (Image.UnidentifiedImageError, SyntaxError, ValueError, EOFError, OSError) as error:
        if isinstance(error, DocumentError):
            raise
        reason = "" if isinstance(error, Image.UnidentifiedImageError) else f": {error}"
        raise DocumentError(f"this is no picture that can be read{reason}") from None
    if num_frames > MAX_FRAMES:
        yield Note(f"only the first {MAX_FRAMES} of {num_frames:,} pages were read")


def convert_image(image: Any) -> Any:
    """Convert an image to an array of colors, upright and on white."""
    import numpy
    from PIL import Image, ImageOps

    check_pixels(image.width, image.height)
    upright = ImageOps.exif_transpose(reduce_image(image)).convert("RGBA")
    canvas = Image.new("RGBA", upright.size, "white")
    canvas.alpha_composite(upright)
    return numpy.asarray(canvas.convert("RGB"))[:, :, ::-1]  # rapidocr takes blue, green, red


def check_pixels(width: int, height: int) -> None:
    """Raise ``DocumentError`` for a picture that needs too much memory."""
    if width * height > MAX_PIXELS:
        raise DocumentError(f"a picture of {width:,} × {height:,} points; at most {MAX_PIXELS:,} are read")


def reduce_image(image: Any) -> Any:
    """Make an image smaller that is scaled down later, before it is converted."""
    factor = max(image.size) // MAX_SIDE
    if factor < 2:
        return image
    is_plain = image.mode in ("L", "LA", "RGB", "RGBA")
    return (image if is_plain else image.convert("RGB")).reduce(factor)
