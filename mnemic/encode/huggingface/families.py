"""The config keys and weight names of each Hugging Face model family.

``sizes``: mnemic's name of a size → its key in config.json. ``weight_names``: the prefix of
mnemic's weight name → Hugging Face's, {} for the number of a layer. Names that are not listed here
are neither read nor written.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Family(NamedTuple):
    """A Hugging Face model family, known by its ``model_type``."""

    architecture: str  # the class without a head
    prefix: str  # of the encoder's weights in a model with a head
    sizes: Mapping[str, str]
    weight_names: Mapping[str, str]
    defaults: Mapping[str, Any]  # of sizes that an old config.json may lack
    pooler: str | None = "pooler.dense"
    pad_id: int = 0
    has_positions: bool = True  # a table of them
    has_position_offset: bool = False  # positions start after the padding id (RoBERTa)
    head_names: Mapping[str, str] = {}  # of pre-training heads, as ``weight_names``
    # The classes with a masked-LM head, and with a next-sentence head too.
    masked_lm_classes: tuple[str, str] = ("", "")
    classifier: tuple[str, str] = ("classifier.dense", "classifier.out_proj")  # over the first token
    has_tanh_classifier: bool = True  # between its two layers; else ReLU or GELU

    @property
    def question_class(self) -> str:
        """The class with a head for the ends of an answer."""
        return self.architecture.replace("Model", "ForQuestionAnswering")

    @property
    def classification_class(self) -> str:
        """The class with a head for the classes of a text or pair."""
        return self.architecture.replace("Model", "ForSequenceClassification")


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
DEFAULTS = {"segments": 2, "activation": "gelu", "epsilon": 1e-12, "dropout": 0.1, "attention_dropout": 0.1}
EMBEDDINGS = {
    "embeddings.tokens": "embeddings.word_embeddings.weight",
    "embeddings.positions.table": "embeddings.position_embeddings.weight",
    "embeddings.segments": "embeddings.token_type_embeddings.weight",
    "embeddings.norm": "embeddings.LayerNorm",
}
LAYER_WEIGHTS = (
    "attention.project.query", "attention.project.key", "attention.project.value", "attention.project.out",
    "around_attention.norm", "feed.widen", "feed.narrow", "around_feed.norm",
)  # fmt: skip


def map_layer_names(prefix: str, *names: str) -> dict[str, str]:
    """Map mnemic's names of a layer's weights to a family's, in order."""
    return {
        f"stack.blocks.{{}}.{weight}": f"{prefix}.{name}" for weight, name in zip(LAYER_WEIGHTS, names, strict=True)
    }


LAYER = map_layer_names(
    "encoder.layer.{}", "attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
    "attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm",
)  # fmt: skip
DISTIL_LAYER = map_layer_names(
    "transformer.layer.{}", "attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin",
    "sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm",
)  # fmt: skip
ALBERT_LAYER = map_layer_names(
    "encoder.albert_layer_groups.{}.albert_layers.0", "attention.query", "attention.key", "attention.value",
    "attention.dense", "attention.LayerNorm", "ffn", "ffn_output", "full_layer_layer_norm",
)  # fmt: skip
XLNET_ATTENTION = ".rel_attn."
XLNET_LAYER = {
    f"stack.blocks.{{}}.{weight}": f"layer.{{}}.{name}"
    for weight, name in {
        "attention.project.query.weight": "rel_attn.q", "attention.project.key.weight": "rel_attn.k",
        "attention.project.value.weight": "rel_attn.v", "attention.project.out.weight": "rel_attn.o",
        "attention.distance.weight": "rel_attn.r", "attention.content_bias": "rel_attn.r_w_bias",
        "attention.distance_bias": "rel_attn.r_r_bias", "segments.bias": "rel_attn.r_s_bias",
        "segments.vectors": "rel_attn.seg_embed", "around_attention.norm": "rel_attn.layer_norm",
        "feed.widen": "ff.layer_1", "feed.narrow": "ff.layer_2", "around_feed.norm": "ff.layer_norm",
    }.items()
}  # fmt: skip
XLNET_SIZES = {
    "vocab": "vocab_size", "width": "d_model", "depth": "n_layer", "heads": "n_head", "inner": "d_inner",
    "activation": "ff_activation", "epsilon": "layer_norm_eps", "attention_dropout": "dropout",
    "dropout": "dropout", "clamp": "clamp_len",
}  # fmt: skip
XLNET_DEFAULTS = DEFAULTS | {"clamp": 0, "length": 512, "is_two_stream": True}
ELECTRA_WIDEN = {"embeddings.widen": "embeddings_project"}
ALBERT_WIDEN = {"embeddings.widen": "encoder.embedding_hidden_mapping_in"}
ALBERT_DEFAULTS = {"activation": "gelu_new", "dropout": 0.0, "attention_dropout": 0.0, "narrow": 128, "groups": 1}

BERT_HEADS = {
    "vocabulary.dense": "cls.predictions.transform.dense",
    "vocabulary.norm": "cls.predictions.transform.LayerNorm",
    "vocabulary.bias": "cls.predictions.bias",
    "follows.score": "cls.seq_relationship",
}
ALBERT_HEADS = {
    "vocabulary.dense": "predictions.dense",
    "vocabulary.norm": "predictions.LayerNorm",
    "vocabulary.bias": "predictions.bias",
    "follows.score": "sop_classifier.classifier",
}

FAMILIES = {
    "bert": Family(
        "BertModel", "bert", SIZES, EMBEDDINGS | LAYER, DEFAULTS,
        head_names=BERT_HEADS, masked_lm_classes=("BertForMaskedLM", "BertForPreTraining"),
        classifier=("bert.pooler.dense", "classifier"),
    ),
    "roberta": Family(
        "RobertaModel", "roberta", SIZES, EMBEDDINGS | LAYER, DEFAULTS,
        pad_id=1, has_position_offset=True,
    ),
    "distilbert": Family(
        "DistilBertModel", "distilbert", DISTIL_SIZES, EMBEDDINGS | DISTIL_LAYER,
        DEFAULTS | {"segments": 0}, pooler=None,
        classifier=("pre_classifier", "classifier"), has_tanh_classifier=False,
    ),
    "electra": Family(
        "ElectraModel", "electra", SIZES | {"narrow": "embedding_size"},
        EMBEDDINGS | ELECTRA_WIDEN | LAYER, DEFAULTS | {"narrow": 128}, pooler=None,
        has_tanh_classifier=False,
    ),
    "albert": Family(
        "AlbertModel", "albert",
        SIZES | {"narrow": "embedding_size", "groups": "num_hidden_groups"},
        EMBEDDINGS | ALBERT_WIDEN | ALBERT_LAYER, DEFAULTS | ALBERT_DEFAULTS, pooler="pooler",
        head_names=ALBERT_HEADS, masked_lm_classes=("AlbertForMaskedLM", "AlbertForPreTraining"),
        classifier=("albert.pooler", "classifier"),
    ),
    "xlnet": Family(
        "XLNetModel", "transformer", XLNET_SIZES,
        {"embeddings.tokens": "word_embedding.weight", "stack.query_start": "mask_emb"} | XLNET_LAYER,
        XLNET_DEFAULTS, pooler=None, pad_id=5, has_positions=False, head_names={"bias": "lm_loss.bias"},
        masked_lm_classes=("XLNetLMHeadModel", "XLNetLMHeadModel"),
        classifier=("sequence_summary.summary", "logits_proj"), has_tanh_classifier=False,
    ),
}  # fmt: skip

# Hugging Face's name of an activation → mnemic's; the first of each is written.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
}


def huggingface_name(name: str, family: Family, block_numbers: Mapping[str, str]) -> str:
    """Return Hugging Face's name of a weight.

    ``block_numbers`` maps a block's index to its number there.
    """
    parts = name.replace("embeddings.narrow.", "embeddings.").split(".")
    number = block_numbers[parts[2]] if parts[:2] == ["stack", "blocks"] else ""
    if number:
        parts[2] = "{}"
    for prefix, huggingface_prefix in family.weight_names.items():
        size = prefix.count(".") + 1
        if ".".join(parts[:size]) == prefix:
            return ".".join([huggingface_prefix.format(number), *parts[size:]])
    raise ValueError(f"{family.architecture} has no weight for {name!r}")
