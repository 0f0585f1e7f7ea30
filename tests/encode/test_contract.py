"""What every encoder promises, whatever it is made of.

Every kind of every table of the room is in at least one case; a new kind gets in by itself.
``WHOLE`` kinds give one state a text, not one a token, and have tests of their own.
"""

import inspect
import io
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from mnemic.encode import ATTENTIONS, DECODERS, EMBEDDINGS, ENCODERS, POSITIONS, RECURRENTS, STACKS
from mnemic.recipe import build

D, VOCAB, N = 16, 30, 6
WHOLE = {"bag", "context-bag", "exact-match", "masked-bag", "ngrams", "recurrent-sentence"}


def plain(table: Mapping[str, Callable[..., Any]], kind: str) -> dict[str, Any]:
    """A kind, in plain matmuls where it has fused kernels that vmap does not know."""
    fused = "fused" in inspect.signature(table[kind]).parameters
    return {"kind": kind, "fused": False} if fused else {"kind": kind}


def cases() -> dict[str, dict[str, Any]]:
    full = plain(ATTENTIONS, "full")
    stack = {"kind": "encoder", "attention": full}
    found: dict[str, dict[str, Any]] = {}
    for kind in STACKS:
        found[f"transformer stack {kind}"] = {"stack": {"kind": kind, "attention": full}}
    found["transformer shared layers"] = {"stack": {**stack, "depth": 4, "groups": 2}}
    for kind in ATTENTIONS:
        own = {"kind": "encoder", "norm": "pre", "attention": plain(ATTENTIONS, kind)}
        found[f"transformer attention {kind}"] = {"stack": own}
    for kind in EMBEDDINGS:
        words = {"kind": kind, "segments": 2}
        if kind == "factorised":
            words = {"kind": kind, "embedding_width": 6, "embeddings": {"kind": "sum", "segments": 2}}
        found[f"transformer embeddings {kind}"] = {"embeddings": words, "stack": stack}
    for kind in POSITIONS:
        words = {"kind": "sum", "positions": {"kind": kind}, "scale": kind == "sinusoidal"}
        found[f"transformer positions {kind}"] = {"embeddings": words, "stack": stack}
    for kind in DECODERS:
        found[f"causal stack {kind}"] = {"stack": {"kind": kind, "attention": full}}
    for kind in RECURRENTS:
        for directions in ("forward", "halves", "sum"):
            own = {**plain(RECURRENTS, kind), "directions": directions}
            found[f"recurrent {kind} {directions}"] = {"recurrent": own}
    found["word-vectors"] = {}
    return {name: {"kind": name.split()[0], **spec} for name, spec in found.items()}


def with_kernels(spec: Any) -> Any:
    """The same recipe with its fused kernels."""
    if not isinstance(spec, Mapping):
        return spec
    return {key: with_kernels(value) for key, value in spec.items() if key != "fused"}


CASES = cases()
EVERY = pytest.mark.parametrize("case", CASES)
BOTH = pytest.mark.parametrize("fused", [True, False], ids=["fused", "plain"])


def make(case: str, fused: bool = True, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    spec = with_kernels(CASES[case]) if fused else CASES[case]
    return build(ENCODERS, spec, width=D, vocab=VOCAB).eval()


def text(*shape: int, seed: int = 1) -> Tensor:
    return torch.randint(VOCAB, shape, generator=torch.Generator().manual_seed(seed))


def all_of(tokens: Tensor) -> Tensor:
    return torch.ones_like(tokens, dtype=torch.bool)


def ragged(tokens: Tensor) -> Tensor:
    """The first row whole, the second half, the third one token, then the same again."""
    lengths = torch.tensor([N, N // 2, 1]).repeat(tokens.shape[0])[: tokens.shape[0]]
    return torch.arange(tokens.shape[1]) < lengths[:, None]


def test_every_encoder_has_a_case() -> None:
    assert {spec["kind"] for spec in CASES.values()} == ENCODERS.keys() - WHOLE


@EVERY
@BOTH
def test_one_state_a_token_and_zeros_at_padding(case: str, fused: bool) -> None:
    encoder, tokens = make(case, fused), text(3, N)
    mask = ragged(tokens)
    states = encoder(tokens, mask)
    assert states.shape == (3, N, encoder.width)
    assert (states[~mask] == 0).all()
    assert (states[mask] != 0).any(-1).all()


@EVERY
@BOTH
def test_padding_changes_nothing(case: str, fused: bool) -> None:
    """The same words give the same states however much, and whatever, follows them."""
    encoder, tokens = make(case, fused), text(2, N)
    padded = torch.cat([tokens, text(2, 3, seed=2)], 1)
    mask = torch.arange(N + 3).expand(2, -1) < N
    torch.testing.assert_close(encoder(padded, mask)[:, :N], encoder(tokens, all_of(tokens)))


@EVERY
@BOTH
def test_the_batch_changes_nothing(case: str, fused: bool) -> None:
    encoder, tokens = make(case, fused), text(4, N)
    mask = ragged(tokens)
    together = encoder(tokens, mask)
    for row in range(4):
        alone = encoder(tokens[row : row + 1], mask[row : row + 1])
        torch.testing.assert_close(together[row : row + 1], alone)


@EVERY
@BOTH
def test_other_words_give_other_states(case: str, fused: bool) -> None:
    encoder, tokens = make(case, fused), text(1, N)
    states = encoder(tokens, all_of(tokens))
    changed = (tokens + 1) % VOCAB
    assert (encoder(changed, all_of(tokens)) != states).any(-1).all()


@EVERY
@BOTH
def test_one_token_is_enough(case: str, fused: bool) -> None:
    encoder, tokens = make(case, fused), text(2, 1)
    states = encoder(tokens, all_of(tokens))
    assert states.shape == (2, 1, D)
    assert states.isfinite().all()


@EVERY
@BOTH
def test_a_row_of_padding_is_survived(case: str, fused: bool) -> None:
    encoder, tokens = make(case, fused), text(2, N)
    mask = all_of(tokens)
    mask[1] = False
    states = encoder(tokens, mask)
    assert (states[1] == 0).all()
    (states * torch.arange(D)).sum().backward()
    assert all(weight.grad.isfinite().all() for weight in encoder.parameters())


@EVERY
@BOTH
def test_every_weight_learns(case: str, fused: bool) -> None:
    """But a key's bias: softmax does not see what is added to all scores."""
    encoder, tokens = make(case, fused), text(3, N)
    direction = torch.randn(3, N, D, generator=torch.Generator().manual_seed(3))
    (encoder(tokens, ragged(tokens)) * direction).sum().backward()
    weights = dict(encoder.named_parameters())
    assert not [name for name, weight in weights.items() if weight.grad is None]
    dead = [name for name, weight in weights.items() if weight.grad.abs().max() < 1e-6]
    assert not [name for name in dead if not name.endswith("key.bias")]


@EVERY
def test_saved_weights_give_the_same_numbers(case: str) -> None:
    first, second, tokens = make(case, seed=0), make(case, seed=1), text(3, N)
    mask = ragged(tokens)
    wanted = first(tokens, mask)
    assert not torch.equal(second(tokens, mask), wanted)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second.load_state_dict(torch.load(file, weights_only=True), strict=True)
    assert torch.equal(second(tokens, mask), wanted)


@EVERY
def test_fused_and_plain_are_the_same_encoder(case: str) -> None:
    fused, own, tokens = make(case), make(case, fused=False), text(3, N)
    own.load_state_dict(fused.state_dict())
    mask = ragged(tokens)
    torch.testing.assert_close(fused(tokens, mask), own(tokens, mask))


@EVERY
@BOTH
def test_a_seed_settles_everything(case: str, fused: bool) -> None:
    first, second, tokens = make(case, fused), make(case, fused), text(3, N)
    mask = ragged(tokens)
    assert torch.equal(first(tokens, mask), second(tokens, mask))
    assert torch.equal(first(tokens, mask), first(tokens, mask))


@EVERY
@BOTH
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions(case: str, fused: bool, dtype: torch.dtype) -> None:
    encoder, tokens = make(case, fused), text(3, N)
    mask = ragged(tokens)
    wanted = encoder(tokens, mask)
    found = encoder.to(dtype)(tokens, mask)
    assert found.dtype == dtype
    loose = {"atol": 0.1, "rtol": 0.1} if dtype == torch.bfloat16 else {"atol": 1e-5, "rtol": 1e-5}
    torch.testing.assert_close(found.float(), wanted, **loose)
    found.float().square().sum().backward()


@EVERY
@pytest.mark.parametrize("shared", [True, False], ids=["one batch", "own batches"])
def test_many_at_once(case: str, shared: bool) -> None:
    """Stacked weights under vmap: each run's states and gradients are those it has alone."""
    encoders = [make(case, fused=False, seed=seed) for seed in range(3)]
    weights, _ = stack_module_state(encoders)
    tokens = text(2, N).expand(3, 2, N) if shared else text(3, 2, N)
    mask = ragged(tokens[0]).expand(3, 2, N)
    shape = make(case, fused=False).to("meta")  # no weight of its own can slip in

    def run(own: dict[str, Tensor], tokens: Tensor, mask: Tensor) -> Tensor:
        return functional_call(shape, own, (tokens, mask))

    if shared:
        together = vmap(run, in_dims=(0, None, None))(weights, tokens[0], mask[0])
    else:
        together = vmap(run)(weights, tokens, mask)
    alone = [encoder(tokens[i], mask[i]) for i, encoder in enumerate(encoders)]
    torch.testing.assert_close(together, torch.stack(alone))
    direction = torch.randn(together.shape, generator=torch.Generator().manual_seed(3))
    (together * direction).sum().backward()
    (torch.stack(alone) * direction).sum().backward()
    for name, stacked in weights.items():
        wanted = torch.stack([dict(e.named_parameters())[name].grad for e in encoders])
        torch.testing.assert_close(stacked.grad, wanted, msg=name)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@EVERY
@BOTH
def test_a_gpu_gives_the_same_numbers(case: str, fused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """States and gradients; with a row of padding, and without tensor-core rounding."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    tokens = text(4, N)
    mask = ragged(tokens)
    mask[3] = False
    results = []
    for device in ("cpu", "cuda"):
        encoder = make(case, fused).to(device).train()
        states = encoder(tokens.to(device), mask.to(device))
        (states * torch.arange(D, device=device)).sum().backward()
        results.append([states, *(weight.grad for weight in encoder.parameters())])
    for here, there in zip(*results, strict=True):
        torch.testing.assert_close(there.cpu(), here, atol=1e-3, rtol=1e-3)


DROPPING = [
    {"kind": "transformer", "embeddings": {"kind": "sum", "dropout": 0.5}},
    {"kind": "transformer", "stack": {"kind": "encoder", "dropout": 0.5}},
    {"kind": "causal", "stack": {"kind": "transformer", "dropout": 0.5}},
    {"kind": "recurrent", "recurrent": {"kind": "lstm", "depth": 2, "dropout": 0.5}},
]


@pytest.mark.parametrize("spec", DROPPING)
def test_dropout_acts_only_in_training(spec: dict[str, Any]) -> None:
    encoder, tokens = build(ENCODERS, spec, width=D, vocab=VOCAB), text(3, N)
    mask = ragged(tokens)
    assert not torch.equal(encoder(tokens, mask), encoder(tokens, mask))
    encoder.eval()
    assert torch.equal(encoder(tokens, mask), encoder(tokens, mask))


def test_many_at_once_drop_out_differently() -> None:
    """In training too, where every run throws its own dice."""
    spec = {
        "kind": "transformer",
        "embeddings": {"kind": "sum", "dropout": 0.5},
        "stack": {"kind": "encoder", "dropout": 0.5, "attention": {"kind": "full", "fused": False, "dropout": 0.5}},
    }
    encoder, tokens = build(ENCODERS, spec, width=D, vocab=VOCAB), text(2, N)
    weights, _ = stack_module_state([encoder, encoder])

    def run(own: dict[str, Tensor]) -> Tensor:
        return functional_call(encoder, own, (tokens, all_of(tokens)))

    first, second = vmap(run, randomness="different")(weights)
    assert first.isfinite().all()
    assert not torch.equal(first, second)


@EVERY
def test_an_encoder_says_whether_states_depend_on_later_tokens(case: str) -> None:
    if case == "word-vectors":
        pytest.skip("it reads texts for a memory, which have no order")
    encoder, tokens = make(case), text(2, N)
    changed = tokens.clone()
    changed[:, -1] = (changed[:, -1] + 1) % VOCAB
    before, after = (encoder(ids, all_of(ids))[:, : N - 1] for ids in (tokens, changed))
    assert torch.allclose(before, after, atol=1e-6) == encoder.is_causal
