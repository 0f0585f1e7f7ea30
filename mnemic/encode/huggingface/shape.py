"""The sizes of an encoder: from a config.json, to an encoder, and both ways back."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from torch import nn

from mnemic.encode.attention import FullAttention
from mnemic.encode.block import ACTIVATIONS as OURS
from mnemic.encode.embeddings import FactorisedEmbeddings
from mnemic.encode.huggingface.families import ACTIVATIONS, FAMILIES, Family
from mnemic.encode.positions import LearnedPositions
from mnemic.encode.transformer import TransformerEncoder
from mnemic.recipe import listed


class Shape(NamedTuple):
    """All that tells one encoder of these families from another, but for its weights."""

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
    narrow: int = 0  # the width of factorised embeddings; 0: not factorised
    groups: int = 0  # layers of their own; 0: none share


# Keys of config.json that would change what is computed → the only values that can be read.
PLAIN: Mapping[str, tuple[Any, ...]] = {
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
    "inner_group_num": (1, None),
}


def family_of(config: Mapping[str, Any], path: object) -> Family:
    kind = config.get("model_type")
    if kind not in FAMILIES:
        raise ValueError(
            f"{path} has model_type {kind!r}; mnemic reads {listed(FAMILIES)}: choose a model of "
            "one of these families"
        )
    for key, allowed in PLAIN.items():
        if config.get(key) not in allowed:
            raise ValueError(
                f"{path} has {key} {config[key]!r}; mnemic reads only {key} {allowed[0]!r}"
            )
    return FAMILIES[kind]


def shape_of_config(config: Mapping[str, Any], path: object) -> Shape:
    """Read the sizes off a config.json."""
    family = family_of(config, path)
    found: dict[str, Any] = dict(family.defaults)
    for ours, theirs in family.sizes.items():
        if theirs in config:
            found[ours] = config[theirs]
        if ours not in found:
            raise ValueError(f"{path} has no {theirs!r}; a {config['model_type']} needs it")
        wanted = Shape.__annotations__[ours]
        if not isinstance(found[ours], (int, float) if wanted is float else wanted):
            raise ValueError(f"{path}: {theirs} is {found[ours]!r}; expected {wanted.__name__}")
    if found["activation"] not in ACTIVATIONS:
        raise ValueError(
            f"{path} has the activation {found['activation']!r}; known are {listed(ACTIVATIONS)}"
        )
    found["activation"] = ACTIVATIONS[found["activation"]]
    found["length"] -= rows_before(config, family)
    if config["model_type"] == "electra" and found["narrow"] == found["width"]:
        found["narrow"] = 0
    return Shape(**found)


def config_of_shape(shape: Shape, kind: str, pad: int) -> dict[str, Any]:
    """What ``shape_of_config`` reads, for a model of the family ``kind``."""
    family = FAMILIES[kind]
    theirs = next(name for name, ours in ACTIVATIONS.items() if ours == shape.activation)
    sizes = shape._asdict() | {
        "activation": theirs,
        "segments": shape.segments or 1,
        "narrow": shape.narrow or shape.width,
        "groups": shape.groups or shape.depth,
    }
    config: dict[str, Any] = {"model_type": kind, "pad_token_id": pad}
    config |= {key: sizes[ours] for ours, key in family.sizes.items()}
    config["max_position_embeddings"] += rows_before(config, family)
    return config


def rows_before(config: Mapping[str, Any], family: Family) -> int:
    """How many rows of the position table stand before the first position."""
    pad = config.get("pad_token_id")
    return (family.pad if pad is None else pad) + 1 if family.offset else 0


def encoder_of(shape: Shape) -> TransformerEncoder:
    """An encoder of this shape, with weights drawn by chance."""
    return TransformerEncoder(shape.width, shape.vocab, **parts_of(shape))


def parts_of(shape: Shape) -> dict[str, Any]:
    """The embeddings and the stack of such an encoder, as a recipe has them."""
    embeddings: dict[str, Any] = {
        "kind": "sum",
        "segments": shape.segments,
        "positions": {"kind": "learned", "length": shape.length},
        "epsilon": float(shape.epsilon),
        "dropout": float(shape.dropout),
    }
    if shape.narrow:
        embeddings = {"kind": "factorised", "narrow": shape.narrow, "embeddings": embeddings}
    attention = {
        "kind": "full",
        "heads": shape.heads,
        "dropout": float(shape.attention_dropout),
    }
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


def shape_of(encoder: TransformerEncoder) -> Shape:
    """The sizes of an encoder; ValueError where no family here is built like it."""
    whole: Any = encoder.embeddings
    own: Any = whole.narrow if isinstance(whole, FactorisedEmbeddings) else whole
    blocks: list[Any] = list(encoder.stack.blocks)
    block = blocks[0]
    different = len({id(block) for block in blocks})
    if wrong := list(strange(own, block)):
        raise ValueError(f"Hugging Face has no model like this encoder: {listed(wrong)}")
    return Shape(
        vocab=own.tokens.shape[0],
        width=encoder.width,
        depth=len(blocks),
        heads=block.attention.project.heads,
        inner=block.feed.widen.weight.shape[0],
        length=own.positions.longest,
        segments=encoder.segments,
        activation=next(n for n, made in OURS.items() if made is block.feed.activation),
        epsilon=own.norm.eps,
        dropout=block.around_attention.dropout.p,
        attention_dropout=block.attention.dropout,
        narrow=own.width if own is not whole else 0,
        groups=different if different < len(blocks) else 0,
    )


def strange(embeddings: Any, block: Any) -> Iterator[str]:
    """What these families do not have."""
    if embeddings.scale != 1.0 or not isinstance(embeddings.norm, nn.LayerNorm):
        yield "its embeddings are scaled or have no norm"
    elif embeddings.norm.eps != block.around_attention.norm.eps:
        yield "its norms have different epsilons"
    if not isinstance(embeddings.positions, LearnedPositions):
        yield "its positions are not learned"
    if block.around_attention.pre:
        yield (
            "its norms stand before the layers (norm = 'pre'), theirs behind them: one to export "
            "is trained with --set model.encode.stack.norm=post"
        )
    if not isinstance(block.attention, FullAttention):
        yield "its attention is not full"


def blocks_of(encoder: TransformerEncoder) -> dict[str, str]:
    """The number of each block that has weights of its own → its number among those."""
    numbers: dict[int, str] = {}
    found = {}
    for place, block in enumerate(encoder.stack.blocks):
        if id(block) not in numbers:
            numbers[id(block)] = found[str(place)] = str(len(numbers))
    return found
