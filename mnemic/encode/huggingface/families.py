"""What each Hugging Face family calls its sizes and its weights: the only place that knows.

``sizes``: our word for a size → its key in config.json. ``weights``: the beginning of our name →
theirs, {} for the number of a layer. What is not named here is neither read nor written.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor


class Family(NamedTuple):
    """One kind of model that Hugging Face knows by its ``model_type``."""

    architecture: str  # the class without a head
    prefix: str  # before the trunk's weights where the model has a head
    sizes: Mapping[str, str]
    weights: Mapping[str, str]
    defaults: Mapping[str, Any]  # of sizes that an old config.json may leave out
    pooler: str | None = "pooler.dense"
    pad: int = 0
    offset: bool = False  # positions begin after that of padding (RoBERTa)
    heads: Mapping[str, str] = {}  # of the heads of pre-training, as ``weights``
    masked: tuple[str, str] = ("", "")  # the classes with a head for masked words, and with both


SIZES = {
    "vocab": "vocab_size",
    "width": "hidden_size",
    "depth": "num_hidden_layers",
    "heads": "num_attention_heads",
    "inner": "intermediate_size",
    "length": "max_position_embeddings",
    "segments": "type_vocab_size",
    "activation": "hidden_act",
    "epsilon": "layer_norm_eps",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
}
DISTIL_SIZES = {
    "vocab": "vocab_size",
    "width": "dim",
    "depth": "n_layers",
    "heads": "n_heads",
    "inner": "hidden_dim",
    "length": "max_position_embeddings",
    "activation": "activation",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
}
DEFAULTS = {
    "segments": 2,
    "activation": "gelu",
    "epsilon": 1e-12,
    "dropout": 0.1,
    "attention_dropout": 0.1,
}
EMBEDDINGS = {
    "embeddings.tokens": "embeddings.word_embeddings.weight",
    "embeddings.positions.table": "embeddings.position_embeddings.weight",
    "embeddings.segments": "embeddings.token_type_embeddings.weight",
    "embeddings.norm": "embeddings.LayerNorm",
}
LAYER = {
    "stack.blocks.{}.attention.project.query": "encoder.layer.{}.attention.self.query",
    "stack.blocks.{}.attention.project.key": "encoder.layer.{}.attention.self.key",
    "stack.blocks.{}.attention.project.value": "encoder.layer.{}.attention.self.value",
    "stack.blocks.{}.attention.project.out": "encoder.layer.{}.attention.output.dense",
    "stack.blocks.{}.around_attention.norm": "encoder.layer.{}.attention.output.LayerNorm",
    "stack.blocks.{}.feed.widen": "encoder.layer.{}.intermediate.dense",
    "stack.blocks.{}.feed.narrow": "encoder.layer.{}.output.dense",
    "stack.blocks.{}.around_feed.norm": "encoder.layer.{}.output.LayerNorm",
}
DISTIL_LAYER = {
    "stack.blocks.{}.attention.project.query": "transformer.layer.{}.attention.q_lin",
    "stack.blocks.{}.attention.project.key": "transformer.layer.{}.attention.k_lin",
    "stack.blocks.{}.attention.project.value": "transformer.layer.{}.attention.v_lin",
    "stack.blocks.{}.attention.project.out": "transformer.layer.{}.attention.out_lin",
    "stack.blocks.{}.around_attention.norm": "transformer.layer.{}.sa_layer_norm",
    "stack.blocks.{}.feed.widen": "transformer.layer.{}.ffn.lin1",
    "stack.blocks.{}.feed.narrow": "transformer.layer.{}.ffn.lin2",
    "stack.blocks.{}.around_feed.norm": "transformer.layer.{}.output_layer_norm",
}
GROUP = "encoder.albert_layer_groups.{}.albert_layers.0"
ALBERT_LAYER = {
    "stack.blocks.{}.attention.project.query": f"{GROUP}.attention.query",
    "stack.blocks.{}.attention.project.key": f"{GROUP}.attention.key",
    "stack.blocks.{}.attention.project.value": f"{GROUP}.attention.value",
    "stack.blocks.{}.attention.project.out": f"{GROUP}.attention.dense",
    "stack.blocks.{}.around_attention.norm": f"{GROUP}.attention.LayerNorm",
    "stack.blocks.{}.feed.widen": f"{GROUP}.ffn",
    "stack.blocks.{}.feed.narrow": f"{GROUP}.ffn_output",
    "stack.blocks.{}.around_feed.norm": f"{GROUP}.full_layer_layer_norm",
}
ELECTRA_WIDEN = {"embeddings.widen": "embeddings_project"}
ALBERT_WIDEN = {"embeddings.widen": "encoder.embedding_hidden_mapping_in"}
ALBERT_DEFAULTS = {
    "activation": "gelu_new",
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "narrow": 128,
    "groups": 1,
}

BERT_HEADS = {
    "vocabulary.dense": "cls.predictions.transform.dense",
    "vocabulary.norm": "cls.predictions.transform.LayerNorm",
    "vocabulary.bias": "cls.predictions.bias",
    "follows.score": "cls.seq_relationship",
}

FAMILIES = {
    "bert": Family(
        "BertModel", "bert", SIZES, EMBEDDINGS | LAYER, DEFAULTS,
        heads=BERT_HEADS, masked=("BertForMaskedLM", "BertForPreTraining"),
    ),
    "roberta": Family(
        "RobertaModel", "roberta", SIZES, EMBEDDINGS | LAYER, DEFAULTS, pad=1, offset=True
    ),
    "distilbert": Family(
        "DistilBertModel", "distilbert", DISTIL_SIZES, EMBEDDINGS | DISTIL_LAYER,
        DEFAULTS | {"segments": 0}, pooler=None,
    ),
    "electra": Family(
        "ElectraModel", "electra", SIZES | {"narrow": "embedding_size"},
        EMBEDDINGS | ELECTRA_WIDEN | LAYER, DEFAULTS | {"narrow": 128}, pooler=None,
    ),
    "albert": Family(
        "AlbertModel", "albert",
        SIZES | {"narrow": "embedding_size", "groups": "num_hidden_groups"},
        EMBEDDINGS | ALBERT_WIDEN | ALBERT_LAYER, DEFAULTS | ALBERT_DEFAULTS, pooler="pooler",
    ),
}  # fmt: skip

# Their word for an activation → ours; the first of each is the one that is written.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
}


def named_heads(weights: Mapping[str, Tensor], family: Family) -> dict[str, Tensor]:
    """Weights of the heads of pre-training under Hugging Face's names; none if it has no such."""
    found = {}
    for ours, weight in weights.items():
        for own, theirs in family.heads.items():
            if ours == own or ours.startswith(f"{own}."):
                found[theirs + ours.removeprefix(own)] = weight
    return found


def their_name(ours: str, family: Family, block_of: Mapping[str, str]) -> str:
    """Hugging Face's name of our weight; ``block_of`` says what number a block has there."""
    parts = ours.replace("embeddings.narrow.", "embeddings.").split(".")
    number = block_of[parts[2]] if parts[:2] == ["stack", "blocks"] else ""
    if number:
        parts[2] = "{}"
    for own, theirs in family.weights.items():
        size = own.count(".") + 1
        if ".".join(parts[:size]) == own:
            return ".".join([theirs.format(number), *parts[size:]])
    raise ValueError(f"{family.architecture} has no weight for {ours!r}")
