"""BART and T5 folders: equal scores there and here, written and read, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from huggingface_models import quiet, stir
from safetensors.torch import load_file, save_file
from torch import Tensor

from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.checkpoint.folder import Checkpoint, TrainingProgress, weights_of
from mnemic.checkpoint.seq2seq_folder import load_seq2seq, save_seq2seq
from mnemic.checkpoint.seq2seq_folder.write import find_shape
from mnemic.models import WindowBatch, build_model
from mnemic.recipe import load_recipe
from mnemic.text import SubwordTokenizer
from mnemic.text.tokenizers.trainers import train_byte_bpe

__all__ = ["quiet"]  # a fixture

BART = {
    "vocab_size": 300, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 40,
}  # fmt: skip
T5 = {"vocab_size": 300, "d_model": 32, "num_layers": 2, "num_heads": 4, "d_kv": 8, "d_ff": 48}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "bart": ("Bart", BART),
    "bart, scaled, uneven": (
        "Bart",
        BART | {"scale_embedding": True, "encoder_layers": 1, "decoder_ffn_dim": 20, "decoder_attention_heads": 2},
    ),
    "bart, relu": ("Bart", BART | {"activation_function": "relu", "decoder_layers": 3}),
    "t5": ("T5", T5),
    "t5, uneven, few buckets": (
        "T5", T5 | {"num_decoder_layers": 1, "d_kv": 5, "relative_attention_num_buckets": 8,
                    "relative_attention_max_distance": 12}
    ),
    "t5 1.1": ("T5", T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
}  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer() -> SubwordTokenizer:
    return train_byte_bpe(["a text of words, and another text"], vocab=300)


def make_folder(kind: str, folder: Path, tokenizer: SubwordTokenizer) -> Any:
    """Save a random model of ``transformers`` with a tokenizer; return the model."""
    name, options = MODELS[kind]
    model = stir(
        getattr(transformers, f"{name}ForConditionalGeneration")(getattr(transformers, f"{name}Config")(**options))
    )
    with torch.no_grad():
        if name == "Bart":
            model.final_logits_bias.normal_()
        else:  # its scores are divided by √d
            model.shared.weight *= 5
    if kind == "t5 1.1":
        model.lm_head.weight = torch.nn.Parameter(torch.randn(300, 32) * 0.3)
    model.save_pretrained(folder)
    if kind == "t5 1.1":  # as the published folders are; the library's own writer ties them
        weights = load_file(folder / "model.safetensors") | {"lm_head.weight": model.lm_head.weight.detach().clone()}
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        config = json.loads((folder / "config.json").read_text("utf-8")) | {"tie_word_embeddings": False}
        (folder / "config.json").write_text(json.dumps(config), "utf-8")
        model = transformers.T5ForConditionalGeneration.from_pretrained(folder).eval()
    tokenizer.save(folder)
    return model


def make_batch() -> tuple[Tensor, Tensor, Tensor]:
    """Make two sources of 30 and 11 tokens and the first tokens of their answers."""
    generator = torch.Generator().manual_seed(0)
    tokens, answers = (torch.randint(5, 300, (2, length), generator=generator) for length in (30, 9))
    return tokens, torch.arange(30) < torch.tensor([[30], [11]]), answers


def score(network: Any, tokens: Tensor, mask: Tensor, answers: Tensor) -> Tensor:
    return network(WindowBatch(tokens * mask, mask, torch.zeros_like(tokens), mask, decoder_tokens=answers)).logits


@torch.no_grad()
@pytest.mark.parametrize("kind", MODELS)
def test_the_scores_are_those_of_transformers_both_ways(kind: str, tmp_path: Path, tokenizer: SubwordTokenizer) -> None:
    model = make_folder(kind, tmp_path / "theirs", tokenizer)
    tokens, mask, answers = make_batch()
    expected = model(input_ids=tokens, attention_mask=mask.long(), decoder_input_ids=answers).logits
    checkpoint = load_seq2seq(tmp_path / "theirs")
    logits = score(checkpoint.network, tokens, mask, answers)
    assert expected.std() > 0.2
    assert (logits - expected).abs().max() <= 1e-4
    save_seq2seq(tmp_path / "ours", checkpoint)
    returned = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "ours").eval()
    again = returned(input_ids=tokens, attention_mask=mask.long(), decoder_input_ids=answers).logits
    assert (again - expected).abs().max() <= 1e-4
    reloaded = load_seq2seq(tmp_path / "ours")
    assert (score(reloaded.network, tokens, mask, answers) - expected).abs().max() <= 1e-4
    assert reloaded.recipe == checkpoint.recipe
    assert reloaded.tokenizer == tokenizer
    pieces = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")("another text").input_ids
    assert pieces == tokenizer.encode("another text").ids


def make_checkpoint(recipe: str, *sets: str, tokenizer: SubwordTokenizer) -> Checkpoint:
    model = load_recipe(recipe, ["model.width=32", *sets])
    network = stir(build_model(model["model"], {"vocab": 300, "max_length": 40}))
    return Checkpoint(
        recipe=model, seed=0, sizes={"vocab": 300, "max_length": 40}, tokenizer=tokenizer, network=network,
        progress=TrainingProgress(done=True), state={},
    )  # fmt: skip


@torch.no_grad()
@pytest.mark.parametrize("recipe", ["bart", "t5"])
def test_a_network_of_a_recipe_is_written(recipe: str, tmp_path: Path, tokenizer: SubwordTokenizer) -> None:
    checkpoint = make_checkpoint(recipe, tokenizer=tokenizer)
    save_seq2seq(tmp_path / "ours", checkpoint)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "ours").eval()
    tokens, mask, answers = make_batch()
    expected = model(input_ids=tokens, attention_mask=mask.long(), decoder_input_ids=answers).logits
    assert (score(checkpoint.network, tokens, mask, answers) - expected).abs().max() <= 1e-4
    start = {"bart": tokenizer.sep, "t5": tokenizer.pad}[recipe]
    assert (model.config.decoder_start_token_id, model.config.eos_token_id) == (start, tokenizer.sep)
    reloaded = weights_of(load_seq2seq(tmp_path / "ours").network)
    for name, weight in weights_of(checkpoint.network).items():
        torch.testing.assert_close(reloaded[name], weight, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (["model.encode.stack.norm=pre"], "encode.stack.blocks.0.around_attention.is_pre_norm"),
        (["model.encode.stack.epsilon=1e-12"], "encode.stack.blocks.0.around_attention.norm.eps"),
        (["model.respond.tied=false"], "respond.embeddings.tokens"),
        (["model.respond.bias=false"], "respond.bias"),
        (['model.encode.stack={kind="star"}'], "only an encoder-decoder of Transformer layers"),
    ],
)
def test_what_they_cannot_hold_is_named(sets: list[str], message: str, tokenizer: SubwordTokenizer) -> None:
    with pytest.raises(ValueError, match=message):
        find_shape(make_checkpoint("bart", *sets, tokenizer=tokenizer).network)


def test_wrong_folders_are_refused(tmp_path: Path, tokenizer: SubwordTokenizer) -> None:
    make_folder("bart", tmp_path, tokenizer)
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    changes = [
        ({"d_model": 64}, "shape"), ({"decoder_layers": 5}, "has no weight 'model.decoder.layers.2"),
        ({"model_type": "mbart"}, "encoder-decoders that mnemic reads are bart"), ({"d_model": "32"}, "d_model is -1"),
        ({"activation_function": "swish"}, "known are"),
    ]  # fmt: skip
    for change, message in changes:
        (tmp_path / "config.json").write_text(json.dumps(config | change), "utf-8")
        with pytest.raises(CheckpointError, match=message):
            load_seq2seq(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=r"has no tokenizer\.json"):
        load_seq2seq(tmp_path)
