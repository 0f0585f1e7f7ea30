"""Split HTML into tags and text with their positions, in linear time.

``html.parser`` reads broken HTML in quadratic time, and other parsers give no positions. Here every
search goes forward, and one that found nothing is not repeated.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

RAW_TAGS = {"script", "style"}  # what is inside has no tags
MAX_QUOTED_BRACKETS = 8  # ">" inside the quoted attributes of a tag

_OPENING = re.compile(r"<(?=/?[a-zA-Z]|!|\?)")
_NAME = re.compile(r"[a-zA-Z][^\s/>]{0,100}")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_OPEN_QUOTE = re.compile(r"=\s*[\"']")


class HTMLToken(NamedTuple):
    """A tag, or text between tags."""

    kind: Literal["text", "start", "end", "cdata"]
    name: str  # of a tag, in lower case, without a prefix
    start: int
    end: int
    closes: bool = False  # a start tag that ends its element, too: <br/>


def split_tokens(source: str) -> Iterator[HTMLToken]:
    """Yield tags and text in order; comments and declarations are left out."""
    position, last_bracket = 0, source.rfind(">")
    has_comment_ends = True
    while position < len(source):
        opening = _OPENING.search(source, position, last_bracket + 1)
        start = opening.start() if opening else len(source)
        if start > position:
            yield HTMLToken("text", "", position, start)
        if start == len(source):
            return
        if source.startswith("<!--", start) and has_comment_ends:
            end = source.find("-->", start + 4)
            has_comment_ends = end >= 0
            position = end + 3 if has_comment_ends else source.find(">", start) + 1
        elif source.startswith("<![CDATA[", start) and (end := source.find("]]>", start)) >= 0:
            yield HTMLToken("cdata", "", start + 9, end)
            position = end + 3
        elif source.startswith(("<!", "<?"), start):
            position = source.find(">", start) + 1
        else:
            token = scan_tag(source, start)
            yield token
            position = find_raw_end(source, token) if token.kind == "start" and token.name in RAW_TAGS else token.end


def scan_tag(source: str, start: int) -> HTMLToken:
    """Scan the tag that begins at a bracket."""
    is_end = source.startswith("/", start + 1)
    name = _NAME.match(source, start + 1 + is_end)
    assert name is not None, "a letter follows the bracket"
    end = first_end = source.find(">", name.end())
    for _ in range(MAX_QUOTED_BRACKETS):
        if end < 0 or not _OPEN_QUOTE.search(_QUOTED.sub("", source[name.end() : end])):
            break
        end = source.find(">", end + 1)
    else:
        end = -1
    end = first_end if end < 0 else end
    local_name = name.group().lower().rpartition(":")[2]
    return HTMLToken("end" if is_end else "start", local_name, start, end + 1, source[end - 1] == "/")


def find_raw_end(source: str, token: HTMLToken) -> int:
    """Return where the content of a script or a style sheet ends."""
    closing = re.compile(f"</{token.name}", re.IGNORECASE).search(source, token.end)
    return closing.start() if closing else len(source)
