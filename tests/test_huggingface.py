"""Folders of Hugging Face in and out: the same numbers as ``transformers``, both ways."""

import json
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from mnemic.encode import Pretrained, TransformerEncoder, encode_ragged, load_encoder, save_encoder
from mnemic.encode.huggingface.families import FAMILIES
from mnemic.encode.huggingface.shape import Shape, encoder_of, shape_of
from mnemic.text import load_subwords

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

SMALL = {
    "vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
    "intermediate_size": 48, "max_position_embeddings": 24,
}  # fmt: skip
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", SMALL),
    "roberta": ("Roberta", SMALL | {"type_vocab_size": 1, "layer_norm_eps": 1e-5}),
    "distilbert": (
        "DistilBert",
        {"vocab_size": 60, "dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48,
         "max_position_embeddings": 24},
    ),
    "electra": ("Electra", SMALL | {"embedding_size": 12}),
    "electra as wide": ("Electra", SMALL | {"embedding_size": 32}),
    "albert": ("Albert", SMALL | {"embedding_size": 12}),
    "albert in groups": (
        "Albert", SMALL | {"embedding_size": 12, "num_hidden_layers": 4, "num_hidden_groups": 2}
    ),
}  # fmt: skip
EVERY = pytest.mark.parametrize("kind", MODELS)
SHAPE = Shape(
    vocab=60, width=32, depth=3, heads=4, inner=48, length=24, segments=2, activation="gelu",
    epsilon=1e-12, dropout=0.1, attention_dropout=0.1,
)  # fmt: skip
OURS = {
    "bert": SHAPE._replace(epsilon=1e-5, activation="relu"),
    "roberta": SHAPE._replace(segments=1),
    "distilbert": SHAPE._replace(segments=0),
    "electra": SHAPE._replace(narrow=12),
    "albert": SHAPE._replace(narrow=12, depth=4, groups=2, activation="gelu_tanh"),
}
LENGTHS = [7, 22, 3, 22, 1]
MIXED = ["The cat, the hat; the cat sat.", "我爱北京 and emoji 😀 mixed", "naïve café", "x", ""]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def stir(model: nn.Module) -> Any:
    """Random norms and biases too, so that a forgotten one is seen."""
    torch.manual_seed(7)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn_like(weight) * 0.3 + (weight.dim() == 1) * 0.1)
    return model.eval()


def theirs(kind: str, head: str = "Model") -> Any:
    name, options = MODELS[kind]
    config = getattr(transformers, f"{name}Config")(**options)
    return stir(getattr(transformers, f"{name}{head}")(config))


def folder_of(model: Any, folder: Path, **options: Any) -> Path:
    model.save_pretrained(folder, **options)
    return folder


def texts() -> list[list[int]]:
    dice = torch.Generator().manual_seed(1)
    return [torch.randint(5, 60, (length,), generator=dice).tolist() for length in LENGTHS]


def batch(pad: int) -> tuple[Tensor, Tensor]:
    ids = torch.tensor([row + [pad] * (22 - len(row)) for row in texts()])
    return ids, torch.arange(22) < torch.tensor(LENGTHS)[:, None]


@torch.no_grad()
def check_same(model: Any, encoder: TransformerEncoder, segments: bool) -> None:
    """On a padded batch, on ragged texts, and with two segments where there are two."""
    ids, mask = batch(model.config.pad_token_id)
    second = (torch.arange(22) > 4).long().expand_as(ids)
    own = {"token_type_ids": second} if segments else {}
    wanted = model(input_ids=ids, attention_mask=mask.long(), **own).last_hidden_state
    found = encoder(ids, mask, segments=second if segments else None)
    assert (found - wanted)[mask].abs().max() < 1e-4
    rows = [row.tolist()[:length] for row, length in zip(second, LENGTHS)]
    ragged = encode_ragged(encoder, texts(), segments=rows if segments else None)
    assert (torch.cat(ragged) - wanted[mask]).abs().max() < 1e-4


@EVERY
def test_what_they_wrote_gives_the_same_states(kind: str, tmp_path: Path) -> None:
    model = theirs(kind)
    loaded = load_encoder(folder_of(model, tmp_path / "model"))
    assert loaded.family == kind.split()[0]
    assert not loaded.unused
    assert not loaded.encoder.training
    check_same(model, loaded.encoder, shape_of(loaded.encoder).segments == 2)


@EVERY
def test_the_way_back_is_the_same_file(kind: str, tmp_path: Path) -> None:
    """But for the rows of RoBERTa's table before its first position, which no text uses."""
    model = theirs(kind)
    save_encoder(tmp_path / "again", load_encoder(folder_of(model, tmp_path / "model")))
    before, after = (
        load_file(tmp_path / name / "model.safetensors") for name in ("model", "again")
    )
    assert before.keys() == after.keys()
    for name, weight in before.items():
        first = 2 if kind == "roberta" and "position_embeddings" in name else 0
        assert torch.equal(weight[first:], after[name][first:]), name
    again = transformers.AutoModel.from_pretrained(tmp_path / "again").eval()
    ids, mask = batch(model.config.pad_token_id)
    with torch.no_grad():
        one, two = (m(input_ids=ids, attention_mask=mask.long()) for m in (model, again))
    assert torch.equal(one.last_hidden_state[mask], two.last_hidden_state[mask])


@pytest.mark.parametrize("kind", OURS)
def test_what_we_wrote_gives_the_same_states(kind: str, tmp_path: Path) -> None:
    encoder = stir(encoder_of(OURS[kind]))
    assert shape_of(encoder) == OURS[kind]
    save_encoder(tmp_path / "ours", Pretrained(encoder, family=kind))
    model = transformers.AutoModel.from_pretrained(tmp_path / "ours").eval()
    assert type(model).__name__ == FAMILIES[kind].architecture
    check_same(model, encoder, OURS[kind].segments == 2)
    again = load_encoder(tmp_path / "ours").encoder
    assert shape_of(again) == OURS[kind]
    check_same(model, again, OURS[kind].segments == 2)


def test_an_encoder_without_segments_is_a_bert_with_an_empty_one(tmp_path: Path) -> None:
    encoder = stir(TransformerEncoder(32, 60, stack={"kind": "encoder", "depth": 3}))
    save_encoder(tmp_path / "ours", Pretrained(encoder))
    model = transformers.AutoModel.from_pretrained(tmp_path / "ours").eval()
    check_same(model, encoder, False)


@pytest.mark.parametrize("kind", ["bert", "roberta", "albert"])
def test_poolers(kind: str, tmp_path: Path) -> None:
    model = theirs(kind)
    pooler = load_encoder(folder_of(model, tmp_path / "model")).pooler
    assert pooler is not None
    ids, mask = batch(model.config.pad_token_id)
    with torch.no_grad():
        found = model(input_ids=ids, attention_mask=mask.long())
    torch.testing.assert_close(pooler(found.last_hidden_state), found.pooler_output)


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "electra", "albert"])
def test_weights_of_heads_are_told_and_kept(kind: str, tmp_path: Path) -> None:
    model = theirs(kind, "ForMaskedLM")
    loaded = load_encoder(folder_of(model, tmp_path / "model"))
    stored = load_file(tmp_path / "model" / "model.safetensors")
    heads = {name for name in stored if not name.startswith(f"{FAMILIES[kind].prefix}.")}
    assert loaded.unused.keys() == heads
    assert heads
    save_encoder(tmp_path / "again", loaded)
    again = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "again").eval()
    ids, mask = batch(model.config.pad_token_id)
    with torch.no_grad():
        one, two = (m(input_ids=ids, attention_mask=mask.long()).logits for m in (model, again))
    assert torch.equal(one[mask], two[mask])


def test_a_folder_in_parts(tmp_path: Path) -> None:
    model = theirs("bert")
    folder = folder_of(model, tmp_path / "model", max_shard_size="20KB")
    parts = sorted(folder.glob("model-*.safetensors"))
    assert len(parts) > 2
    check_same(model, load_encoder(folder).encoder, True)
    parts[1].unlink()
    with pytest.raises(ValueError, match=rf"{parts[1].name} is missing; copy the whole folder"):
        load_encoder(folder)


def test_old_names_and_half_precision(tmp_path: Path) -> None:
    """As in bert-base-uncased: a prefix, gamma and beta, position_ids; here in float16, too."""
    model = theirs("bert").half()
    folder = folder_of(model, tmp_path / "model")
    file = folder / "model.safetensors"
    old: dict[str, Tensor] = {"bert.embeddings.position_ids": torch.arange(24)[None]}
    for name, weight in load_file(file).items():
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
        old[f"bert.{name.replace('LayerNorm.bias', 'LayerNorm.beta')}"] = weight
    save_file(old, file)
    loaded = load_encoder(folder)
    assert not loaded.unused
    assert {weight.dtype for weight in loaded.encoder.parameters()} == {torch.float32}
    check_same(model.float(), loaded.encoder, True)
    save_encoder(tmp_path / "again", loaded)
    again = transformers.AutoModel.from_pretrained(tmp_path / "again")
    assert again.dtype == torch.float32


def changed(folder: Path, **settings: Any) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8")) | settings
    path.write_text(json.dumps({k: v for k, v in config.items() if v != "gone"}), encoding="utf-8")


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
    folder = folder_of(theirs("bert"), tmp_path / "model")
    changed(folder, **settings)
    with pytest.raises(ValueError, match=message):
        load_encoder(folder)


def test_folders_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"config.json is missing; a Hugging Face folder has"):
        load_encoder(tmp_path)
    folder = folder_of(theirs("bert"), tmp_path / "model")
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
        (encoder_of(OURS["albert"]), "bert", "bert has no factorised embeddings, shared layers"),
        (encoder_of(OURS["bert"]), "albert", "albert has no embeddings of the full width"),
        (encoder_of(OURS["bert"]), "distilbert", "no segments, epsilon of 1e-05"),
        (encoder_of(OURS["bert"]), "gpt2", "no family 'gpt2'; mnemic writes bert"),
        (TransformerEncoder(8, 9, stack={"kind": "encoder", "norm": "pre"}), "bert", "'pre'"),
        (
            TransformerEncoder(
                8, 9, embeddings={"kind": "sum", "positions": {"kind": "sinusoidal"}}
            ),
            "bert",
            "its positions are not learned",
        ),
    ],
)
def test_an_encoder_that_no_family_holds(
    encoder: TransformerEncoder, family: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        save_encoder(tmp_path / "ours", Pretrained(encoder, family=family))
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ValueError, match="is there and not empty; give the name of a new folder"):
        save_encoder(tmp_path, Pretrained(encoder_of(SHAPE)))
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    save_encoder(tmp_path, Pretrained(encoder_of(SHAPE)))
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "model.safetensors"}


def byte_level() -> tokenizers.Tokenizer:
    """As RoBERTa's: bytes, and <s> a </s></s> b </s>."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(MIXED, trainer)
    made.post_processor = tokenizers.processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return made


def test_tokens_of_a_byte_level_tokenizer(tmp_path: Path) -> None:
    """Ids and offsets as theirs, single and paired; after the way out, too."""
    byte_level().save(str(tmp_path / "tokenizer.json"))
    own = load_subwords(tmp_path)
    assert own is not None
    shape = OURS["roberta"]._replace(vocab=len(own))
    save_encoder(tmp_path / "out", Pretrained(encoder_of(shape), own, "roberta"))
    other = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert (again.pad_token, again.mask_token, again.model_max_length) == ("<pad>", "<mask>", 24)
    for text in MIXED:
        found, wanted = own.encode(text), other(text, return_offsets_mapping=True)
        assert found.ids == wanted["input_ids"] == again(text)["input_ids"]
        assert found.offsets[1:-1] == wanted["offset_mapping"][1:-1]
    assert own.encode("a", "b c").ids == other("a", "b c")["input_ids"]


def test_folders_with_other_tokenizers(tmp_path: Path) -> None:
    model = theirs("bert")
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
    lower = load_subwords(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}', encoding="utf-8")
    cased = load_subwords(tmp_path)
    assert lower is not None
    assert cased is not None
    assert lower.encode("Ab", special=False).tokens == ["a", "##b"]
    assert cased.encode("Ab", special=False).tokens == ["A", "##b"]
