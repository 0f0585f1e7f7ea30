"""The weights of BART and T5 under Hugging Face's names."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from mnemic.checkpoint.seq2seq_folder.shape import NUM_OFFSET_ROWS, Seq2SeqShape

SHARED_WORDS = {"bart": "model.shared.weight", "t5": "shared.weight"}
OUTPUT_WORDS = "lm_head.weight"
LOGITS_BIAS = "final_logits_bias"
PARTS = {"encode.stack": "encoder", "respond.decoder": "decoder"}
BART_ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "out": "out_proj"}
BART_LAYER = {
    **{f"attention.project.{key}": f"self_attn.{name}" for key, name in BART_ATTENTION.items()},
    **{f"cross.project.{key}": f"encoder_attn.{name}" for key, name in BART_ATTENTION.items()},
    "around_attention.norm": "self_attn_layer_norm", "around_cross.norm": "encoder_attn_layer_norm",
    "feed.widen": "fc1", "feed.narrow": "fc2", "around_feed.norm": "final_layer_norm",
}  # fmt: skip
T5_ATTENTION = {"query": "q", "key": "k", "value": "v", "out": "o"}
T5_SELF_ATTENTION = {
    **{
        f"attention.project.{internal}": f"layer.0.SelfAttention.{external}"
        for internal, external in T5_ATTENTION.items()
    },
    "attention.bias.table": "layer.0.SelfAttention.relative_attention_bias.weight",
    "around_attention.norm": "layer.0.layer_norm",
}
T5_CROSS = {
    **{
        f"cross.project.{internal}": f"layer.1.EncDecAttention.{external}"
        for internal, external in T5_ATTENTION.items()
    },
    "around_cross.norm": "layer.1.layer_norm",
}


def list_layer_names(shape: Seq2SeqShape, side: str) -> dict[str, str]:
    """Map mnemic's names of a layer's weights to Hugging Face's."""
    if shape.kind == "bart":
        return BART_LAYER
    feed = f"layer.{2 if side == 'decoder' else 1}"
    widen = {"feed.gate": "wi_0", "feed.widen": "wi_1"} if shape.is_gated else {"feed.widen": "wi"}
    feed_names = {
        internal: f"{feed}.DenseReluDense.{external}" for internal, external in (widen | {"feed.narrow": "wo"}).items()
    }
    return (
        T5_SELF_ATTENTION
        | (T5_CROSS if side == "decoder" else {})
        | feed_names
        | {"around_feed.norm": f"{feed}.layer_norm"}
    )


def huggingface_seq2seq_name(name: str, shape: Seq2SeqShape) -> str:
    """Return Hugging Face's name of a weight of a network."""
    prefix, layers = ("model.", "layers") if shape.kind == "bart" else ("", "block")
    if name == "encode.embeddings.tokens":
        return SHARED_WORDS[shape.kind]
    if name == "respond.output":
        return OUTPUT_WORDS
    if name == "respond.bias":
        return LOGITS_BIAS
    module, _, rest = name.partition(".embeddings.")
    if rest:
        side = "encoder" if module == "encode" else "decoder"
        kind = rest.partition(".")[2] if rest.startswith("norm.") else ""
        return f"{prefix}{side}.layernorm_embedding.{kind}" if kind else f"{prefix}{side}.embed_positions.weight"
    side = next(side for stack, side in PARTS.items() if name.startswith(f"{stack}."))
    path = name.split(".")[2:]
    if path[0] == "norm":
        return f"{prefix}{side}.final_layer_norm.{path[1]}"
    weight = ".".join(path[2:])
    for key, huggingface_key in list_layer_names(shape, side).items():
        if weight == key or weight.startswith(f"{key}."):
            return f"{prefix}{side}.{layers}.{path[1]}.{huggingface_key}{weight.removeprefix(key)}"
    raise ValueError(f"a {shape.kind} of Hugging Face has no weight for {name!r}")


def convert_to_mnemic(weights: Mapping[str, Tensor], names: Iterable[str], shape: Seq2SeqShape) -> dict[str, Tensor]:
    """Select the weights of these names from Hugging Face's, in mnemic's form."""
    converted = {}
    for name in names:
        weight = weights[huggingface_seq2seq_name(name, shape)].float()
        if name.endswith("positions.table"):
            weight = weight[NUM_OFFSET_ROWS:]
        if name == "respond.bias":
            weight = weight.flatten()
        if name == "encode.embeddings.tokens" and shape.kind == "t5":
            # T5 divides scores by √d; words are stored so, and multiplied when they are read.
            weight = weight * shape.width**-0.5
        converted[name] = weight
    return converted


def convert_to_huggingface(weights: Mapping[str, Tensor], shape: Seq2SeqShape) -> dict[str, Tensor]:
    """Give all weights of a network Hugging Face's names and form."""
    converted = {}
    for name, weight in weights.items():
        if name.endswith("positions.table"):
            weight = torch.cat([weight.new_zeros(NUM_OFFSET_ROWS, weight.shape[1]), weight])
        if name == "respond.bias":
            weight = weight.unsqueeze(0)
        if name == "encode.embeddings.tokens" and shape.kind == "t5":
            weight = weight * shape.width**0.5
        converted[huggingface_seq2seq_name(name, shape)] = weight.float().contiguous()
    return converted
