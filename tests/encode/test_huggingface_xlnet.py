"""XLNet's Hugging Face folders: read, written, with its head, and what it cannot hold."""

from pathlib import Path

import pytest
import torch
import transformers
from app_runs import run as command
from huggingface_models import folder_of, make_transformers_model, quiet, stir
from learn_runs import finish
from pretraining_runs import load_tiny_recipe

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.encode import Pretrained, TransformerEncoder, load_encoder, save_encoder
from mnemic.encode.huggingface.shape import EncoderShape, build_encoder, shape_of_encoder
from mnemic.encode.stacks import FactorizationOrder
from mnemic.encode.stacks.two_stream import order_visible
from mnemic.models import WindowBatch

__all__ = ["quiet"]  # a fixture

SHAPE = EncoderShape(
    vocab=60, width=32, depth=2, heads=4, inner=48, length=512, segments=2, activation="gelu_tanh", epsilon=1e-5,
    dropout=0.1, attention_dropout=0.1, is_two_stream=True, clamp=5,
)  # fmt: skip


@torch.no_grad()
def test_an_xlnet_of_ours_is_one_of_transformers(tmp_path: Path) -> None:
    encoder = stir(build_encoder(SHAPE))
    assert shape_of_encoder(encoder) == SHAPE
    save_encoder(tmp_path / "ours", Pretrained(encoder, family="xlnet"))
    model = transformers.AutoModel.from_pretrained(tmp_path / "ours").eval()
    tokens = torch.randint(60, (2, 15), generator=torch.Generator().manual_seed(0))
    mask, segments = torch.arange(15) < torch.tensor([[15], [9]]), (torch.arange(15) > 5).long().expand(2, -1)
    expected = model(tokens, attention_mask=mask.float(), token_type_ids=segments).last_hidden_state
    assert (encoder(tokens, mask, segments=segments) - expected)[mask].abs().max() < 1e-4
    loaded = load_encoder(tmp_path / "ours")
    assert shape_of_encoder(loaded.encoder) == SHAPE
    assert all(torch.equal(weight, loaded.encoder.get_parameter(name)) for name, weight in encoder.named_parameters())


def test_a_trained_network_predicts_alike_there(tmp_path: Path) -> None:
    """A run is exported with its head: the same logits of asked tokens."""
    sets = ["train.steps=2", "model.encode.stack.heads=4"]
    finish(load_tiny_recipe("xlnet-pretrain", *sets), tmp_path / "run", device="cpu")
    result = command("export", tmp_path / "run", tmp_path / "xlnet", "--json")
    assert result.code == 0, result.err
    assert result.json["heads"] == ["lm_loss.bias"]
    network = load_checkpoint(tmp_path / "run").network
    model = transformers.XLNetLMHeadModel.from_pretrained(tmp_path / "xlnet").eval()
    tokens = torch.randint(5, 100, (1, 10), generator=torch.Generator().manual_seed(0))
    ranks, queries = torch.tensor([[3, -1, 0, 2, -1, 1, -1, -1, 5, 4]]), torch.tensor([[0, 2, 3, 5]])
    mask, positions = tokens > 0, queries[0]
    inputs = WindowBatch(tokens, mask, torch.zeros_like(tokens), positions, order=FactorizationOrder(ranks, queries))
    with torch.no_grad():
        logits = network.eval()(inputs).logits.masked_logits
    content, query = order_visible(ranks, mask, queries, queries < 10)
    hidden = (~content).float()
    hidden[0, positions] = (~query[0]).float()
    target_mapping = torch.nn.functional.one_hot(queries, 10).float()
    segments = torch.zeros_like(tokens)
    expected = model(tokens, perm_mask=hidden, target_mapping=target_mapping, token_type_ids=segments).logits
    assert (logits - expected[0]).abs().max() < 1e-4


def test_what_an_xlnet_cannot_hold_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="bert has no two streams"):
        save_encoder(tmp_path / "ours", Pretrained(build_encoder(SHAPE), family="bert"))
    with pytest.raises(ValueError, match="xlnet has no absolute positions"):
        save_encoder(tmp_path / "ours", Pretrained(TransformerEncoder(32, 60), family="xlnet"))
    stack = {"kind": "two-stream", "depth": 1}
    with pytest.raises(ValueError, match="its embeddings are more than vectors of tokens"):
        shape_of_encoder(TransformerEncoder(32, 60, stack=stack))
    embeddings = {"kind": "sum", "norm": False, "positions": {"kind": "none"}}
    with pytest.raises(ValueError, match="norms before its layers"):
        shape_of_encoder(TransformerEncoder(32, 60, embeddings=embeddings, stack={**stack, "norm": "pre"}))


def test_a_one_way_xlnet_is_refused(tmp_path: Path) -> None:
    folder = folder_of(make_transformers_model("xlnet", attn_type="uni"), tmp_path / "model")
    with pytest.raises(ValueError, match="mnemic reads only attn_type 'bi'"):
        load_encoder(folder)
