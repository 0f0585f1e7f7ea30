"""Read subtitles (.srt, .vtt): the words of the cues, joined into sentences."""

import re
from collections.abc import Iterator

from mnemic.text.documents.encoding import read_text
from mnemic.text.documents.markup.line_blocks import LineBlocks, read_source_lines
from mnemic.text.documents.markup.markdown import MAX_CHARACTERS
from mnemic.text.documents.piece import DocumentPart, Source

MIN_BLOCK_LENGTH = 400  # characters, after which a block ends with a sentence
MAX_BLOCK_LENGTH = 800  # the same, with any line: some subtitles have no stops
_TIME = re.compile(r"(?:\d+:)?\d{1,2}:\d{2}[.,]\d{3}[ \t]*-->.*")
_MARKS = re.compile(r"</?[a-zA-Z][^<>\n]{0,100}>|\{\\[^{}\n]{0,100}\}|<\d[\d:.]*>()")
_STOP = re.compile(r"[.!?…。！？][\"'”’)]*\Z")
HIDDEN_BLOCKS = ("WEBVTT", "NOTE", "STYLE", "REGION")


def read_subtitles(source: Source) -> Iterator[DocumentPart]:
    """Read subtitles; their numbers and times are left out."""
    blocks = LineBlocks(read_text(source.path, MAX_CHARACTERS), _MARKS)
    is_cue = is_hidden = False
    size = num_skipped = 0  # characters of the block; lines since its last words
    for line in read_source_lines(blocks.rewriter.source):
        num_skipped += 1
        if not line.content:
            is_cue = is_hidden = False
        elif _TIME.match(line.content):
            is_cue = True
        elif line.content.startswith(HIDDEN_BLOCKS) and not is_cue:
            is_hidden = True
        elif is_cue and not is_hidden:
            blocks.rewriter.add_space("\n" * (num_skipped - 1) if size else "")
            blocks.add_words(line.words)
            size, num_skipped = size + len(line.content), 0
            if size >= MIN_BLOCK_LENGTH and (_STOP.search(line.content) or size >= MAX_BLOCK_LENGTH):
                blocks.rewriter.add_space("\n")
                blocks.end("flow")
                size = 0
    blocks.end("flow")
    yield from blocks.rewriter.make_pieces()
