"""Read a tokenizer back from its file, whatever its kind."""

import json
from pathlib import Path
from typing import Any

import tokenizers

from mnemic.text.tokenizers.contract import FILE, Tokenizer
from mnemic.text.tokenizers.subwords import Subwords
from mnemic.text.tokenizers.words import Words


def load(path: Path) -> Tokenizer:
    """The tokenizer stored in ``path``: a ``tokenizer.json`` or the folder that holds one.

    A file with a ``kind`` is a word vocabulary of ours; any other is taken for Hugging Face's.
    """
    file = path / FILE if path.is_dir() else path
    content = _read(file)
    try:
        if "kind" in content:
            return _words(content)
        return Subwords(_hugging_face(content))
    except ValueError as error:
        raise ValueError(f"{file} is no tokenizer: {error}") from error


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{file} is not JSON in utf-8: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{file} holds a {type(content).__name__}; expected a JSON object")
    return content


def _words(content: dict[str, Any]) -> Words:
    if content["kind"] != Words.kind:
        raise ValueError(f"its kind is {content['kind']!r}; the kind stored like this is 'words'")
    if content.keys() != {"kind", "words"} or not isinstance(content["words"], list):
        raise ValueError(f"it has {sorted(content)}; expected 'kind' and 'words', a list")
    return Words(content["words"])


def _hugging_face(content: dict[str, Any]) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer.from_str(json.dumps(content))
    except Exception as error:  # tokenizers raises nothing more precise
        raise ValueError(f"Hugging Face tokenizers cannot read it: {error}") from error
