"""The contract of all encoders that give one state per token.

Each kind of each table is in at least one case; a new kind is included automatically.
``WHOLE_TEXT`` kinds give one state per text and have their own tests.
"""

import inspect
import io
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from mnemic.encode import ATTENTIONS, DECODERS, EMBEDDINGS, ENCODERS, POSITIONS, RECURRENTS, STACKS
from mnemic.recipe import build, select_kinds

D, VOCAB, N = 16, 30, 6
WHOLE_TEXT = {"bag", "context-bag", "exact-match", "masked-bag", "ngrams", "recurrent-sentence"}
FOR_DECODERS = {"translation"}  # its word vectors are a decoder's; test_seq2seq_parts.py is about it


def unfused_spec(table: Mapping[str, Callable[..., Any]], kind: str) -> dict[str, Any]:
    """Return the spec of a kind without fused kernels, which vmap does not support."""
    parameters = inspect.signature(table[kind]).parameters
    options = {"fused": False, "attention": {"kind": "full", "fused": False}}
    return {"kind": kind, **{name: value for name, value in options.items() if name in parameters}}


def make_cases() -> dict[str, dict[str, Any]]:
    full = unfused_spec(ATTENTIONS, "full")
    stack = {"kind": "encoder", "attention": full}
    specs: dict[str, dict[str, Any]] = {}
    for kind in STACKS:
        specs[f"transformer stack {kind}"] = {"stack": unfused_spec(STACKS, kind)}
    specs["transformer shared layers"] = {"stack": {**stack, "depth": 4, "groups": 2}}
    for kind in ATTENTIONS:
        part_spec = {"kind": "encoder", "norm": "pre", "attention": unfused_spec(ATTENTIONS, kind)}
        specs[f"transformer attention {kind}"] = {"stack": part_spec}
    for kind in EMBEDDINGS:
        words = {"kind": kind, "segments": 2}
        if kind == "factorised":
            words = {"kind": kind, "embedding_width": 6, "embeddings": {"kind": "sum", "segments": 2}}
        specs[f"transformer embeddings {kind}"] = {"embeddings": words, "stack": stack}
    for kind in POSITIONS:
        words = {"kind": "sum", "positions": {"kind": kind}, "scale": kind == "sinusoidal"}
        specs[f"transformer positions {kind}"] = {"embeddings": words, "stack": stack}
    for kind in DECODERS:
        specs[f"causal stack {kind}"] = {"stack": unfused_spec(DECODERS, kind)}
    for kind in select_kinds(ATTENTIONS, supports_causal=True):
        part_spec = {"kind": "transformer", "norm": "pre", "attention": unfused_spec(ATTENTIONS, kind)}
        specs[f"causal attention {kind}"] = {"stack": part_spec}
    for kind in RECURRENTS:
        for directions in ("forward", "halves", "sum"):
            part_spec = {**unfused_spec(RECURRENTS, kind), "directions": directions}
            specs[f"recurrent {kind} {directions}"] = {"recurrent": part_spec}
    specs["encoder-decoder"] = {"stack": stack, "decoder": {"kind": "transformer", "attention": full}, "tied": False}
    specs["word-ngrams"] = {"buckets": 40}
    specs["word-vectors"] = {}
    specs["brnn"] = {}
    specs["elmo mix"] = {"recurrent": unfused_spec(RECURRENTS, "lstm"), "mix": True}
    specs["elmo"] = {"recurrent": unfused_spec(RECURRENTS, "lstm")}
    return {name: {"kind": name.split()[0], **spec} for name, spec in specs.items()}


def with_kernels(spec: Any) -> Any:
    """Return the same spec with its fused kernels."""
    if not isinstance(spec, Mapping):
        return spec
    return {key: with_kernels(value) for key, value in spec.items() if key != "fused"}


CASES = make_cases()
NO_VMAP: tuple[str, ...] = (
    "attention lsh",
    "stack reversible",
)  # ends of the names of cases whose kind vmap cannot batch
ALL_CASES = pytest.mark.parametrize("case", CASES)
VMAP_CASES = pytest.mark.parametrize("case", [case for case in CASES if not case.endswith(NO_VMAP)])
# By the end of a case's name: weights without a gradient in one segment of text.
IGNORED_WEIGHTS = {
    "elmo": ("mix.scores", "mix.scale"),
    "external": ("around_attention.norm.bias",),
    "two-stream": ("query_start", "segments.bias", "segments.vectors"),
}


def fused_and_plain(cases: Iterable[str]) -> pytest.MarkDecorator:
    """Run a test of each case with its fused kernels, if it has any, and without."""
    pairs = [(case, fused) for case in cases for fused in (True, False)]
    pairs = [(case, fused) for case, fused in pairs if not fused or with_kernels(CASES[case]) != CASES[case]]
    return pytest.mark.parametrize(
        ("case", "fused"), pairs, ids=[f"{'fused' if fused else 'plain'}-{case}" for case, fused in pairs]
    )


FUSED_AND_UNFUSED = fused_and_plain(CASES)


def make_encoder(case: str, fused: bool = True, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    spec = with_kernels(CASES[case]) if fused else CASES[case]
    return build(ENCODERS, spec, width=D, vocab=VOCAB).eval()


def random_tokens(*shape: int, seed: int = 1) -> Tensor:
    return torch.randint(VOCAB, shape, generator=torch.Generator().manual_seed(seed))


def full_mask(tokens: Tensor) -> Tensor:
    return torch.ones_like(tokens, dtype=torch.bool)


def ragged_mask(tokens: Tensor) -> Tensor:
    """Mask rows of full length, half length and one token, in turn."""
    lengths = torch.tensor([N, N // 2, 1]).repeat(tokens.shape[0])[: tokens.shape[0]]
    return torch.arange(tokens.shape[1]) < lengths[:, None]


def test_every_encoder_has_a_case() -> None:
    assert {spec["kind"] for spec in CASES.values()} == ENCODERS.keys() - WHOLE_TEXT - FOR_DECODERS


@FUSED_AND_UNFUSED
def test_one_state_a_token_and_zeros_at_padding(case: str, fused: bool) -> None:
    encoder, tokens = make_encoder(case, fused), random_tokens(3, N)
    mask = ragged_mask(tokens)
    states = encoder(tokens, mask)
    assert states.shape == (3, N, encoder.width)
    assert (states[~mask] == 0).all()
    assert (states[mask] != 0).any(-1).all()


@FUSED_AND_UNFUSED
def test_padding_changes_nothing(case: str, fused: bool) -> None:
    """The same words give the same states, whatever padding follows them."""
    encoder, tokens = make_encoder(case, fused), random_tokens(2, N)
    padded = torch.cat([tokens, random_tokens(2, 3, seed=2)], 1)
    mask = torch.arange(N + 3).expand(2, -1) < N
    torch.testing.assert_close(encoder(padded, mask)[:, :N], encoder(tokens, full_mask(tokens)))


@FUSED_AND_UNFUSED
def test_the_batch_changes_nothing(case: str, fused: bool) -> None:
    encoder, tokens = make_encoder(case, fused), random_tokens(4, N)
    mask = ragged_mask(tokens)
    together = encoder(tokens, mask)
    for row in range(4):
        alone = encoder(tokens[row : row + 1], mask[row : row + 1])
        torch.testing.assert_close(together[row : row + 1], alone)


@FUSED_AND_UNFUSED
def test_other_words_give_other_states(case: str, fused: bool) -> None:
    encoder, tokens = make_encoder(case, fused), random_tokens(1, N)
    states = encoder(tokens, full_mask(tokens))
    changed = (tokens + 1) % VOCAB
    assert (encoder(changed, full_mask(tokens)) != states).any(-1).all()


@FUSED_AND_UNFUSED
def test_one_token_is_enough(case: str, fused: bool) -> None:
    encoder, tokens = make_encoder(case, fused), random_tokens(2, 1)
    states = encoder(tokens, full_mask(tokens))
    assert states.shape == (2, 1, D)
    assert states.isfinite().all()


@fused_and_plain(case for case in CASES if not case.startswith(("elmo", "recurrent")))
def test_no_token_gives_no_state(case: str, fused: bool) -> None:
    """As for a document without a question."""
    encoder, tokens = make_encoder(case, fused), random_tokens(2, 0)
    states = encoder(tokens, full_mask(tokens))
    assert states.shape == (2, 0, D)
    states.sum().backward()


@FUSED_AND_UNFUSED
def test_a_row_of_padding_gives_zeros_and_finite_gradients(case: str, fused: bool) -> None:
    encoder, tokens = make_encoder(case, fused), random_tokens(2, N)
    mask = full_mask(tokens)
    mask[1] = False
    states = encoder(tokens, mask)
    assert (states[1] == 0).all()
    (states * torch.arange(D)).sum().backward()
    assert all(weight.grad.isfinite().all() for weight in encoder.parameters())


@FUSED_AND_UNFUSED
def test_every_weight_learns(case: str, fused: bool) -> None:
    """Except the bias of keys: softmax ignores a constant added to all scores.

    That of external attention is over tokens, and ignores what the norm before it adds to all. Two
    streams: this is the content of one segment.
    """
    encoder, tokens = make_encoder(case, fused), random_tokens(3, N)
    direction = torch.randn(3, N, D, generator=torch.Generator().manual_seed(3))
    (encoder(tokens, ragged_mask(tokens)) * direction).sum().backward()
    weights = dict(encoder.named_parameters())
    assert not [name for name, weight in weights.items() if weight.grad is None]
    without_gradient = [name for name, weight in weights.items() if weight.grad.abs().max() < 1e-6]
    ignored = ("key.bias", *IGNORED_WEIGHTS.get(case.split()[-1], ()))
    assert not [name for name in without_gradient if not name.endswith(ignored)]


@ALL_CASES
def test_saved_weights_give_the_same_numbers(case: str) -> None:
    first, second, tokens = make_encoder(case, seed=0), make_encoder(case, seed=1), random_tokens(3, N)
    mask = ragged_mask(tokens)
    expected = first(tokens, mask)
    assert not torch.equal(second(tokens, mask), expected)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second.load_state_dict(torch.load(file, weights_only=True), strict=True)
    assert torch.equal(second(tokens, mask), expected)


@pytest.mark.parametrize("case", [case for case in CASES if with_kernels(CASES[case]) != CASES[case]])
def test_fused_and_plain_are_the_same_encoder(case: str) -> None:
    fused, unfused, tokens = make_encoder(case), make_encoder(case, fused=False), random_tokens(3, N)
    unfused.load_state_dict(fused.state_dict())
    mask = ragged_mask(tokens)
    torch.testing.assert_close(fused(tokens, mask), unfused(tokens, mask))


@FUSED_AND_UNFUSED
def test_a_seed_settles_everything(case: str, fused: bool) -> None:
    first, second, tokens = make_encoder(case, fused), make_encoder(case, fused), random_tokens(3, N)
    mask = ragged_mask(tokens)
    assert torch.equal(first(tokens, mask), second(tokens, mask))
    assert torch.equal(first(tokens, mask), first(tokens, mask))


@FUSED_AND_UNFUSED
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions(case: str, fused: bool, dtype: torch.dtype) -> None:
    encoder, tokens = make_encoder(case, fused), random_tokens(3, N)
    mask = ragged_mask(tokens)
    expected = encoder(tokens, mask)
    actual = encoder.to(dtype)(tokens, mask)
    assert actual.dtype == dtype
    tolerance = {"atol": 0.1, "rtol": 0.1} if dtype == torch.bfloat16 else {"atol": 1e-5, "rtol": 1e-5}
    torch.testing.assert_close(actual.float(), expected, **tolerance)
    actual.float().square().sum().backward()


@VMAP_CASES
@pytest.mark.parametrize("shared", [True, False], ids=["one batch", "own batches"])
def test_vmap_over_stacked_weights_equals_single_encoders(case: str, shared: bool) -> None:
    """Under vmap over stacked weights, states and gradients equal those of single encoders."""
    encoders = [make_encoder(case, fused=False, seed=seed) for seed in range(2)]
    weights, _ = stack_module_state(encoders)
    tokens = random_tokens(3, N).expand(2, 3, N) if shared else random_tokens(2, 3, N)
    mask = ragged_mask(tokens[0]).expand(2, 3, N)
    meta_encoder = make_encoder(case, fused=False).to("meta")  # so that none of its weights can be used

    def run(run_weights: dict[str, Tensor], tokens: Tensor, mask: Tensor) -> Tensor:
        return functional_call(meta_encoder, run_weights, (tokens, mask))

    if shared:
        together = vmap(run, in_dims=(0, None, None))(weights, tokens[0], mask[0])
    else:
        together = vmap(run)(weights, tokens, mask)
    alone = [encoder(tokens[index], mask[index]) for index, encoder in enumerate(encoders)]
    torch.testing.assert_close(together, torch.stack(alone))
    direction = torch.randn(together.shape, generator=torch.Generator().manual_seed(3))
    (together * direction).sum().backward()
    (torch.stack(alone) * direction).sum().backward()
    for name, stacked in weights.items():
        expected = torch.stack([dict(encoder.named_parameters())[name].grad for encoder in encoders])
        torch.testing.assert_close(stacked.grad, expected, msg=name)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@FUSED_AND_UNFUSED
def test_a_gpu_gives_the_same_numbers(case: str, fused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """States and gradients, with a row of padding and without TF32."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    tokens = random_tokens(4, N)
    mask = ragged_mask(tokens)
    mask[3] = False
    results = []
    for device in ("cpu", "cuda"):
        encoder = make_encoder(case, fused).to(device).train()
        states = encoder(tokens.to(device), mask.to(device))
        (states * torch.arange(D, device=device)).sum().backward()
        results.append([states, *(weight.grad for weight in encoder.parameters())])
    for cpu_result, gpu_result in zip(*results, strict=True):
        torch.testing.assert_close(gpu_result.cpu(), cpu_result, atol=1e-3, rtol=1e-3)


DROPOUT_SPECS = [
    {"kind": "transformer", "embeddings": {"kind": "sum", "dropout": 0.5}},
    {"kind": "transformer", "stack": {"kind": "encoder", "dropout": 0.5}},
    {"kind": "causal", "stack": {"kind": "transformer", "dropout": 0.5}},
    {"kind": "recurrent", "recurrent": {"kind": "lstm", "depth": 2, "dropout": 0.5}},
]


@pytest.mark.parametrize("spec", DROPOUT_SPECS)
def test_dropout_acts_only_in_training(spec: dict[str, Any]) -> None:
    encoder, tokens = build(ENCODERS, spec, width=D, vocab=VOCAB), random_tokens(3, N)
    mask = ragged_mask(tokens)
    assert not torch.equal(encoder(tokens, mask), encoder(tokens, mask))
    encoder.eval()
    assert torch.equal(encoder(tokens, mask), encoder(tokens, mask))


def test_dropout_under_vmap_differs_between_runs() -> None:
    """In training each run under vmap has its own random dropout."""
    spec = {
        "kind": "transformer",
        "embeddings": {"kind": "sum", "dropout": 0.5},
        "stack": {"kind": "encoder", "dropout": 0.5, "attention": {"kind": "full", "fused": False, "dropout": 0.5}},
    }
    encoder, tokens = build(ENCODERS, spec, width=D, vocab=VOCAB), random_tokens(2, N)
    weights, _ = stack_module_state([encoder, encoder])

    def run(run_weights: dict[str, Tensor]) -> Tensor:
        return functional_call(encoder, run_weights, (tokens, full_mask(tokens)))

    first, second = vmap(run, randomness="different")(weights)
    assert first.isfinite().all()
    assert not torch.equal(first, second)


@ALL_CASES
def test_an_encoder_says_whether_states_depend_on_later_tokens(case: str) -> None:
    if case in ("word-ngrams", "word-vectors"):
        pytest.skip("states depend on how many tokens follow; or it reads texts for a memory, without order")
    encoder, tokens = make_encoder(case), random_tokens(2, N)
    changed = tokens.clone()
    changed[:, -1] = (changed[:, -1] + 1) % VOCAB
    before, after = (encoder(ids, full_mask(ids))[:, : N - 1] for ids in (tokens, changed))
    assert torch.allclose(before, after, atol=1e-6) == encoder.is_causal
