"""Folders of Hugging Face in and out: the same numbers as ``transformers``, both ways."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from huggingface_models import MODELS, OURS, folder_of, quiet, stir
from huggingface_models import make_transformers_model as theirs
from safetensors.torch import load_file, save_file
from torch import Tensor

from mnemic.encode import Pretrained, TransformerEncoder, encode_ragged, load_encoder, save_encoder
from mnemic.encode.huggingface.families import FAMILIES
from mnemic.encode.huggingface.shape import build_encoder, shape_of_encoder

__all__ = ["quiet"]  # a fixture

EVERY = pytest.mark.parametrize("kind", MODELS)
LENGTHS = [7, 22, 3, 22, 1]


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
    check_same(model, loaded.encoder, shape_of_encoder(loaded.encoder).segments == 2)


@EVERY
def test_the_way_back_is_the_same_file(kind: str, tmp_path: Path) -> None:
    """But for the rows of RoBERTa's table before its first position, which no text uses."""
    model = theirs(kind)
    save_encoder(tmp_path / "again", load_encoder(folder_of(model, tmp_path / "model")))
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("model", "again"))
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
    encoder = stir(build_encoder(OURS[kind]))
    assert shape_of_encoder(encoder) == OURS[kind]
    save_encoder(tmp_path / "ours", Pretrained(encoder, family=kind))
    model = transformers.AutoModel.from_pretrained(tmp_path / "ours").eval()
    assert type(model).__name__ == FAMILIES[kind].architecture
    check_same(model, encoder, OURS[kind].segments == 2)
    again = load_encoder(tmp_path / "ours").encoder
    assert shape_of_encoder(again) == OURS[kind]
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
