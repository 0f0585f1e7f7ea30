"""Replaced-token detection: labels, sampling, who gets which gradient, and shared tables.

Shapes: b batch, n tokens, m masked positions, v vocabulary.
"""

from typing import Any

import pytest
import torch
from chi_square import fits
from corpus_batches import MASK, VOCAB, make_batch, select_rows
from torch import Tensor, nn
from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining

from mnemic.models import IGNORE, ReplacedTokenModel, build_model, build_on_meta
from mnemic.models.replaced_token_model import ReplacedTokenLogits, replace_tokens, sample_tokens
from mnemic.objectives.pretraining.masked import mask_batch
from mnemic.objectives.pretraining.masking import ReplacementShares
from mnemic.objectives.pretraining.replaced import ReplacedTokenLoss, adversarial_loss, make_inputs
from mnemic.objectives.pretraining.token_masking import TokenMasking
from mnemic.recipe import ConfigError, load_recipe

MASKING = {"kind": "tokens", "rate": 0.3}
SIZES = {"vocab": VOCAB, "max_length": 24}


def make_network(seed: int = 0, embeddings: dict[str, Any] | None = None, **generator: Any) -> ReplacedTokenModel:
    torch.manual_seed(seed)
    stack = {"kind": "encoder", "depth": 2, "inner": 24, "attention": {"kind": "full", "heads": 4}}
    table = embeddings or {"kind": "sum", "segments": 2}
    encode = {"kind": "transformer", "embeddings": table, "stack": stack}
    model = {"width": 16, "encode": encode, "respond": {"kind": "replaced"}, "generator": generator}
    network = build_model(model, SIZES)
    assert isinstance(network, ReplacedTokenModel)
    return network


def gradients(network: nn.Module, **weights: Any) -> dict[str, Tensor]:
    """Compute the gradients of every weight, zeros where there is none."""
    network.zero_grad()
    ReplacedTokenLoss(masking=MASKING, **weights)(network, make_batch()).total.backward()
    named = network.named_parameters(remove_duplicate=False)
    return {name: torch.zeros_like(p) if p.grad is None else p.grad.clone() for name, p in named}


def corrupt(network: nn.Module, rate: float = 0.3) -> tuple[Any, Any, Any]:
    batch = make_batch()
    shares = ReplacementShares(0.85, 1 - 0.85)
    masked = mask_batch(batch, TokenMasking(rate=rate), shares=shares)
    return batch, masked, network(make_inputs(batch, masked)).logits


def test_samples_have_the_probabilities_of_the_softmax() -> None:
    """χ² over 100,000 draws of one distribution; a logit of -1e9 is never drawn."""
    logits = torch.tensor([1.0, -1.0, 0.3, -1e9, 2.0, 0.0])
    uniforms = torch.rand(100_000, generator=torch.Generator().manual_seed(0))
    counts = torch.bincount(sample_tokens(logits.expand(100_000, 6), uniforms), minlength=6)
    assert counts[3] == 0
    possible = torch.tensor([0, 1, 2, 4, 5])
    assert fits(counts[possible], logits.softmax(0)[possible])


def test_the_ends_of_the_unit_interval_give_an_id() -> None:
    logits = torch.randn(2, 50, generator=torch.Generator().manual_seed(0))
    assert sample_tokens(logits, torch.tensor([0.0, 1 - 2**-24])).tolist() == [0, 49]


def test_replacements_by_hand() -> None:
    """Positions beyond the batch, of a buffer that is too long, are dropped."""
    tokens = torch.tensor([[1, 2, 3], [4, 5, 6]])
    replaced = replace_tokens(tokens, torch.tensor([1, 5, 6, 6]), torch.tensor([20, 60, 7, 8]))
    assert replaced.tolist() == [[1, 20, 3], [4, 5, 60]]


def test_labels_are_made_by_comparison() -> None:
    """Masked tokens are sampled, all others stay; a sample equal to the original is original."""
    network = make_network()
    batch, masked, logits = corrupt(network)
    positions = masked.inputs.answer_mask
    is_masked = torch.zeros(batch.tokens.numel(), dtype=torch.bool)
    is_masked[positions] = True
    is_masked = is_masked.view_as(batch.tokens)
    assert torch.equal(logits.tokens[~is_masked], batch.tokens[~is_masked])
    assert torch.equal(logits.tokens.flatten()[positions], logits.samples)
    assert not (is_masked & batch.unmaskable).any()
    assert torch.equal(masked.inputs.tokens[~is_masked], batch.tokens[~is_masked])
    restored = logits.tokens.flatten().index_put((positions,), masked.targets).view_as(batch.tokens)
    assert torch.equal(restored, batch.tokens)
    # The generator is made to know the answers: then nothing is replaced, and no label says so.
    loss = ReplacedTokenLoss(mlm=0.0, replaced=1.0, masking=MASKING)
    with torch.no_grad():
        network.respond.score.weight.zero_()
        network.respond.score.bias.fill_(3.0)
        expected = nn.functional.binary_cross_entropy_with_logits(
            torch.full_like(batch.tokens, 3.0, dtype=torch.float),
            (logits.tokens != batch.tokens).float(), reduction="none",
        )  # fmt: skip
        weights = 0.3 * (~batch.unmaskable).sum(1) / batch.mask.sum(1)
        total = (weights * (expected * batch.mask).sum(1)).sum()
        torch.testing.assert_close(loss(network, batch).total, total)


def test_eighty_five_of_a_hundred_are_masked_and_the_others_shown() -> None:
    batch = make_batch(400, 60)
    masked = mask_batch(batch, TokenMasking(), shares=ReplacementShares(0.85, 1 - 0.85))
    inputs = masked.inputs.tokens.flatten()[masked.inputs.answer_mask]
    is_masked = inputs == MASK
    assert fits([is_masked.sum(), (~is_masked).sum()], [0.85, 0.15])
    assert torch.equal(inputs[~is_masked], masked.targets[~is_masked])


def test_an_untied_generator_has_the_gradient_of_its_own_loss_alone() -> None:
    """No gradient passes the sampling: a leak test."""
    network = make_network(share="none")
    both, mlm, replaced = gradients(network), gradients(network, replaced=0.0), gradients(network, mlm=0.0)
    assert any(name.startswith("generator.") for name in both)
    for name in both:
        if name.startswith("generator."):
            assert torch.equal(both[name], mlm[name])
            assert mlm[name].abs().sum() > 0 or "project.key.bias" in name
            assert replaced[name].abs().sum() == 0
        else:
            assert torch.equal(both[name], replaced[name])
            assert mlm[name].abs().sum() == 0


def test_shared_tables_have_both_gradients() -> None:
    network = make_network(share="all")
    both, mlm, replaced = gradients(network), gradients(network, replaced=0.0), gradients(network, mlm=0.0)
    for name in ("encode.embeddings.tokens", "encode.embeddings.segments", "encode.embeddings.norm.weight"):
        assert mlm[name].abs().sum() > 0
        assert replaced[name].abs().sum() > 0
        torch.testing.assert_close(both[name], mlm[name] + replaced[name])


@pytest.mark.parametrize("embeddings", [None, {"kind": "factorised", "embedding_width": 8}])
@pytest.mark.parametrize("size", [0.25, 1.0])
def test_which_tables_are_shared(embeddings: dict[str, Any] | None, size: float) -> None:
    """The switch of the paper's ablation: none, tokens, all."""
    shared = {}
    for share in ("none", "tokens", "all"):
        network = make_network(embeddings=embeddings, share=share, size=size)
        of_generator = {id(weight) for weight in network.generator.parameters()}
        shared[share] = {name for name, weight in network.encode.named_parameters() if id(weight) in of_generator}
        assert network.generator.vocabulary.words is network.generator.encode.embeddings.tokens
        loss = ReplacedTokenLoss(masking=MASKING)(network, make_batch())
        loss.total.backward()
        assert not [name for name, weight in network.named_parameters() if weight.grad is None]
    prefix = "embeddings.narrow" if embeddings else "embeddings"
    names = ["tokens", "positions.table", "norm.weight", "norm.bias", *([] if embeddings else ["segments"])]
    assert shared == {"none": set(), "tokens": {f"{prefix}.tokens"}, "all": {f"{prefix}.{name}" for name in names}}


def test_the_generator_is_a_share_as_wide() -> None:
    """A quarter of the width, heads and inner width, all layers, its own map from the tables."""
    generator = make_network().generator
    assert generator.encode.width == 4
    assert len(generator.encode.stack.blocks) == 2
    assert generator.encode.stack.blocks[0].attention.heads == 1
    assert generator.encode.stack.blocks[0].feed.widen.out_features == 6
    assert generator.encode.embeddings.widen.weight.shape == (4, 16)
    assert make_network(size=0.5).generator.encode.width == 8


def test_the_recipe_has_the_published_sizes() -> None:
    """As many weights as ELECTRA small of Hugging Face, discriminator and generator."""
    model = load_recipe("electra-pretrain")["model"]
    network = build_on_meta(lambda: build_model(model, {"vocab": 30522, "max_length": 512}))
    with torch.device("meta"):
        discriminator = ElectraForPreTraining(ElectraConfig())
        narrow = {"hidden_size": 64, "num_attention_heads": 1, "intermediate_size": 256}
        generator = ElectraForMaskedLM(ElectraConfig(**narrow))
    for ours, theirs in (([network.encode, network.respond], discriminator), ([network.generator], generator)):
        assert sum(weight.numel() for part in ours for weight in part.parameters()) == theirs.num_parameters()


def test_elsewhere_only_the_discriminator_is_used() -> None:
    network = make_network()
    _, masked, _ = corrupt(network)
    output = network(masked.inputs._replace(answer_mask=masked.inputs.mask))
    assert output.logits.shape == masked.inputs.tokens.shape
    assert output.states.shape == (*masked.inputs.tokens.shape, 16)


@pytest.mark.parametrize("capacity", [0, 140])
@pytest.mark.parametrize("tokens", ["all", "masked"])
def test_parts_of_a_batch_add_up(tokens: str, capacity: int) -> None:
    network, batch = make_network(baseline=True), make_batch(max_tokens=capacity)
    objective = ReplacedTokenLoss(tokens=tokens, adversarial=0.5, masking=MASKING)  # type: ignore[arg-type]
    whole = objective(network, batch)
    parts = [objective(network, select_rows(batch, rows)) for rows in (slice(0, 2), slice(2, 6))]
    torch.testing.assert_close(whole.total, parts[0].total + parts[1].total)
    assert whole.num_targets == parts[0].num_targets + parts[1].num_targets
    assert whole.means is not None
    assert set(whole.means) == {"mlm", "replaced", "adversarial"}


def test_the_discriminator_is_asked_at_every_token_or_at_the_masked_ones() -> None:
    network = make_network()
    batch, masked, logits = corrupt(network)
    losses = nn.functional.binary_cross_entropy_with_logits(
        logits.replaced_logits, (logits.tokens != batch.tokens).float(), reduction="none"
    )
    at_masked = ReplacedTokenLoss(mlm=0.0, replaced=1.0, tokens="masked", masking=MASKING)(network, batch)
    torch.testing.assert_close(at_masked.total, losses.flatten()[masked.inputs.answer_mask].sum())
    whole_rows = select_rows(make_batch(), slice(0, 5))  # no padding: the mean is a plain one
    loss = ReplacedTokenLoss(mlm=0.0, replaced=1.0, masking={"kind": "tokens", "rate": 1.0})(network, whole_rows)
    masked = mask_batch(whole_rows, TokenMasking(rate=1.0), shares=ReplacementShares(0.85, 1 - 0.85))
    logits = network(make_inputs(whole_rows, masked)).logits
    mean = nn.functional.binary_cross_entropy_with_logits(
        logits.replaced_logits[whole_rows.mask], (logits.tokens != whole_rows.tokens)[whole_rows.mask].float()
    )
    torch.testing.assert_close(loss.total / loss.num_targets, mean)


def test_an_adversarial_generator_is_trained_by_reinforce() -> None:
    """Its gradient is that of -Σ (R - b) log p(sample); the discriminator has none."""
    network = make_network(share="none", baseline=True)
    adversarial = gradients(network, mlm=0.0, replaced=0.0, adversarial=1.0)
    assert not [n for n, g in adversarial.items() if not n.startswith("generator.") and g.abs().sum() > 0]
    network.zero_grad()
    batch, masked, logits = corrupt(network)
    losses = nn.functional.binary_cross_entropy_with_logits(
        logits.replaced_logits, (logits.tokens != batch.tokens).float(), reduction="none"
    )
    rewards = losses.detach().flatten()[masked.inputs.answer_mask]
    total = torch.zeros(())
    for row, sample in enumerate(logits.samples.tolist()):
        right = logits.baseline_logits[row].sigmoid()  # that the discriminator is, as the baseline thinks
        advantage = rewards[row] + right.log().detach()
        total = total - advantage * logits.masked_logits[row].log_softmax(-1)[sample]
        truth = (-rewards[row]).exp()
        total = total - truth * right.log() - (1 - truth) * (1 - right).log()
    total.backward()
    for name, parameter in network.generator.named_parameters():
        torch.testing.assert_close(adversarial[f"generator.{name}"], parameter.grad, rtol=1e-4, atol=1e-6)


def test_the_reinforced_samples_become_those_that_fool() -> None:
    """A discriminator that sees through every token but one: the generator learns to write it."""
    logits = nn.Parameter(torch.zeros(4))
    optimizer = torch.optim.SGD([logits], lr=0.5)
    rewards_of = torch.tensor([0.1, 0.1, 3.0, 0.1])
    generator = torch.Generator().manual_seed(0)
    for _ in range(60):
        samples = sample_tokens(logits.expand(32, 4), torch.rand(32, generator=generator))
        output = ReplacedTokenLogits(logits.expand(32, 4), samples, samples, None, torch.zeros(32))
        optimizer.zero_grad()
        (adversarial_loss(output, rewards_of[samples], torch.ones(32, dtype=torch.bool)) / 32).backward()
        optimizer.step()
    assert logits.argmax() == 2
    assert logits.softmax(0)[2] > 0.9


def test_two_stages_start_the_discriminator_with_the_generator() -> None:
    network = make_network(size=1.0, share="none", starts_detector=True)
    before = network.encode.embeddings.tokens.clone()
    network.start_phase()
    assert not torch.equal(before, network.encode.embeddings.tokens)
    for name, weight in network.encode.named_parameters():
        assert torch.equal(weight, network.generator.encode.get_parameter(name))
    plain = make_network(size=1.0, share="none")
    plain.start_phase()
    assert not torch.equal(plain.encode.embeddings.tokens, plain.generator.encode.embeddings.tokens)


def test_without_the_discriminator_only_the_generator_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    network = make_network()
    monkeypatch.setattr(network.respond, "forward", None)
    loss = ReplacedTokenLoss(replaced=0.0, masking=MASKING)(network, make_batch())
    masked = mask_batch(make_batch(), TokenMasking(rate=0.3), shares=ReplacementShares(0.85, 1 - 0.85))
    logits, _ = network.generator(masked.inputs)
    torch.testing.assert_close(
        loss.total, nn.functional.cross_entropy(logits, masked.targets, ignore_index=IGNORE, reduction="sum")
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 1.5}, r"above 0 and up to 1, not 1\.5"),
        ({"starts_detector": True}, r"set generator\.size=1\.0"),
        ({"shared": "all"}, "generator does not take 'shared'"),
        ({"share": "some"}, "generator.share is"),
    ],
)
def test_mistakes_in_the_generator_are_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_network(**options)


def test_mistakes_in_the_objective_are_told() -> None:
    with pytest.raises(ConfigError, match="at most 1 together"):
        ReplacedTokenLoss(mask_share=1.2)
    with pytest.raises(ConfigError, match="one of the weights mlm, replaced, adversarial"):
        ReplacedTokenLoss(mlm=0.0, replaced=0.0)
    with pytest.raises(ConfigError, match=r"set model\.generator\.baseline=true"):
        ReplacedTokenLoss(adversarial=1.0)(make_network(), make_batch())
