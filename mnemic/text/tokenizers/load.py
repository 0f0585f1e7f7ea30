"""Load a tokenizer of any kind from its file."""

from pathlib import Path
from typing import Any

import tokenizers

from mnemic.files import read_json
from mnemic.text.tokenizers.contract import TOKENIZER_FILE, Tokenizer
from mnemic.text.tokenizers.subwords import SubwordTokenizer
from mnemic.text.tokenizers.words import WordTokenizer


def load_tokenizer(path: Path) -> Tokenizer:
    """Load a tokenizer from a ``tokenizer.json`` or the folder that holds one.

    A file with a ``kind`` is a word vocabulary of mnemic; any other is taken for Hugging Face's.

    >>> tokenizer = mnemic.load_tokenizer(Path("all-MiniLM-L6-v2"))
    >>> encoding = tokenizer.encode("Dracula, 1897")
    >>> tokenizer.decode(encoding.ids)
    'dracula, 1897'
    """
    file = path / TOKENIZER_FILE if path.is_dir() else path
    content = read_json(file)
    try:
        if "kind" in content:
            return _parse_word_tokenizer(content)
        return SubwordTokenizer(_parse_hugging_face(file.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ValueError(f"{file} is no tokenizer: {error}") from error


def _parse_word_tokenizer(content: dict[str, Any]) -> WordTokenizer:
    """Build a word tokenizer from the content of its file."""
    if content["kind"] != WordTokenizer.kind:
        raise ValueError(f"its kind is {content['kind']!r}; the kind stored like this is 'words'")
    if content.keys() != {"kind", "words"} or not isinstance(content["words"], list):
        raise ValueError(f"it has {sorted(content)}; expected 'kind' and 'words', a list")
    return WordTokenizer(content["words"])


def _parse_hugging_face(content: str) -> tokenizers.Tokenizer:
    """Build a Hugging Face tokenizer from the content of its file."""
    try:
        return tokenizers.Tokenizer.from_str(content)
    except Exception as error:  # tokenizers raises nothing more precise
        raise ValueError(f"Hugging Face tokenizers cannot read it: {error}") from error
