"""Invalid Hugging Face folders, encoders that cannot be saved, and tokenizers in folders."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import transformers
from huggingface_models import OURS, SHAPE, folder_of, make_transformers_model, quiet

from mnemic.encode import Pretrained, TransformerEncoder, load_encoder, save_encoder
from mnemic.encode.huggingface.shape import build_encoder
from mnemic.text import load_subword_tokenizer

__all__ = ["quiet"]  # a fixture

TEXTS = ["The cat, the hat; the cat sat.", "我爱北京 and emoji 😀 mixed", "naïve café", "x", ""]


def edit_config(folder: Path, **settings: Any) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8")) | settings
    path.write_text(json.dumps({key: value for key, value in config.items() if value != "gone"}), encoding="utf-8")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model_type": "gpt2"}, r"model_type 'gpt2'; mnemic reads bert, roberta, distilbert"),
        ({"hidden_size": "gone"}, r"config.json has no 'hidden_size'; a bert needs it"),
        ({"hidden_size": "32"}, r"hidden_size is '32'; expected int"),
        ({"hidden_act": "silu"}, r"the activation 'silu'; known are gelu"),
        ({"position_embedding_type": "relative_key"}, r"mnemic reads only position_embedding_type"),
        ({"is_decoder": True}, r"has is_decoder True; mnemic reads only is_decoder False"),
        ({"intermediate_size": 40}, r"'encoder.layer.0.intermediate.dense.weight' has shape \(48,"),
        ({"num_hidden_layers": 5}, r"no weight 'encoder.layer.3.attention.self.query.weight'"),
    ],
)
def test_a_config_that_does_not_fit(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder = folder_of(make_transformers_model("bert"), tmp_path / "model")
    edit_config(folder, **settings)
    with pytest.raises(ValueError, match=message):
        load_encoder(folder)


def test_folders_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"config.json is missing; a Hugging Face folder has"):
        load_encoder(tmp_path)
    folder = folder_of(make_transformers_model("bert"), tmp_path / "model")
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:999])
    with pytest.raises(ValueError, match=r"model.safetensors is no valid safetensors file"):
        load_encoder(folder)
    file.rename(folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"opens no pickled weights.*save_pretrained\(DIR\)"):
        load_encoder(folder)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(ValueError, match=r"no model.safetensors and no model.safetensors.index"):
        load_encoder(folder)
    (folder / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"config.json is no valid JSON"):
        load_encoder(folder)


@pytest.mark.parametrize(
    ("encoder", "family", "message"),
    [
        (build_encoder(OURS["albert"]), "bert", "bert has no factorised embeddings, shared layers"),
        (build_encoder(OURS["bert"]), "albert", "albert has no embeddings of the full width"),
        (build_encoder(OURS["bert"]), "distilbert", "no segments, epsilon of 1e-05"),
        (build_encoder(OURS["bert"]), "gpt2", "no family 'gpt2'; mnemic writes bert"),
        (TransformerEncoder(8, 9, stack={"kind": "encoder", "norm": "pre"}), "bert", "'pre'"),
        (TransformerEncoder(8, 9, stack={"kind": "encoder", "norm_kind": "rms"}), "bert", "norm_kind"),
        (
            TransformerEncoder(8, 9, embeddings={"kind": "sum", "positions": {"kind": "sinusoidal"}}),
            "bert",
            "its positions are not learned",
        ),
    ],
)
def test_an_encoder_that_fits_no_family_is_refused(
    encoder: TransformerEncoder, family: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        save_encoder(tmp_path / "ours", Pretrained(encoder, family=family))
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ValueError, match="is there and not empty; give the name of a new folder"):
        save_encoder(tmp_path, Pretrained(build_encoder(SHAPE)))
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    save_encoder(tmp_path, Pretrained(build_encoder(SHAPE)))
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "model.safetensors"}


def make_byte_level_tokenizer() -> tokenizers.Tokenizer:
    """Make a tokenizer like RoBERTa's: bytes, and <s> a </s></s> b </s>."""
    special_tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300, special_tokens=special_tokens, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.post_processor = tokenizers.processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return tokenizer


def test_tokens_of_a_byte_level_tokenizer(tmp_path: Path) -> None:
    """Ids and offsets as in transformers, single and paired; also after saving."""
    make_byte_level_tokenizer().save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_subword_tokenizer(tmp_path)
    assert tokenizer is not None
    shape = OURS["roberta"]._replace(vocab=len(tokenizer))
    save_encoder(tmp_path / "out", Pretrained(build_encoder(shape), tokenizer, "roberta"))
    reference = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    saved = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert (saved.pad_token, saved.mask_token, saved.model_max_length) == ("<pad>", "<mask>", 24)
    for text in TEXTS:
        encoding, expected = tokenizer.encode(text), reference(text, return_offsets_mapping=True)
        assert encoding.ids == expected["input_ids"] == saved(text)["input_ids"]
        assert encoding.offsets[1:-1] == expected["offset_mapping"][1:-1]
    assert tokenizer.encode("a", "b c").ids == reference("a", "b c")["input_ids"]


def test_folders_with_other_tokenizers(tmp_path: Path) -> None:
    model = make_transformers_model("bert")
    folder = folder_of(model, tmp_path / "model")
    assert load_encoder(folder).tokenizer is None
    (folder / "merges.txt").write_text("a b\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"has merges.txt but no tokenizer.json; make it by Auto"):
        load_encoder(folder)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(60))]
    (folder / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    with pytest.raises(ValueError, match=r"has 65 tokens, the weights have rows for 60"):
        load_encoder(folder)
    (folder / "vocab.txt").write_text("a\nb\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"vocab.txt has no \[CLS\]; expected the vocabulary of"):
        load_encoder(folder)


def test_a_vocabulary_with_case(tmp_path: Path) -> None:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "A", "a", "##b"]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    uncased = load_subword_tokenizer(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}', encoding="utf-8")
    cased = load_subword_tokenizer(tmp_path)
    assert uncased is not None
    assert cased is not None
    assert uncased.encode("Ab", special=False).tokens == ["a", "##b"]
    assert cased.encode("Ab", special=False).tokens == ["A", "##b"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("hidden_size", 200_000, r"'embeddings.word_embeddings.weight' has shape \(60, 32\), its config.json asks for"),
        ("vocab_size", 10**12, "vocab_size is 1000000000000; expected a whole number from 1 to 1,000,000,000"),
        ("vocab_size", 900_000_000, r"asks for \(900000000, 32\)"),
        ("vocab_size", -5, "vocab_size is -5; expected a whole number from 1 to"),
        ("num_hidden_layers", 10**9, "num_hidden_layers is 1000000000; expected a whole number from 1 to 1,000"),
        ("num_attention_heads", 0, "num_attention_heads is 0; expected a whole number from 1 to"),
        ("intermediate_size", 10**9, r"asks for \(1000000000, 32\)"),
        ("max_position_embeddings", True, "max_position_embeddings is True; expected a whole number from 1 to"),
    ],
)
def test_absurd_sizes(key: str, value: Any, message: str, tmp_path: Path) -> None:
    """A config.json is compared with the weights before anything is allocated."""
    folder = folder_of(make_transformers_model("bert"), tmp_path / "model")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {key: value}), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        load_encoder(folder)


def test_a_padding_id_beyond_all_positions(tmp_path: Path) -> None:
    """RoBERTa's positions begin after the padding id."""
    folder = folder_of(make_transformers_model("roberta"), tmp_path / "model")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    for value, message in ((10**8, "is too small for pad_token_id"), (-9, "expected a whole number from 0 on")):
        (folder / "config.json").write_text(json.dumps(config | {"pad_token_id": value}), encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            load_encoder(folder)
