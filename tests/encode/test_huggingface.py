"""Hugging Face folders, loaded and saved: the same numbers as ``transformers``."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from huggingface_models import MODELS, OURS, folder_of, make_transformers_model, quiet, stir
from safetensors.torch import load_file, save_file
from torch import Tensor

from mnemic.encode import Pretrained, TransformerEncoder, encode_ragged, load_encoder, save_encoder
from mnemic.encode.huggingface.families import FAMILIES
from mnemic.encode.huggingface.heads import rename_span_head
from mnemic.encode.huggingface.shape import build_encoder, shape_of_encoder
from mnemic.respond.spans import SpanHead

__all__ = ["quiet"]  # a fixture

ALL_KINDS = pytest.mark.parametrize("kind", MODELS)
LENGTHS = [7, 22, 3, 22, 1]


def random_texts() -> list[list[int]]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(5, 60, (length,), generator=generator).tolist() for length in LENGTHS]


def make_batch(pad: int) -> tuple[Tensor, Tensor]:
    ids = torch.tensor([row + [pad] * (22 - len(row)) for row in random_texts()])
    return ids, torch.arange(22) < torch.tensor(LENGTHS)[:, None]


@torch.no_grad()
def check_same(model: Any, encoder: TransformerEncoder, segments: bool) -> None:
    """Compare states of a padded batch and of ragged texts, with segments if any."""
    ids, mask = make_batch(model.config.pad_token_id)
    segment_ids = (torch.arange(22) > 4).long().expand_as(ids)
    segment_kwargs = {"token_type_ids": segment_ids} if segments else {}
    expected = model(input_ids=ids, attention_mask=mask.long(), **segment_kwargs).last_hidden_state
    actual = encoder(ids, mask, segments=segment_ids if segments else None)
    assert (actual - expected)[mask].abs().max() < 1e-4
    segment_rows = [row.tolist()[:length] for row, length in zip(segment_ids, LENGTHS)]
    ragged = encode_ragged(encoder, random_texts(), segments=segment_rows if segments else None)
    assert (torch.cat(ragged) - expected[mask]).abs().max() < 1e-4


@ALL_KINDS
def test_a_folder_of_transformers_gives_the_same_states(kind: str, tmp_path: Path) -> None:
    model = make_transformers_model(kind)
    loaded = load_encoder(folder_of(model, tmp_path / "model"))
    assert loaded.family == kind.split()[0]
    assert not loaded.unused
    assert not loaded.encoder.training
    check_same(model, loaded.encoder, shape_of_encoder(loaded.encoder).segments == 2)


@ALL_KINDS
def test_saving_a_loaded_encoder_writes_the_same_weights(kind: str, tmp_path: Path) -> None:
    """Except rows of RoBERTa's position table before its first position: no text uses them."""
    model = make_transformers_model(kind)
    save_encoder(tmp_path / "again", load_encoder(folder_of(model, tmp_path / "model")))
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("model", "again"))
    assert before.keys() == after.keys()
    for name, weight in before.items():
        first_row = 2 if kind == "roberta" and "position_embeddings" in name else 0
        assert torch.equal(weight[first_row:], after[name][first_row:]), name
    saved_model = transformers.AutoModel.from_pretrained(tmp_path / "again").eval()
    ids, mask = make_batch(model.config.pad_token_id)
    with torch.no_grad():
        original_output, saved_output = (
            any_model(input_ids=ids, attention_mask=mask.long()) for any_model in (model, saved_model)
        )
    assert torch.equal(original_output.last_hidden_state[mask], saved_output.last_hidden_state[mask])


@torch.no_grad()
@pytest.mark.parametrize("kind", OURS)
def test_a_span_head_has_the_same_logits_there(kind: str, tmp_path: Path) -> None:
    encoder, head = stir(build_encoder(OURS[kind])), stir(SpanHead(OURS[kind].width))
    heads = rename_span_head(head.ends, head.none, FAMILIES[kind])
    save_encoder(tmp_path / "ours", Pretrained(encoder, family=kind, unused=heads))
    ids, mask = make_batch(FAMILIES[kind].pad_id)
    expected = head(None, None, encoder(ids, mask), mask)  # b 2 1+n
    inputs = {"input_ids": ids, "attention_mask": mask.long()}
    reader = transformers.AutoModelForQuestionAnswering.from_pretrained(tmp_path / "ours").eval()
    spans = reader(**inputs)
    logits = torch.stack([spans.start_logits, spans.end_logits], 1)
    assert (logits - expected[..., 1:])[mask.unsqueeze(1).expand_as(logits)].abs().max() < 1e-4
    decliner = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "ours").eval()
    assert (decliner(**inputs).logits - expected[..., 0]).abs().max() < 1e-4


@pytest.mark.parametrize("kind", OURS)
def test_an_encoder_saved_by_mnemic_gives_the_same_states(kind: str, tmp_path: Path) -> None:
    encoder = stir(build_encoder(OURS[kind]))
    assert shape_of_encoder(encoder) == OURS[kind]
    save_encoder(tmp_path / "ours", Pretrained(encoder, family=kind))
    model = transformers.AutoModel.from_pretrained(tmp_path / "ours").eval()
    assert type(model).__name__ == FAMILIES[kind].architecture
    check_same(model, encoder, OURS[kind].segments == 2)
    loaded = load_encoder(tmp_path / "ours").encoder
    assert shape_of_encoder(loaded) == OURS[kind]
    check_same(model, loaded, OURS[kind].segments == 2)


def test_an_encoder_without_segments_is_a_bert_with_an_empty_one(tmp_path: Path) -> None:
    encoder = stir(TransformerEncoder(32, 60, stack={"kind": "encoder", "depth": 3}))
    save_encoder(tmp_path / "ours", Pretrained(encoder))
    model = transformers.AutoModel.from_pretrained(tmp_path / "ours").eval()
    check_same(model, encoder, False)


@pytest.mark.parametrize("kind", ["bert", "roberta", "albert"])
def test_poolers_give_the_same_output(kind: str, tmp_path: Path) -> None:
    model = make_transformers_model(kind)
    pooler = load_encoder(folder_of(model, tmp_path / "model")).pooler
    assert pooler is not None
    ids, mask = make_batch(model.config.pad_token_id)
    with torch.no_grad():
        output = model(input_ids=ids, attention_mask=mask.long())
    torch.testing.assert_close(pooler(output.last_hidden_state), output.pooler_output)


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "electra", "albert"])
def test_weights_of_heads_are_reported_and_saved(kind: str, tmp_path: Path) -> None:
    model = make_transformers_model(kind, "ForMaskedLM")
    loaded = load_encoder(folder_of(model, tmp_path / "model"))
    saved_weights = load_file(tmp_path / "model" / "model.safetensors")
    heads = {name for name in saved_weights if not name.startswith(f"{FAMILIES[kind].prefix}.")}
    assert loaded.unused.keys() == heads
    assert heads
    save_encoder(tmp_path / "again", loaded)
    saved_model = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "again").eval()
    ids, mask = make_batch(model.config.pad_token_id)
    with torch.no_grad():
        original_logits, saved_logits = (
            any_model(input_ids=ids, attention_mask=mask.long()).logits for any_model in (model, saved_model)
        )
    assert torch.equal(original_logits[mask], saved_logits[mask])


def test_a_folder_in_parts(tmp_path: Path) -> None:
    model = make_transformers_model("bert")
    folder = folder_of(model, tmp_path / "model", max_shard_size="20KB")
    shards = sorted(folder.glob("model-*.safetensors"))
    assert len(shards) > 2
    check_same(model, load_encoder(folder).encoder, True)
    shards[1].unlink()
    with pytest.raises(ValueError, match=rf"{shards[1].name} is missing; copy the whole folder"):
        load_encoder(folder)


def test_old_names_and_half_precision(tmp_path: Path) -> None:
    """As in bert-base-uncased: a prefix, gamma and beta, position_ids; here in float16."""
    model = make_transformers_model("bert").half()
    folder = folder_of(model, tmp_path / "model")
    file = folder / "model.safetensors"
    old_weights: dict[str, Tensor] = {"bert.embeddings.position_ids": torch.arange(24)[None]}
    for name, weight in load_file(file).items():
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
        old_weights[f"bert.{name.replace('LayerNorm.bias', 'LayerNorm.beta')}"] = weight
    save_file(old_weights, file)
    loaded = load_encoder(folder)
    assert not loaded.unused
    assert {weight.dtype for weight in loaded.encoder.parameters()} == {torch.float32}
    check_same(model.float(), loaded.encoder, True)
    save_encoder(tmp_path / "again", loaded)
    saved_model = transformers.AutoModel.from_pretrained(tmp_path / "again")
    assert saved_model.dtype == torch.float32
