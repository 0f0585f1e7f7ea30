"""Load the tokenizer of a Hugging Face folder: tokenizer.json, or an older BERT's vocab.txt."""

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from mnemic.files import read_json
from mnemic.text.tokenizers.contract import TOKENIZER_FILE
from mnemic.text.tokenizers.load import load_tokenizer
from mnemic.text.tokenizers.subwords import SubwordTokenizer
from mnemic.text.tokenizers.trainers import SPECIAL_TOKENS, add_bert_template

VOCAB_FILE, CONFIG_FILE = "vocab.txt", "tokenizer_config.json"
UNSUPPORTED_FILES = ("merges.txt", "spiece.model", "sentencepiece.bpe.model")
CONVERT_COMMAND = "AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)"


def load_subword_tokenizer(folder: Path) -> SubwordTokenizer | None:
    """Load a folder's subword tokenizer; None if the folder has no tokenizer file."""
    if (folder / TOKENIZER_FILE).is_file():
        tokenizer = load_tokenizer(folder)
        if not isinstance(tokenizer, SubwordTokenizer):
            raise ValueError(f"{folder / TOKENIZER_FILE} holds words; expected a Hugging Face tokenizer")
        return tokenizer
    if (folder / VOCAB_FILE).is_file():
        return load_vocab_file(folder / VOCAB_FILE)
    if unsupported := [name for name in UNSUPPORTED_FILES if (folder / name).is_file()]:
        raise ValueError(f"{folder} has {unsupported[0]} but no {TOKENIZER_FILE}; make it by {CONVERT_COMMAND}")
    return None


def load_vocab_file(path: Path) -> SubwordTokenizer:
    """Load BERT's WordPiece tokenizer from a vocab.txt with one piece per line.

    Lower-casing follows the tokenizer_config.json next to it.
    """
    pieces = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    ids = {piece.rstrip("\r"): number for number, piece in enumerate(pieces)}
    if missing := {"[UNK]", "[CLS]", "[SEP]"} - ids.keys():
        raise ValueError(f"{path} has no {min(missing)}; expected the vocabulary of a BERT")
    config_path = path.with_name(CONFIG_FILE)
    config = read_json(config_path) if config_path.is_file() else {}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=config.get("do_lower_case", True),
        strip_accents=config.get("strip_accents"),
        handle_chinese_chars=config.get("tokenize_chinese_chars", True),
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens([name for name in SPECIAL_TOKENS if name in ids])
    return add_bert_template(tokenizer)
