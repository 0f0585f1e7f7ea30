"""Layer distillation: a student learns the layers of a trained teacher.

Shapes: b windows, n tokens, d width, h heads.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.data.batches import locate_tokens
from mnemic.encode.gru_cell import init_glorot
from mnemic.encode.packed import PackedMask
from mnemic.objectives.contract import CarriedState, Loss, sum_weighted
from mnemic.objectives.pretraining.masked import check_weights
from mnemic.recipe import ConfigError


class LayersLoss(nn.Module):
    """Squared errors between the layers of a student and of its teacher (TinyBERT).

    Jiao et al. 2020 (arXiv:1909.10351), equations 7 to 9. With k = depth of the teacher / depth of
    the student, layer i of the student (from 0) learns the ``attention`` scores of the teacher's
    layer i·k + k - 1, before the softmax; its output learns the ``hidden`` states after the
    teacher's layer i·k + k - 1, and its ``embeddings`` those of the teacher. Each is a sum of mean
    squared errors over the layers, times its weight; 0 leaves it out. One matrix, which is learned
    along and belongs to no network, projects all states to the teacher's width. It starts as the
    identity where the widths are equal.

    Labels are not used. Where we differ from the authors' code: only real tokens count, not
    padding; each token counts alike, with the mean over the tokens it sees and over heads; the
    matrix has no bias, as in the paper. Without ``attention`` a packed row stays packed, which is
    faster. Of a batch with windows of retrieval only those are read that answers are read in,
    unless ``retrieval`` is set: then an embedder's states of questions and texts are learned, too.
    """

    needs_teacher = True
    needs_trained_teacher = True
    fits_layout = "windows"  # of the data, whatever its targets
    single_process = True  # it does not call the network, which is where processes would meet

    def __init__(
        self,
        *,
        attention: float = 1.0,
        hidden: float = 1.0,
        embeddings: float = 1.0,
        retrieval: bool = False,
        teachers: Sequence[nn.Module] = (),
        network: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.weights = {"attention": attention, "hidden": hidden, "embeddings": embeddings}
        check_weights(self.weights)
        self.retrieval = retrieval
        if network is not None:
            self.teachers: tuple[Any, ...] = tuple(teachers)  # in a tuple they are no part of this module
            check_layers(network, self.teachers, compares_attention=attention > 0)
            self.projection = make_projection(network, self.teachers[0])

    def forward(self, network: Any, batch: Any, carried: CarriedState | None = None) -> Loss:
        read = read_tokens if self.weights["attention"] else read_packed_tokens
        tokens = read(batch, retrieval=self.retrieval)
        encode, teacher = network.encode, self.teachers[0].encode
        with torch.no_grad():
            teacher_states = compute_layers(teacher, tokens)
        states, num_tokens = compute_layers(encode, tokens), tokens.mask.sum()
        ratio = len(teacher.stack.blocks) // len(encode.stack.blocks)

        errors: dict[str, list[Tensor]] = {name: [] for name, weight in self.weights.items() if weight}
        for number, (x, teacher_x) in enumerate(zip(states, teacher_states[::ratio], strict=True)):
            name = "hidden" if number else "embeddings"
            if name in errors:
                errors[name].append(state_error(self.projection(x), teacher_x, tokens.mask))
        for number, block in enumerate(encode.stack.blocks if "attention" in errors else ()):
            teacher_number = number * ratio + ratio - 1
            with torch.no_grad():
                teacher_block = teacher.stack.blocks[teacher_number]
                teacher_scores = teacher_block.attention_scores(teacher_states[teacher_number], tokens.visible)
            scores = block.attention_scores(states[number], tokens.visible)
            errors["attention"].append(score_error(scores, teacher_scores, tokens.mask))
        losses = {name: Loss(torch.stack(parts).sum(), num_tokens) for name, parts in errors.items()}
        return sum_weighted(losses, self.weights)._replace(carried=carried)


class WindowTokens(NamedTuple):
    """The tokens of windows, with padding, or of a packed row."""

    tokens: Tensor  # b n; packed: 1 t
    mask: Tensor  # b n, True at real tokens
    segment_ids: Tensor  # b n
    packed: PackedMask | None = None
    positions: Tensor | None = None  # of a packed row

    @property
    def visible(self) -> Tensor:
        """Which tokens each token may attend to, b 1 1 n."""
        return self.mask[:, None, None]


def select_inputs(batch: Any, retrieval: bool) -> Any:
    """Return all windows of a batch of texts, or those for reading."""
    return batch.inputs if retrieval else getattr(batch, "reading_inputs", batch.inputs)


def read_packed_tokens(batch: Any, *, retrieval: bool = False) -> WindowTokens:
    """Return the tokens of a batch; packed windows stay packed."""
    inputs = select_inputs(batch, retrieval) if hasattr(batch, "inputs") else None
    if inputs is None or not isinstance(inputs.mask, PackedMask):
        return read_tokens(batch, retrieval=retrieval)
    is_real = torch.ones_like(inputs.tokens, dtype=torch.bool)
    return WindowTokens(inputs.tokens, is_real, inputs.segment_ids, inputs.mask, inputs.positions)


def read_tokens(batch: Any, *, retrieval: bool = False) -> WindowTokens:
    """Return the tokens of a batch of texts or sequences; packed windows are padded."""
    if not hasattr(batch, "inputs"):  # sequences of a corpus, without masked words
        return WindowTokens(batch.tokens, batch.mask, batch.segments)
    inputs = select_inputs(batch, retrieval)
    if not isinstance(inputs.mask, PackedMask):
        return WindowTokens(inputs.tokens, inputs.mask, inputs.segment_ids)
    starts = inputs.mask.cu_seqlens.long()
    positions, mask = locate_tokens(starts[:-1], starts.diff(), inputs.mask.max_seqlen)  # b n
    tokens, segment_ids = (ids[0][positions].masked_fill(~mask, 0) for ids in (inputs.tokens, inputs.segment_ids))
    return WindowTokens(tokens, mask, segment_ids)


def compute_layers(encode: Any, tokens: WindowTokens) -> list[Tensor]:
    """Compute the embeddings and the states after each layer, depth + 1 times b n d."""
    segments = tokens.segment_ids if encode.segments > 1 else None
    if tokens.packed is None:
        return list(encode.iterate_layers(tokens.tokens, tokens.mask, segments=segments))
    return list(encode.iterate_layers(tokens.tokens, tokens.packed, segments=segments, positions=tokens.positions))


def state_error(states: Tensor, teacher_states: Tensor, mask: Tensor) -> Tensor:
    """Sum the mean squared error of each real token's states.

    ``states`` and ``teacher_states`` b n d, ``mask`` b n → one number.
    """
    errors = (states.float() - teacher_states.float()).square().mean(-1)  # b n
    return errors.masked_fill(~mask, 0).sum()


def score_error(scores: Tensor, teacher_scores: Tensor, mask: Tensor) -> Tensor:
    """Sum the mean squared error of each real token's attention scores.

    ``scores`` and ``teacher_scores`` b h n n, ``mask`` b n → one number. The mean is over heads and
    over the tokens that it sees; the others have a score of -inf.
    """
    is_compared = scores.isfinite() & teacher_scores.isfinite() & mask[:, None, :, None]
    # Hidden before the square: the gradient of inf - inf would be NaN.
    errors = (scores.float() - teacher_scores.float()).masked_fill(~is_compared, 0).square()
    return (errors.sum((1, 3)) / is_compared.sum((1, 3)).clamp(min=1)).sum()


def make_projection(network: Any, teacher: Any) -> nn.Linear:
    """Make the matrix from a student's states to a teacher's: the identity, if that fits."""
    projection = nn.Linear(network.encode.width, teacher.encode.width, bias=False)
    if network.encode.width == teacher.encode.width:
        nn.init.eye_(projection.weight)
        return projection
    return init_glorot(projection)


def check_layers(network: Any, teachers: Sequence[Any], *, compares_attention: bool) -> None:
    """Raise an error unless the layers of a student can be compared with its teacher's."""
    if len(teachers) != 1:
        raise ConfigError(f"layers compares with the layers of one teacher, and teacher.folder names {len(teachers)}")
    encode, teacher = network.encode, teachers[0].encode
    for name, encoder in (("student", encode), ("teacher", teacher)):
        if not getattr(encoder, "has_layers", False):
            raise ConfigError(f"layers compares Transformers: model.encode.kind of the {name} is not 'transformer'")
    blocks, teacher_blocks = encode.stack.blocks, teacher.stack.blocks
    if not blocks or len(teacher_blocks) % len(blocks):
        raise ConfigError(
            f"the teacher's {len(teacher_blocks)} layers are no multiple of the student's {len(blocks)}: set "
            "model.encode.stack.depth to a number that divides them"
        )
    if not compares_attention:
        return
    attentions, teacher_attentions = ([block.attention for block in stack] for stack in (blocks, teacher_blocks))
    if not all(getattr(attention, "supports_scores", False) for attention in (*attentions, *teacher_attentions)):
        raise ConfigError("layers compares attention scores, which this kind of attention has not: set "
                          "objective.attention=0")  # fmt: skip
    heads, teacher_heads = attentions[0].heads, teacher_attentions[0].heads
    if heads != teacher_heads:
        raise ConfigError(
            f"the student has {heads} attention heads, its teacher {teacher_heads}: set "
            f"model.encode.stack.attention.heads={teacher_heads}, or objective.attention=0"
        )
