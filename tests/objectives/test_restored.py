"""The networks that ELECTRA is compared with: they predict the words behind replaced tokens.

Shapes: b batch, n tokens, m positions, v vocabulary.
"""

from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from corpus_batches import VOCAB, make_batch, select_rows
from learn_runs import finish
from pretraining_runs import compute_unigram_loss, load_tiny_recipe
from torch import Tensor, nn

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.models import ReplacedTokenModel, build_model
from mnemic.objectives.pretraining.masked import mask_batch
from mnemic.objectives.pretraining.masking import ReplacementShares
from mnemic.objectives.pretraining.replaced import ReplacedTokenLoss, make_inputs
from mnemic.objectives.pretraining.restored import RestoredTokenLoss, copied_token_losses
from mnemic.objectives.pretraining.token_masking import TokenMasking
from mnemic.recipe import ConfigError
from mnemic.respond.pretraining.restored import RestoredLogits

MASKING = {"kind": "tokens", "rate": 0.3}
Asked = Literal["all", "masked"]


def make_network(respond: str = "restored", **generator: Any) -> ReplacedTokenModel:
    torch.manual_seed(0)
    stack = {"kind": "encoder", "depth": 1, "attention": {"kind": "full", "heads": 4}}
    encode = {"kind": "transformer", "embeddings": {"kind": "sum", "segments": 2}, "stack": stack}
    model = {"width": 16, "encode": encode, "respond": {"kind": respond}, "generator": generator}
    network = build_model(model, {"vocab": VOCAB, "max_length": 24})
    assert isinstance(network, ReplacedTokenModel)
    return network


def test_copies_and_words_have_probabilities_that_add_up() -> None:
    """(1 - D) softmax + D at the word that stands there, over the whole vocabulary: 1."""
    generator = torch.Generator().manual_seed(0)
    logits = RestoredLogits(torch.randn(3, 7, generator=generator), torch.tensor([-1.0, 0.5, 3.0]))
    tokens = torch.tensor([2, 2, 6])
    probabilities = torch.stack(
        [(-copied_token_losses(logits, tokens, torch.full((3,), word))).exp() for word in range(7)], 1
    )
    torch.testing.assert_close(probabilities.sum(1), torch.ones(3))
    copy = logits.copy_logits.sigmoid()
    expected = (1 - copy.unsqueeze(1)) * logits.word_logits.softmax(1)
    expected[torch.arange(3), tokens] += copy
    torch.testing.assert_close(probabilities, expected)


@pytest.mark.parametrize("capacity", [0, 140])
@pytest.mark.parametrize("tokens", ["all", "masked"])
def test_the_loss_is_that_of_a_loop(tokens: Asked, capacity: int) -> None:
    """The network reads samples, never [MASK], and is asked for all real tokens or masked ones."""
    network, batch = make_network().eval(), make_batch(max_tokens=capacity)
    loss = RestoredTokenLoss(mlm=0.0, restored=1.0, tokens=tokens, masking=MASKING)(network, batch)
    masked = mask_batch(batch._replace(max_tokens=0), TokenMasking(rate=0.3), shares=ReplacementShares(0.85, 0.15))
    output = network(make_inputs(batch, masked)).logits
    assert not (output.tokens == int(batch.mask_id)).any()
    asked = torch.arange(batch.tokens.numel())
    states = network.encode(output.tokens, batch.mask, segments=batch.segments)
    words, copies = network.respond(None, None, states, asked)
    is_masked = torch.zeros(batch.tokens.numel(), dtype=torch.bool).index_fill(0, masked.inputs.answer_mask, True)
    total = torch.zeros(())
    for position, original in enumerate(batch.tokens.flatten().tolist()):
        row = position // batch.tokens.shape[1]
        if tokens == "masked" and is_masked[position]:
            total = total - words[position].log_softmax(0)[original]
        if tokens == "all" and batch.mask[row, position % batch.tokens.shape[1]]:
            probability = (1 - copies[position].sigmoid()) * words[position].softmax(0)[original]
            if output.tokens.flatten()[position] == original:
                probability = probability + copies[position].sigmoid()
            weight = 0.3 * (~batch.unmaskable[row]).sum() / batch.mask[row].sum()
            total = total - weight * probability.log()
    torch.testing.assert_close(loss.total, total, rtol=1e-4, atol=1e-3)
    assert loss.num_targets == is_masked.sum()


@pytest.mark.parametrize("tokens", ["all", "masked"])
def test_parts_of_a_batch_add_up_and_every_weight_learns(tokens: Asked) -> None:
    network, batch = make_network().eval(), make_batch()
    objective = RestoredTokenLoss(tokens=tokens, masking=MASKING)
    whole = objective(network, batch)
    parts = [objective(network, select_rows(batch, rows)) for rows in (slice(0, 2), slice(2, 6))]
    torch.testing.assert_close(whole.total, parts[0].total + parts[1].total)
    whole.total.backward()
    assert not [name for name, weight in network.named_parameters() if weight.grad is None]


def test_an_untied_generator_has_the_gradient_of_its_own_loss_alone() -> None:
    """As in ELECTRA: no gradient passes the sampling."""

    def gradients(**weights: float) -> dict[str, Tensor]:
        network.zero_grad()
        RestoredTokenLoss(masking=MASKING, **weights)(network, make_batch()).total.backward()
        named: dict[str, nn.Parameter] = dict(network.generator.named_parameters())
        return {name: torch.zeros_like(p) if p.grad is None else p.grad.clone() for name, p in named.items()}

    network = make_network(share="none")
    both, restored = gradients(), gradients(mlm=0.0)
    assert sum(float(gradient.abs().sum()) for gradient in both.values()) > 0
    assert all((gradient == 0).all() for gradient in restored.values())


def test_objectives_need_their_own_networks() -> None:
    with pytest.raises(ConfigError, match=r"model\.respond\.kind=restored"):
        RestoredTokenLoss(masking=MASKING)(make_network("replaced"), make_batch())
    with pytest.raises(ConfigError, match=r"model\.respond\.kind=replaced"):
        ReplacedTokenLoss(masking=MASKING)(make_network(), make_batch())


def test_words_behind_replaced_tokens_are_learned(tmp_path: Path) -> None:
    """Below the unigram loss; validation asks at masked tokens, which the generator replaced."""
    sets = ["model.encode.embeddings.embedding_width=16", "model.encode.stack.inner=64", "model.generator.size=0.5"]
    sets += ["model.encode.stack.attention.heads=4", "model.respond={ kind = 'restored' }", "train.rate=0.01"]
    sets += ["objective={ kind = 'restored', tokens = 'masked' }", "train.steps=50", "train.log=50"]
    sets += ["model.encode.stack.depth=1"]
    finish(load_tiny_recipe("electra-pretrain", *sets), tmp_path, device="cpu")
    figures = load_checkpoint(tmp_path).progress.history[-1]["figures"]
    assert figures.keys() == {"accuracy", "loss"}
    assert figures["loss"] < 0.95 * compute_unigram_loss()
