"""The sizes of an encoder: read from a config.json or an encoder, and converted back."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from torch import nn

from mnemic.encode.attention import FullAttention
from mnemic.encode.embeddings import Embeddings, FactorizedEmbeddings
from mnemic.encode.huggingface.families import ACTIVATIONS, FAMILIES, Family
from mnemic.encode.positions import LearnedPositions, NoPositions
from mnemic.encode.stacks.block import ACTIVATIONS as OURS
from mnemic.encode.stacks.block import FeedForward
from mnemic.encode.stacks.two_stream import TwoStreamStack
from mnemic.encode.transformer import TransformerEncoder
from mnemic.recipe import join_words
from mnemic.recipe.bounds import MAX_NUMBER, MAX_REPEATS


class EncoderShape(NamedTuple):
    """The sizes and settings that define an encoder of these families, without weights."""

    vocab: int
    width: int
    depth: int
    heads: int
    inner: int
    length: int
    segments: int
    activation: str
    epsilon: float
    dropout: float
    attention_dropout: float
    narrow: int = 0  # width of factorized embeddings; 0: not factorized
    groups: int = 0  # different layers; 0: no layers share weights
    is_two_stream: bool = False  # XLNet: relative distances and segments
    clamp: int = 0  # the largest distance of these; 0: none


# Keys of config.json that would change the computation → their supported values.
SUPPORTED_VALUES: Mapping[str, tuple[Any, ...]] = {
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
    "inner_group_num": (1, None),
    "attn_type": ("bi", None),
    "bi_data": (False, None),
}


def shape_from_config(config: Mapping[str, Any], path: object) -> EncoderShape:
    """Read an encoder's sizes from a config.json; ValueError if mnemic cannot read it."""
    kind = config.get("model_type")
    if kind not in FAMILIES:
        raise ValueError(
            f"{path} has model_type {kind!r}; mnemic reads {join_words(FAMILIES)}: choose a model "
            "of one of these families"
        )
    for key, allowed in SUPPORTED_VALUES.items():
        if config.get(key) not in allowed:
            raise ValueError(f"{path} has {key} {config[key]!r}; mnemic reads only {key} {allowed[0]!r}")
    family = FAMILIES[kind]
    sizes: dict[str, Any] = dict(family.defaults)
    for size, key in family.sizes.items():
        if key in config:
            sizes[size] = config[key]
        if size not in sizes:
            raise ValueError(f"{path} has no {key!r}; a {kind} needs it")
        expected = EncoderShape.__annotations__[size]
        if not isinstance(sizes[size], (int, float) if expected is float else expected):
            raise ValueError(f"{path}: {key} is {sizes[size]!r}; expected {expected.__name__}")
        if expected is int and not (size == "clamp" and sizes[size] == -1):
            check_size(sizes[size], size, f"{path}: {key}")
    if sizes["activation"] not in ACTIVATIONS:
        raise ValueError(f"{path} has the activation {sizes['activation']!r}; known are {join_words(ACTIVATIONS)}")
    sizes["activation"] = ACTIVATIONS[sizes["activation"]]
    if sizes.get("clamp") == -1:  # none
        sizes["clamp"] = 0
    sizes["length"] -= count_offset_rows(config, family)
    if sizes["length"] < 1:
        raise ValueError(f"{path}: {family.sizes['length']} is too small for pad_token_id {config['pad_token_id']}")
    if kind == "electra" and sizes["narrow"] == sizes["width"]:
        sizes["narrow"] = 0
    return EncoderShape(**sizes)


def check_size(value: int, size: str, name: str) -> None:
    """Raise a ValueError unless a size of config.json is one that a model can have."""
    low = 0 if size in ("segments", "narrow", "groups", "clamp") else 1
    high = MAX_REPEATS if size in ("depth", "groups") else MAX_NUMBER
    if isinstance(value, bool) or not low <= value <= high:
        raise ValueError(f"{name} is {value!r}; expected a whole number from {low} to {high:,}")


def config_from_shape(shape: EncoderShape, kind: str, pad_id: int) -> dict[str, Any]:
    """Build the config.json of an encoder for the family ``kind``.

    It is the inverse of ``shape_from_config``.
    """
    family = FAMILIES[kind]
    activation = next(name for name, size in ACTIVATIONS.items() if size == shape.activation)
    sizes = shape._asdict() | {
        "activation": activation,
        "segments": shape.segments or 1,
        "narrow": shape.narrow or shape.width,
        "groups": shape.groups or shape.depth,
        "clamp": shape.clamp or -1,
    }
    config: dict[str, Any] = {"model_type": kind, "pad_token_id": pad_id}
    config |= {key: sizes[size] for size, key in family.sizes.items()}
    if family.has_positions:
        config["max_position_embeddings"] += count_offset_rows(config, family)
    return config


def count_offset_rows(config: Mapping[str, Any], family: Family) -> int:
    """Return how many rows of the position table come before the first position."""
    pad = config.get("pad_token_id")
    if pad is not None and (not isinstance(pad, int) or not 0 <= pad <= MAX_NUMBER):
        raise ValueError(f"pad_token_id of config.json is {pad!r}; expected a whole number from 0 on")
    return (family.pad_id if pad is None else pad) + 1 if family.has_position_offset else 0


def build_encoder(shape: EncoderShape) -> TransformerEncoder:
    """Build an encoder of this shape with random weights."""
    return TransformerEncoder(shape.width, shape.vocab, **encoder_options(shape))


def encoder_options(shape: EncoderShape) -> dict[str, Any]:
    """Return the encoder's ``embeddings`` and ``stack`` as in a recipe."""
    if shape.is_two_stream:
        return two_stream_options(shape)
    embeddings: dict[str, Any] = {
        "kind": "sum",
        "segments": shape.segments,
        "positions": {"kind": "learned", "length": shape.length},
        "epsilon": float(shape.epsilon),
        "dropout": float(shape.dropout),
    }
    if shape.narrow:
        embeddings = {"kind": "factorised", "embedding_width": shape.narrow, "embeddings": embeddings}
    attention = {"kind": "full", "heads": shape.heads, "dropout": float(shape.attention_dropout)}
    stack = {
        "kind": "encoder",
        "norm": "post",
        "depth": shape.depth,
        "groups": shape.groups,
        "inner": shape.inner,
        "epsilon": float(shape.epsilon),
        "activation": shape.activation,
        "dropout": float(shape.dropout),
        "attention": attention,
    }
    return {"embeddings": embeddings, "stack": stack}


def two_stream_options(shape: EncoderShape) -> dict[str, Any]:
    """Return ``embeddings`` and ``stack`` of an XLNet as in a recipe."""
    embeddings = {"kind": "sum", "norm": False, "positions": {"kind": "none"}, "dropout": float(shape.dropout)}
    stack = {
        "kind": "two-stream",
        "norm": "post",
        "depth": shape.depth,
        "inner": shape.inner,
        "epsilon": float(shape.epsilon),
        "activation": shape.activation,
        "dropout": float(shape.dropout),
        "heads": shape.heads,
        "attention_dropout": float(shape.attention_dropout),
        "clamp": shape.clamp,
    }
    return {"embeddings": embeddings, "stack": stack}


def shape_of_two_stream(encoder: TransformerEncoder) -> EncoderShape:
    """Return the sizes of an XLNet; ValueError if its embeddings or norms are others."""
    embeddings: Any = encoder.embeddings
    stack: Any = encoder.stack
    block = stack.blocks[0]
    is_plain = isinstance(embeddings, Embeddings) and not isinstance(embeddings.norm, nn.LayerNorm)
    is_plain = is_plain and embeddings.segments is None and embeddings.tasks is None
    if not is_plain or not isinstance(embeddings.positions, NoPositions):
        raise ValueError("Hugging Face has no model like this encoder: its embeddings are more than vectors of tokens")
    if embeddings.scale != 1.0 or block.around_attention.is_pre_norm:
        raise ValueError("Hugging Face has no XLNet with scaled embeddings, or norms before its layers")
    return EncoderShape(
        vocab=embeddings.tokens.shape[0],
        width=encoder.width,
        depth=len(stack.blocks),
        heads=block.attention.heads,
        inner=block.feed.widen.weight.shape[0],
        length=FAMILIES["xlnet"].defaults["length"],
        segments=stack.num_segments,
        activation=next(n for n, function in OURS.items() if function is block.feed.activation),
        epsilon=block.around_attention.norm.eps,
        dropout=block.around_attention.dropout.p,
        attention_dropout=block.attention.dropout,
        is_two_stream=True,
        clamp=block.attention.clamp,
    )


def shape_of_encoder(encoder: TransformerEncoder) -> EncoderShape:
    """Return the sizes of an encoder; ValueError if no family has such a model."""
    if isinstance(encoder.stack, TwoStreamStack):
        return shape_of_two_stream(encoder)
    embeddings: Any = encoder.embeddings
    inner_embeddings: Any = embeddings.narrow if isinstance(embeddings, FactorizedEmbeddings) else embeddings
    blocks: list[Any] = list(encoder.stack.blocks)
    block = blocks[0]
    num_unique = len(set(blocks))
    if problems := list(find_incompatibilities(inner_embeddings, block)):
        raise ValueError(f"Hugging Face has no model like this encoder: {join_words(problems)}")
    return EncoderShape(
        vocab=inner_embeddings.tokens.shape[0],
        width=encoder.width,
        depth=len(blocks),
        heads=block.attention.project.heads,
        inner=block.feed.widen.weight.shape[0],
        length=inner_embeddings.positions.max_length,
        segments=encoder.segments or int(encoder.num_tasks > 0),  # the first task is added to them
        activation=next(n for n, function in OURS.items() if function is block.feed.activation),
        epsilon=inner_embeddings.norm.eps,
        dropout=block.around_attention.dropout.p,
        attention_dropout=block.attention.dropout,
        narrow=inner_embeddings.width if inner_embeddings is not embeddings else 0,
        groups=num_unique if num_unique < len(blocks) else 0,
    )


def find_incompatibilities(embeddings: Any, block: Any) -> Iterator[str]:
    """Yield the features of an encoder that no Hugging Face family has."""
    if embeddings.scale != 1.0 or not isinstance(embeddings.norm, nn.LayerNorm):
        yield "its embeddings are scaled or have no norm"
    elif embeddings.norm.eps != block.around_attention.norm.eps:
        yield "its norms have different epsilons"
    if not isinstance(block.around_attention.norm, nn.LayerNorm):
        yield "its layers have norms of another kind than theirs (norm_kind = 'layer')"
    if not isinstance(embeddings.positions, LearnedPositions):
        yield "its positions are not learned"
    if block.around_attention.is_pre_norm:
        yield (
            "its norms come before the layers (norm = 'pre'), theirs after them: one to export "
            "is trained with model.encode.stack.norm=post"
        )
    if not isinstance(block.attention, FullAttention):
        yield "its attention is not full"
    if not isinstance(block.feed, FeedForward) or block.feed.widen.bias is None:
        yield "its feed-forward networks are gated or have no bias (feed.kind = 'plain')"


def number_unique_blocks(encoder: TransformerEncoder) -> dict[str, str]:
    """Number the blocks with weights of their own: index in the stack → number."""
    blocks = list(encoder.stack.blocks)
    return {str(blocks.index(block)): str(number) for number, block in enumerate(dict.fromkeys(blocks))}


def iterate_unique_weights(encoder: TransformerEncoder) -> Iterator[tuple[str, nn.Parameter]]:
    """Yield the weights by name; layers that are the same come once.

    A sub-layer that different layers share comes with each of them.
    """
    numbers = number_unique_blocks(encoder)
    for name, weight in encoder.named_parameters(remove_duplicate=False):
        prefix, _, rest = name.partition("stack.blocks.")
        if prefix or rest.partition(".")[0] in numbers:
            yield name, weight
