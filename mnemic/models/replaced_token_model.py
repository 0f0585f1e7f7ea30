"""ELECTRA's networks: a generator replaces tokens, and a discriminator detects which.

Shapes: b batch, n tokens, m masked positions, d width, v vocabulary.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode import ATTENTIONS, ENCODERS, TransformerEncoder
from mnemic.encode.embeddings import DEFAULT_EMBEDDINGS, EMBEDDINGS, Embeddings, FactorizedEmbeddings
from mnemic.encode.stacks.encoder import DEFAULT_ATTENTION
from mnemic.encode.transformer import DEFAULT_STACK
from mnemic.models.text_model import TextModel, TextOutput, WindowBatch, make_dummy_windows
from mnemic.recipe import ConfigError, build, kind_name, kind_of
from mnemic.recipe.build import parameters_of
from mnemic.respond.vocabulary import VocabularyHead

SharedTables = Literal["none", "tokens", "all"]


class CorruptedBatch(NamedTuple):
    """A masked batch, and the numbers that sample the replacements."""

    windows: WindowBatch  # ``answer_mask`` holds the masked positions in the flattened batch, m
    uniforms: Tensor  # m
    detects: bool = True  # False: the generator alone is run
    scored_positions: Tensor | None = None  # m, that the discriminator scores; None: all real tokens


class ReplacedTokenLogits(NamedTuple):
    """What the generator and the discriminator predict, and the tokens that were sampled."""

    masked_logits: Tensor  # m v, of the generator
    samples: Tensor  # m, ids that the generator drew at the masked positions
    tokens: Tensor  # b n, with the samples in place
    replaced_logits: Any  # of the discriminator: b n, was the token replaced? Or what its response scores
    baseline_logits: Tensor | None  # m: will the discriminator be right? For adversarial training


class TokenGenerator(nn.Module):
    """A small masked language model whose samples replace tokens (Clark et al. 2020, section 3.2).

    Its ``size`` is a share of the discriminator's width, of its heads and of its feed-forward
    width; it has all layers. ``share`` says which tables are the discriminator's: "all" embeddings
    with their norm, those of "tokens", or "none". Embeddings that are wider than the generator have
    a linear map of its own. ``baseline`` adds the head of adversarial training. With
    ``starts_detector`` the discriminator takes the generator's weights when a phase begins: the
    second stage of two-stage training (appendix F there).
    """

    def __init__(
        self,
        width: int,
        vocab: int,
        encode_spec: Mapping[str, Any],
        detector: TransformerEncoder,
        *,
        size: float = 0.25,
        share: SharedTables = "all",
        baseline: bool = False,
        starts_detector: bool = False,
    ) -> None:
        super().__init__()
        if not 0 < size <= 1:
            raise ConfigError(f"generator.size is a share of the network's width, above 0 and up to 1, not {size}")
        if starts_detector and (size != 1 or share != "none"):
            raise ConfigError('generator.starts_detector copies weights: set generator.size=1.0, and share="none"')
        self.starts_detector = starts_detector
        generator_width, spec = scale_encoder(encode_spec, width, size)
        self.encode: Any = build(ENCODERS, spec, width=generator_width, vocab=vocab)
        share_tables(self.encode, detector, share)
        self.vocabulary = VocabularyHead(generator_width, vocab, words=self.encode.embeddings.tokens)
        self.baseline = nn.Linear(generator_width, 1) if baseline else None

    def forward(self, windows: WindowBatch) -> tuple[Tensor, Tensor | None]:
        """Score the vocabulary, and the baseline, at masked positions: m v, m."""
        encode_kwargs: dict[str, Any] = {"segments": windows.segment_ids} if self.encode.segments > 1 else {}
        states = self.encode(windows.tokens, windows.mask, max_tokens=windows.max_tokens, **encode_kwargs)
        positions = windows.answer_mask
        logits = self.vocabulary(states, positions)
        if self.baseline is None:
            return logits, None
        flat = states.flatten(0, 1)
        return logits, self.baseline(flat.index_select(0, positions.clamp(max=len(flat) - 1))).squeeze(-1)


class ReplacedTokenModel(TextModel):
    """An encoder that detects replaced tokens, with the generator that replaces them (ELECTRA).

    Clark et al. 2020 (arXiv:2003.10555). A later run starts from ``encode`` and ``respond`` alone;
    without a ``CorruptedBatch`` the network is a ``TextModel`` of these two. Samples are ids: no
    gradient of the discriminator reaches the generator through them.
    """

    def __init__(self, encode: Any, respond: Any, generator: TokenGenerator) -> None:
        super().__init__(encode, respond)
        self.generator = generator

    def dummy_inputs(self, sizes: Mapping[str, Any]) -> Any:
        """Make two windows of the greatest length, all of whose tokens are replaced."""
        windows = make_dummy_windows(sizes["max_length"])
        positions = torch.arange(windows.tokens.numel())
        masked = windows._replace(answer_mask=positions)
        scored_positions = self.respond.dummy_inputs(windows.tokens).get("answer_mask")
        return CorruptedBatch(masked, torch.zeros(windows.tokens.numel()), scored_positions=scored_positions)

    def forward(self, inputs: Any) -> TextOutput:
        """Replace the masked tokens by samples of the generator, then detect them."""
        if not isinstance(inputs, CorruptedBatch):
            return super().forward(inputs)
        windows = inputs.windows
        masked_logits, baseline_logits = self.generator(windows)
        samples = sample_tokens(masked_logits, inputs.uniforms)
        tokens = replace_tokens(windows.tokens, windows.answer_mask, samples)
        states, replaced_logits = masked_logits, None
        if inputs.detects:
            scored_positions = windows.mask if inputs.scored_positions is None else inputs.scored_positions
            output = super().forward(windows._replace(tokens=tokens, answer_mask=scored_positions))
            states, replaced_logits = output.states, output.logits
        logits = ReplacedTokenLogits(masked_logits, samples, tokens, replaced_logits, baseline_logits)
        return TextOutput(logits, states)

    @torch.no_grad()
    def start_phase(self) -> None:
        """Copy the generator's encoder to the discriminator, if it starts it."""
        if self.generator.starts_detector:
            self.encode.load_state_dict(self.generator.encode.state_dict())


@torch.no_grad()
def sample_tokens(logits: Tensor, uniforms: Tensor) -> Tensor:
    """Draw an id from each softmax (m v) with a uniform number (m): m."""
    cumulative = logits.detach().float().softmax(-1).cumsum(-1)
    # Rounding may leave the last sum a little below or above 1.
    threshold = uniforms.float() * cumulative[:, -1]
    ids = torch.searchsorted(cumulative, threshold.unsqueeze(-1), right=True).squeeze(-1)
    return ids.clamp(max=logits.shape[-1] - 1)


def replace_tokens(tokens: Tensor, positions: Tensor, samples: Tensor) -> Tensor:
    """Put samples (m) at flattened positions (m) that tokens (b n) have."""
    padded = torch.cat([tokens.flatten(), tokens.new_zeros(1)])
    return padded.scatter(0, positions, samples)[:-1].view_as(tokens)


def scale_encoder(spec: Mapping[str, Any], width: int, size: float) -> tuple[int, dict[str, Any]]:
    """Return the width and the spec of an encoder that is narrower by ``size``."""
    if kind_of(ENCODERS, spec) is not TransformerEncoder:
        raise ConfigError(f"model.generator is for model.encode.kind='transformer', not {kind_name(spec)!r}")
    stack = dict(spec.get("stack", DEFAULT_STACK))
    attention = dict(stack.get("attention", DEFAULT_ATTENTION))
    parameters, heads = parameters_of(kind_of(ATTENTIONS, attention)), 1
    if "heads" in parameters:
        heads = max(round(attention.get("heads", parameters["heads"].default) * size), 1)
        attention["heads"] = heads
    if stack.get("inner"):
        stack["inner"] = max(round(stack["inner"] * size), 1)
    narrow_width = max(round(width * size / heads), 1) * heads
    embeddings = spec.get("embeddings", DEFAULT_EMBEDDINGS)
    if kind_of(EMBEDDINGS, embeddings) is Embeddings and narrow_width != width:
        embeddings = {"kind": "factorised", "embedding_width": width, "embeddings": dict(embeddings)}
    return narrow_width, {**spec, "stack": {**stack, "attention": attention}, "embeddings": embeddings}


def share_tables(generator: Any, detector: Any, share: SharedTables) -> None:
    """Let a generator use embeddings of the discriminator, in place."""
    tables = find_tables(detector.embeddings)
    if share == "tokens":
        find_tables(generator.embeddings).tokens = tables.tokens
    elif share == "all" and isinstance(generator.embeddings, FactorizedEmbeddings):
        generator.embeddings.narrow = tables
    elif share == "all":
        generator.embeddings = tables


def find_tables(embeddings: Any) -> Embeddings:
    """Return the tables of embeddings, without the map to the full width."""
    tables: Embeddings = embeddings.narrow if isinstance(embeddings, FactorizedEmbeddings) else embeddings
    return tables
