"""The weights of mnemic's heads under Hugging Face's names."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from mnemic.encode.huggingface.families import Family
from mnemic.encode.pooler import Pooler

LINEAR_SCALE = 2.0**-14  # where tanh is linear: 1e-5 off at a logit of 20


def rename_head_weights(weights: Mapping[str, Tensor], family: Family) -> dict[str, Tensor]:
    """Rename the weights of pre-training heads to Hugging Face's names; skip all others."""
    renamed = {}
    for name, weight in weights.items():
        for prefix, huggingface_prefix in family.head_names.items():
            if name == prefix or name.startswith(f"{prefix}."):
                renamed[huggingface_prefix + name.removeprefix(prefix)] = weight
    return renamed


def rename_span_head(ends: nn.Linear, none: nn.Linear, family: Family) -> dict[str, Tensor]:
    """Write a span head as a question-answering head and, for "no answer", a classifier.

    ``ends`` scores each token as first and last of the answer, and ``none`` the first token as
    "no answer" of both: the two labels of the family's sequence classification. Its classifier has
    an activation f between two layers; f(x) - f(-x) is linear for ReLU and GELU, and for a tanh
    near 0.
    """
    dense_name, out_name = family.classifier
    width = ends.in_features
    slope = LINEAR_SCALE * (2 if family.has_tanh_classifier else 1)
    dense_weight, dense_bias, out_weight = torch.zeros(width, width), torch.zeros(width), torch.zeros(2, width)
    dense_weight[:4] = torch.cat([none.weight, -none.weight]).detach().cpu() * LINEAR_SCALE
    dense_bias[:4] = torch.cat([none.bias, -none.bias]).detach().cpu() * LINEAR_SCALE
    out_weight[:, :4] = torch.cat([torch.eye(2), -torch.eye(2)], 1) / slope
    return {
        "qa_outputs.weight": ends.weight.detach(),
        "qa_outputs.bias": ends.bias.detach(),
        f"{dense_name}.weight": dense_weight,
        f"{dense_name}.bias": dense_bias,
        f"{out_name}.weight": out_weight,
        f"{out_name}.bias": torch.zeros(2),
    }


def rename_discriminator_head(dense: nn.Linear, score: nn.Linear) -> dict[str, Tensor]:
    """Write the head of replaced tokens under ELECTRA's names."""
    layers = {"dense": dense, "dense_prediction": score}
    return {
        f"discriminator_predictions.{name}.{kind}": weight.detach()
        for name, layer in layers.items()
        for kind, weight in layer.named_parameters()
    }


def read_class_head(
    weights: Mapping[str, Tensor], pooler: Pooler | None, family: Family, folder: Path
) -> dict[str, Tensor]:
    """Read the weights of a sequence classification's two layers, as ``inner`` and ``out``.

    ``weights`` are those of heads. A BERT's first layer is its pooler.
    """
    if not family.has_tanh_classifier:
        raise ValueError(f"{folder}: only classification heads of BERT, RoBERTa and ALBERT are read; take one of these")
    layers = {"inner": family.classifier[0].removeprefix(f"{family.prefix}."), "out": family.classifier[1]}
    available = dict(weights)
    if pooler is not None:
        available |= {f"{family.pooler}.{name}": weight for name, weight in pooler.dense.state_dict().items()}
    names = {
        f"{layer}.{kind}": f"{huggingface_layer}.{kind}"
        for layer, huggingface_layer in layers.items()
        for kind in ("weight", "bias")
    }
    if missing := [name for name in names.values() if name not in available]:
        raise ValueError(
            f"{folder} has no classification head (no weight {missing[0]!r}): to begin training with its encoder, "
            f"use --start {folder}"
        )
    return {name: available[huggingface_key].float() for name, huggingface_key in names.items()}


def rename_class_head(inner: nn.Linear, out: nn.Linear, family: Family) -> dict[str, Tensor]:
    """Write the head of a classifier over the first token under the family's names."""
    layers = zip(family.classifier, (inner, out))
    return {f"{name}.{kind}": weight.detach() for name, layer in layers for kind, weight in layer.named_parameters()}
