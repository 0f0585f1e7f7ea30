"""Classifiers in Hugging Face folders: the same logits as ``transformers``, in both directions."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from huggingface_models import OURS, folder_of, make_transformers_model, quiet, stir
from torch import Tensor

from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.checkpoint.huggingface import load_classifier
from mnemic.encode import Pretrained, save_encoder
from mnemic.encode.huggingface.families import FAMILIES
from mnemic.encode.huggingface.heads import rename_class_head
from mnemic.encode.huggingface.shape import build_encoder
from mnemic.models import WindowBatch
from mnemic.respond.classes import ClassHead
from mnemic.text import SubwordTokenizer, load_subword_tokenizer
from mnemic.text.tokenizers.trainers import train_wordpiece

__all__ = ["quiet"]  # a fixture

KINDS = pytest.mark.parametrize("kind", ["bert", "roberta", "albert"])


@pytest.fixture
def tokenizer() -> SubwordTokenizer:
    return train_wordpiece(["a bee can do every fine game he is just keen on"], vocab=60)


def make_inputs(segments: int) -> WindowBatch:
    """Two pairs of different lengths, one of them padded."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(5, 60, (2, 11), generator=generator)
    mask = torch.arange(11) < torch.tensor([[11], [7]])
    second = ((torch.arange(11) > 4) & mask).long() * (segments > 1)
    return WindowBatch(torch.where(mask, tokens, 0), mask, second, mask)


def compute_theirs(model: Any, inputs: WindowBatch, segments: int) -> Tensor:
    second = {"token_type_ids": inputs.segment_ids} if segments > 1 else {}
    with torch.no_grad():
        logits: Tensor = model(input_ids=inputs.tokens, attention_mask=inputs.mask.long(), **second).logits
    return logits


@KINDS
@pytest.mark.parametrize("num_labels", [1, 3])
def test_a_classifier_has_the_same_logits(
    kind: str, num_labels: int, tmp_path: Path, tokenizer: SubwordTokenizer
) -> None:
    model = make_transformers_model(kind, "ForSequenceClassification", num_labels=num_labels)
    folder = folder_of(model, tmp_path / "model")
    tokenizer.save(folder)
    loaded = load_classifier(folder)
    inputs = make_inputs(loaded.network.encode.segments)
    with torch.no_grad():
        logits = loaded.network(inputs).logits
    expected = compute_theirs(model, inputs, loaded.network.encode.segments)
    assert logits.shape == (2, num_labels)
    assert (logits - expected).abs().max() < 1e-4
    assert expected.abs().max() > 0.1
    assert loaded.labels == (() if num_labels == 1 else ("LABEL_0", "LABEL_1", "LABEL_2"))
    assert loaded.tokenizer == tokenizer
    assert not loaded.network.training


@KINDS
def test_our_classifier_has_the_same_logits_there(kind: str, tmp_path: Path) -> None:
    encoder, head = stir(build_encoder(OURS[kind])), stir(ClassHead(OURS[kind].width, 2, pool="first"))
    heads = rename_class_head(head.inner, head.out, FAMILIES[kind])
    save_encoder(tmp_path / "ours", Pretrained(encoder, family=kind, unused=heads))
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "ours").eval()
    inputs = make_inputs(OURS[kind].segments)
    segments = {"segments": inputs.segment_ids} if OURS[kind].segments > 1 else {}
    with torch.no_grad():
        expected = head(None, None, encoder(inputs.tokens, inputs.mask, **segments), inputs.mask)
    assert (compute_theirs(model, inputs, OURS[kind].segments) - expected).abs().max() < 1e-4


def test_folders_that_hold_no_classifier(tmp_path: Path, tokenizer: SubwordTokenizer) -> None:
    folder = folder_of(make_transformers_model("bert"), tmp_path / "plain")
    with pytest.raises(CheckpointError, match=r"no classification head .*'classifier.weight'.*use --start"):
        load_classifier(folder)
    folder = folder_of(make_transformers_model("distilbert", "ForSequenceClassification"), tmp_path / "distilbert")
    with pytest.raises(CheckpointError, match="only classification heads of BERT, RoBERTa and ALBERT"):
        load_classifier(folder)
    folder = folder_of(make_transformers_model("bert", "ForSequenceClassification"), tmp_path / "bert")
    with pytest.raises(CheckpointError, match=r"has no tokenizer.json"):
        load_classifier(folder)
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2"}), encoding="utf-8")
    with pytest.raises(CheckpointError, match="model_type 'gpt2'"):
        load_classifier(folder)


def test_tokenizers_are_compared_by_the_ids_they_give(tmp_path: Path, tokenizer: SubwordTokenizer) -> None:
    """An older folder has the vocabulary alone, in vocab.txt."""
    (tmp_path / "vocab.txt").write_text("\n".join(tokenizer.pieces), encoding="utf-8")
    older = load_subword_tokenizer(tmp_path)
    assert older is not None
    assert older.encode("A fine game").ids == tokenizer.encode("A fine game").ids
    assert tokenizer.reads_like(older)
    assert older.reads_like(tokenizer)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}', encoding="utf-8")
    cased = load_subword_tokenizer(tmp_path)
    assert cased is not None
    assert not tokenizer.reads_like(cased)
    assert not tokenizer.reads_like(train_wordpiece(["a bee can do every fine game"], vocab=60))
