"""The sizes of a BART or T5, read from a config.json or a network."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from mnemic.encode.attention import BucketedAttention
from mnemic.encode.huggingface.families import ACTIVATIONS
from mnemic.encode.huggingface.shape import check_size
from mnemic.encode.stacks.block import ACTIVATIONS as ACTIVATION_FUNCTIONS
from mnemic.encode.stacks.block import GatedFeedForward
from mnemic.recipe import join_words

BART_EPSILON = 1e-5  # of BART's norms, which its config cannot change
NUM_OFFSET_ROWS = 2  # of BART's position tables, before the first position
T5_LENGTH = 512  # of texts that T5 was trained on; it has no limit
KINDS = ("bart", "t5")


class StackShape(NamedTuple):
    """The sizes of an encoder's or a decoder's layers."""

    depth: int
    heads: int
    inner: int


class Seq2SeqShape(NamedTuple):
    """The sizes and settings that define a BART or T5, without weights."""

    kind: str
    vocab: int
    width: int
    encoder: StackShape
    decoder: StackShape
    activation: str
    dropout: float
    attention_dropout: float
    length: int  # of position tables; of T5, which has none, that of texts
    is_scaled: bool = False  # BART: embeddings times √d
    head_width: int = 0  # T5: 0 = width / heads
    buckets: int = 32
    max_distance: int = 128
    epsilon: float = BART_EPSILON
    is_gated: bool = False
    has_output: bool = False  # a table of its own for the scores


def read_shape(config: Mapping[str, Any], path: object) -> Seq2SeqShape:
    """Read the sizes of a config.json; ValueError if mnemic cannot read it."""
    kind = config.get("model_type")
    if kind not in KINDS:
        raise ValueError(f"{path} has model_type {kind!r}; encoder-decoders that mnemic reads are {join_words(KINDS)}")
    return read_bart_shape(config, path) if kind == "bart" else read_t5_shape(config, path)


def read_bart_shape(config: Mapping[str, Any], path: object) -> Seq2SeqShape:
    """Read the sizes of a BART."""
    if (
        config.get("tie_word_embeddings") is False
        or config.get("normalize_before")
        or config.get("add_final_layer_norm")
    ):
        raise ValueError(
            f"{path} is of a BART with untied words or norms before its layers, which mnemic does not read"
        )
    encoder, decoder = (
        StackShape(
            read_size(config, path, f"{side}_layers", "depth"),
            read_size(config, path, f"{side}_attention_heads", "heads"),
            read_size(config, path, f"{side}_ffn_dim", "inner"),
        )
        for side in ("encoder", "decoder")
    )
    return Seq2SeqShape(
        "bart",
        read_size(config, path, "vocab_size", "vocab"),
        read_size(config, path, "d_model", "width"),
        encoder,
        decoder,
        read_activation(config.get("activation_function", "gelu"), path),
        float(config.get("dropout", 0.1)),
        float(config.get("attention_dropout", 0.0)),
        read_size(config, path, "max_position_embeddings", "length"),
        is_scaled=bool(config.get("scale_embedding", False)),
    )


def read_t5_shape(config: Mapping[str, Any], path: object) -> Seq2SeqShape:
    """Read the sizes of a T5 or T5 1.1."""
    heads, inner = read_size(config, path, "num_heads", "heads"), read_size(config, path, "d_ff", "inner")
    depth = read_size(config, path, "num_layers", "depth")
    num_decoder_layers = config.get("num_decoder_layers")
    decoder_depth = depth if num_decoder_layers is None else read_size(config, path, "num_decoder_layers", "depth")
    gating, _, activation = str(config.get("feed_forward_proj", "relu")).rpartition("-")
    if gating not in ("", "gated"):
        raise ValueError(f"{path} has feed_forward_proj {config['feed_forward_proj']!r}; expected relu or gated-gelu")
    activation = "gelu_new" if gating and activation == "gelu" else activation
    dropout, width = float(config.get("dropout_rate", 0.1)), read_size(config, path, "d_model", "width")
    head_width = read_size(config, path, "d_kv", "width")
    return Seq2SeqShape(
        "t5",
        read_size(config, path, "vocab_size", "vocab"),
        width,
        StackShape(depth, heads, inner),
        StackShape(decoder_depth, heads, inner),
        read_activation(activation, path),
        dropout,
        dropout,
        config.get("n_positions") or T5_LENGTH,
        head_width=0 if heads * head_width == width else head_width,
        buckets=config.get("relative_attention_num_buckets", 32),
        max_distance=config.get("relative_attention_max_distance", 128),
        epsilon=float(config.get("layer_norm_epsilon", 1e-6)),
        is_gated=bool(gating),
        has_output=config.get("tie_word_embeddings") is False,
    )


def read_size(config: Mapping[str, Any], path: object, key: str, size: str) -> int:
    """Read a size of a config.json; ValueError unless a model can have it."""
    if key not in config:
        raise ValueError(f"{path} has no {key!r}; a {config['model_type']} needs it")
    value: int = config[key]
    check_size(value if isinstance(value, int) else -1, size, f"{path}: {key}")
    return value


def read_activation(name: object, path: object) -> str:
    """Return mnemic's name of an activation."""
    if name not in ACTIVATIONS:
        raise ValueError(f"{path} has the activation {name!r}; known are {join_words(ACTIVATIONS)}")
    return ACTIVATIONS[str(name)]


def build_config(shape: Seq2SeqShape) -> dict[str, Any]:
    """Build the config.json of a shape, without the ids of special tokens."""
    activation = next(name for name, value in ACTIVATIONS.items() if value == shape.activation)
    config: dict[str, Any] = {"model_type": shape.kind, "vocab_size": shape.vocab, "d_model": shape.width}
    if shape.kind == "bart":
        for side, sizes in (("encoder", shape.encoder), ("decoder", shape.decoder)):
            config |= {f"{side}_layers": sizes.depth, f"{side}_attention_heads": sizes.heads}
            config |= {f"{side}_ffn_dim": sizes.inner}
        return config | {
            "architectures": ["BartForConditionalGeneration"],
            "activation_function": activation,
            "dropout": shape.dropout,
            "attention_dropout": shape.attention_dropout,
            "activation_dropout": 0.0,
            "max_position_embeddings": shape.length,
            "scale_embedding": shape.is_scaled,
        }
    if shape.is_gated and activation == "gelu_new":
        activation = "gelu"
    return config | {
        "architectures": ["T5ForConditionalGeneration"],
        "num_layers": shape.encoder.depth,
        "num_decoder_layers": shape.decoder.depth,
        "num_heads": shape.encoder.heads,
        "d_kv": shape.head_width or shape.width // shape.encoder.heads,
        "d_ff": shape.encoder.inner,
        "feed_forward_proj": f"gated-{activation}" if shape.is_gated else activation,
        "dropout_rate": shape.dropout,
        "n_positions": shape.length,
        "relative_attention_num_buckets": shape.buckets,
        "relative_attention_max_distance": shape.max_distance,
        "layer_norm_epsilon": shape.epsilon,
        "tie_word_embeddings": not shape.has_output,
    }


def model_options(shape: Seq2SeqShape) -> dict[str, Any]:
    """Return the shape's ``[model]``, as in a recipe."""
    is_bart = shape.kind == "bart"
    embeddings = {
        "kind": "sum",
        "positions": {"kind": "learned", "length": shape.length} if is_bart else {"kind": "none"},
        "scale": shape.is_scaled or not is_bart,
        "norm": is_bart,
        "dropout": shape.dropout,
    }
    encoder, decoder = (stack_options(shape, sizes) for sizes in (shape.encoder, shape.decoder))
    encode = {"kind": "transformer", "embeddings": embeddings, "stack": {"kind": "encoder", **encoder}}
    respond = {
        "kind": "seq2seq",
        "bias": is_bart,
        "separate_output": shape.has_output,
        "embeddings": embeddings,
        "decoder": {"kind": "transformer", **decoder},
    }
    return {"width": shape.width, "encode": encode, "respond": respond}


def stack_options(shape: Seq2SeqShape, sizes: StackShape) -> dict[str, Any]:
    """Return the options of a stack of layers."""
    options: dict[str, Any] = {
        "depth": sizes.depth,
        "inner": sizes.inner,
        "activation": shape.activation,
        "dropout": shape.dropout,
        "epsilon": shape.epsilon,
    }
    attention: dict[str, Any] = {"heads": sizes.heads, "dropout": shape.attention_dropout}
    if shape.kind == "bart":
        return options | {"norm": "post", "attention": {"kind": "full", **attention}}
    attention |= {"buckets": shape.buckets, "max_distance": shape.max_distance, "head_width": shape.head_width}
    return options | {
        "norm": "pre",
        "norm_kind": "rms",
        "feed": {"kind": "gated" if shape.is_gated else "plain", "bias": False},
        "attention": {"kind": "bucketed", **attention},
    }


def describe_network(network: Any) -> Seq2SeqShape:
    """Return the shape that a network has if it is a BART or T5."""
    encode, respond = network.encode, network.respond
    blocks = encode.stack.blocks[0], respond.decoder.blocks[0]
    attention, feed = blocks[0].attention, blocks[0].feed
    encoder, decoder = (
        StackShape(len(stack.blocks), block.attention.heads, block.feed.widen.out_features)
        for stack, block in zip((encode.stack, respond.decoder), blocks)
    )
    vocab, width = encode.embeddings.tokens.shape
    shape = Seq2SeqShape(
        "bart",
        vocab,
        width,
        encoder,
        decoder,
        next(name for name, function in ACTIVATION_FUNCTIONS.items() if function is feed.activation),
        blocks[0].around_attention.dropout.p,
        attention.dropout,
        encode.embeddings.positions.max_length or respond.max_length,
        is_scaled=encode.embeddings.scale != 1.0,
    )
    if not isinstance(attention, BucketedAttention) or attention.bias is None:
        return shape
    head_width = attention.project.query.out_features // attention.heads
    return shape._replace(
        kind="t5",
        is_scaled=False,
        head_width=0 if head_width * attention.heads == width else head_width,
        buckets=attention.bias.buckets,
        max_distance=attention.bias.max_distance,
        epsilon=blocks[0].around_attention.norm.eps,
        is_gated=isinstance(feed, GatedFeedForward),
        has_output=respond.output is not None,
    )
