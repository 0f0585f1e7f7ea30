"""The tokenizer of a Hugging Face folder: tokenizer.json, or the vocab.txt of older BERTs."""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from mnemic.text.tokenizers.contract import FILE
from mnemic.text.tokenizers.load import load
from mnemic.text.tokenizers.subwords import Subwords

VOCABULARY, SETTINGS = "vocab.txt", "tokenizer_config.json"
OTHERS = ("merges.txt", "spiece.model", "sentencepiece.bpe.model")
AGAIN = "AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)"


def load_subwords(folder: Path) -> Subwords | None:
    """The folder's tokenizer; None where it holds no file of one."""
    if (folder / FILE).is_file():
        found = load(folder)
        if not isinstance(found, Subwords):
            raise ValueError(f"{folder / FILE} holds words; expected a Hugging Face tokenizer")
        return found
    if (folder / VOCABULARY).is_file():
        return from_vocabulary(folder / VOCABULARY)
    if other := [name for name in OTHERS if (folder / name).is_file()]:
        raise ValueError(f"{folder} has {other[0]} but no {FILE}; make it by {AGAIN}")
    return None


def from_vocabulary(path: Path) -> Subwords:
    """BERT's WordPiece over one piece a line, lower-casing as the settings beside it say."""
    pieces = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    ids = {piece.rstrip("\r"): number for number, piece in enumerate(pieces)}
    if missing := {"[UNK]", "[CLS]", "[SEP]"} - ids.keys():
        raise ValueError(f"{path} has no {min(missing)}; expected the vocabulary of a BERT")
    options = settings(path.with_name(SETTINGS))
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=options.get("do_lower_case", True),
        strip_accents=options.get("strip_accents"),
        handle_chinese_chars=options.get("tokenize_chinese_chars", True),
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, ids[name]) for name in ("[CLS]", "[SEP]")],
    )
    special = [name for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") if name in ids]
    tokenizer.add_special_tokens(special)
    return Subwords(tokenizer)


def settings(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no valid JSON: {error}") from None
    return found if isinstance(found, dict) else {}
