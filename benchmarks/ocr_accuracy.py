"""Measure how much of the text of page pictures OCR reads right.

Pages are rendered from paragraphs of SQuAD and of CMRC 2018 in two fonts each, with the noise, the
slant and the JPEG artifacts of a scan, and read in the sandbox, as ``mnemic remember`` does.

    python benchmarks/ocr_accuracy.py --english DIR/dev-v1.1.json.gz --chinese DIR/cmrc2018_dev.json

Needs ``mnemic[ocr]`` and the fonts of Debian's fonts-dejavu-core and fonts-noto-cjk.
"""

import argparse
import gzip
import json
import random
import re
import time
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mnemic.text.documents import DocumentParser, DocumentPiece

SIZE = (1654, 2339)  # A4 at 200 dots per inch
MARGIN = 150
FONT_SIZE = 32  # about 11 points
LINE_HEIGHT = 48
ENGLISH_FONTS = ("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "/usr/share/fonts/truetype/dejavu/DejaVuSerif.ttf")
CHINESE_FONTS = (
    "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",
    "/usr/share/fonts/opentype/noto/NotoSerifCJK-Regular.ttc",
)
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")  # a Chinese character counts as a word


def main() -> None:
    """Render the pages, read them, and print the fraction of words that are right."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--english", type=Path, required=True)
    parser.add_argument("--chinese", type=Path, required=True)
    parser.add_argument("--pages", type=int, default=10, help="of each language")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    generator = random.Random(arguments.seed)
    with TemporaryDirectory() as folder, DocumentParser() as reader:
        for name, path, fonts, separator in (
            ("English", arguments.english, ENGLISH_FONTS, " "),
            ("Chinese", arguments.chinese, CHINESE_FONTS, ""),
        ):
            paragraphs = list(read_paragraphs(path))
            generator.shuffle(paragraphs)
            num_words = num_right = 0
            started = time.perf_counter()
            for number in range(arguments.pages):
                page = Path(folder) / f"{name}-{number}.{('png', 'jpg')[number % 2]}"
                text = render_page(paragraphs, page, fonts[number % len(fonts)], separator, generator)
                pieces = [part.text for part in reader.read(page, "picture") if isinstance(part, DocumentPiece)]
                words, right = count_right(text, "\n".join(pieces))
                print(f"{page.name}: {right} of {words} words", flush=True)
                num_words, num_right = num_words + words, num_right + right
            seconds = (time.perf_counter() - started) / arguments.pages
            print(f"{name}: {num_right / num_words:.2%} of {num_words:,} words, {seconds:.1f} s per page", flush=True)


def read_paragraphs(path: Path) -> Iterator[str]:
    """Yield the paragraphs of a file in SQuAD's format."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for article in json.loads(content)["data"]:
        for paragraph in article["paragraphs"]:
            yield " ".join(paragraph["context"].split())


def render_page(paragraphs: list[str], path: Path, font_path: str, separator: str, generator: random.Random) -> str:
    """Render paragraphs until the page is full, as a scan; return the text on it."""
    from PIL import Image, ImageDraw, ImageFont

    font: Any = ImageFont.truetype(font_path, FONT_SIZE, index=2 if font_path.endswith(".ttc") else 0)
    image = Image.new("L", SIZE, 250)
    draw = ImageDraw.Draw(image)
    y, lines = MARGIN, list[str]()
    while y < SIZE[1] - MARGIN:
        for line in wrap(paragraphs.pop(), font, separator):
            if y < SIZE[1] - MARGIN:
                draw.text((MARGIN, y), line, fill=20, font=font)
                lines.append(line)
                y += LINE_HEIGHT
        y += LINE_HEIGHT // 2
    noise = Image.effect_noise(SIZE, 24)
    scan = Image.blend(image, noise, 0.12).rotate(generator.uniform(-0.4, 0.4), fillcolor=235)
    scan.save(path, quality=60) if path.suffix == ".jpg" else scan.save(path)
    return "\n".join(lines)


def wrap(text: str, font: Any, separator: str) -> Iterator[str]:
    """Wrap a text to the width of the page."""
    line = ""
    for word in text.split(separator) if separator else text:
        longer = f"{line}{separator}{word}" if line else word
        if font.getlength(longer) > SIZE[0] - 2 * MARGIN:
            yield line
            longer = word
        line = longer
    yield line


def count_right(text: str, result: str) -> tuple[int, int]:
    """Return the number of words, and how many of them were read, in order."""
    words, found = _WORD.findall(text), _WORD.findall(result)
    matcher = SequenceMatcher(None, words, found, autojunk=False)
    return len(words), sum(block.size for block in matcher.get_matching_blocks())


if __name__ == "__main__":
    main()
