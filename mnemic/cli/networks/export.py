"""``mnemic export``: write an encoder as a Hugging Face folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from mnemic.cli import options as opt
from mnemic.cli.networks.load import choose_task, find_encoder, load_network
from mnemic.cli.render.console import print_json, print_table, print_text, print_warnings
from mnemic.cli.render.format import format_bytes

if TYPE_CHECKING:
    from mnemic.encode import Pretrained
    from mnemic.respond.classes import ClassHead
    from mnemic.respond.pretraining.masked import PretrainingHeads
    from mnemic.respond.pretraining.permuted import PermutedHead
    from mnemic.respond.pretraining.replaced import ReplacedTokenHead
    from mnemic.respond.spans import SpanHead

CHECKPOINT_HELP = "A run or checkpoint with a Transformer encoder, or a Hugging Face folder, which is rewritten."
FAMILY_HELP = "The architecture: bert, roberta, distilbert, electra, albert or xlnet; of an encoder-decoder bart or t5."
FAMILY_DEFAULT = "the original, or the simplest that fits"


def export(
    checkpoint: Annotated[Path, opt.Argument("CHECKPOINT", CHECKPOINT_HELP)],
    folder: Annotated[Path, opt.Argument("DIR", "The folder to write; it must be new.")],
    family: Annotated[str | None, opt.Option("--family NAME", FAMILY_HELP, FAMILY_DEFAULT)] = None,
    task: opt.Task = None,
) -> None:
    """Export an encoder to Hugging Face: config.json, model.safetensors, tokenizer.json.

    AutoModel.from_pretrained(DIR) and AutoTokenizer.from_pretrained(DIR) load it with the same
    hidden states. AutoModelForQuestionAnswering loads the head of a reader, AutoModelForMaskedLM
    those of a pre-trained BERT or ALBERT, AutoModelForPreTraining that of an ELECTRA,
    AutoModelForSequenceClassification that of a classifier with model.respond.pool = "first",
    AutoModelForSeq2SeqLM an encoder-decoder like BART or T5;
    memory and other responses have no counterpart there and are not exported. The README in DIR
    says how to use it.

    Example: mnemic export runs/reader reader-for-transformers
    """
    from mnemic.cli.networks.export_readme import build_readme
    from mnemic.encode import save_encoder

    if task is None and export_seq2seq(checkpoint, folder, family):
        return
    pretrained = load_pretrained(checkpoint, family, task)
    save_encoder(folder, pretrained, readme=build_readme(pretrained, str(checkpoint)))
    files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    num_parameters = sum(weight.numel() for weight in pretrained.encoder.parameters())
    if pretrained.tokenizer is None:
        print_warnings("there was no subword tokenizer to write; only the weights are in the folder")
    report = {"folder": str(folder), "family": pretrained.family, "parameters": num_parameters, "files": files}
    parts = {"tokenizer": pretrained.tokenizer is not None, "pooler": pretrained.pooler is not None}
    print_json(report | parts | {"heads": sorted(pretrained.unused)})
    print_table(["file", ">size"], [[name, format_bytes(count)] for name, count in files.items()])
    heads = f", with {len(pretrained.unused)} weights of heads" if pretrained.unused else ""
    print_text(f"{num_parameters:,} weights as {pretrained.family}{heads}")
    head_classes = [name for name in pretrained.config.get("architectures", ()) if "For" in name]
    loader = "AutoModelFor" + head_classes[0].partition("For")[2] if pretrained.unused and head_classes else "AutoModel"
    print_text(f'{loader}.from_pretrained("{folder}") loads it; its README.md says how to use it')


def export_seq2seq(checkpoint: Path, folder: Path, family: str | None) -> bool:
    """Export an encoder–decoder as a BART or T5; False if only an encoder is meant."""
    from mnemic.checkpoint.seq2seq_folder import save_seq2seq
    from mnemic.respond.sequence import SequenceDecoder

    if (checkpoint / "config.json").is_file() or family not in (None, "bart", "t5"):
        return False
    loaded, _ = load_network(checkpoint)
    if not isinstance(loaded.network.respond, SequenceDecoder):
        return False
    shape = save_seq2seq(folder, loaded, family=family)
    files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    num_parameters = sum(weight.numel() for weight in loaded.network.parameters())
    print_json({"folder": str(folder), "family": shape.kind, "parameters": num_parameters, "files": files})
    print_table(["file", ">size"], [[name, format_bytes(count)] for name, count in files.items()])
    print_text(f"{num_parameters:,} weights as {shape.kind}")
    print_text(f'AutoModelForSeq2SeqLM.from_pretrained("{folder}") loads it')
    return True


def load_pretrained(checkpoint: Path, family: str | None, task: str | None = None) -> "Pretrained":
    """Load the encoder of a Hugging Face folder, or of a checkpoint or its task."""
    from mnemic.encode import Pretrained, load_encoder
    from mnemic.encode.huggingface import find_simplest_family
    from mnemic.models import TextModel
    from mnemic.respond.classes import ClassHead
    from mnemic.respond.pretraining.masked import PretrainingHeads
    from mnemic.respond.pretraining.permuted import PermutedHead
    from mnemic.respond.pretraining.replaced import ReplacedTokenHead
    from mnemic.respond.spans import SpanHead
    from mnemic.text import SubwordTokenizer

    if (checkpoint / "config.json").is_file():
        if task is not None:
            raise ValueError("a Hugging Face folder has one task: leave out --task")
        pretrained = load_encoder(checkpoint)
        return pretrained if family is None else pretrained._replace(family=family)
    loaded = choose_task(load_network(checkpoint)[0], task)
    encoder = find_encoder(loaded, checkpoint)
    tokenizer = loaded.tokenizer if isinstance(loaded.tokenizer, SubwordTokenizer) else None
    name = family or find_simplest_family(encoder)
    pretrained = Pretrained(encoder, tokenizer, name)
    respond = loaded.network.respond
    if isinstance(respond, PretrainingHeads):
        return add_pretraining_heads(pretrained, respond)
    if isinstance(respond, PermutedHead) and name == "xlnet":
        return add_permuted_head(pretrained, respond)
    if isinstance(respond, ReplacedTokenHead):
        return add_discriminator_head(pretrained._replace(family=family or "electra"), respond)
    if isinstance(respond, SpanHead) and isinstance(loaded.network, TextModel) and name != "xlnet":
        return add_span_head(pretrained, respond)
    if isinstance(respond, ClassHead) and isinstance(loaded.network, TextModel) and has_class_head(name, respond):
        return add_class_head(pretrained, respond, loaded.labels)
    encoder_ids = {id(weight) for weight in encoder.parameters()}
    if num_dropped := sum(weight.numel() for weight in loaded.network.parameters() if id(weight) not in encoder_ids):
        print_warnings(f"{num_dropped:,} weights of memory and response stay behind: they have no place there")
    return pretrained


def add_pretraining_heads(pretrained: "Pretrained", respond: "PretrainingHeads") -> "Pretrained":
    """Add the pre-training heads, if the architecture has weights for them."""
    from mnemic.checkpoint.folder import weights_of
    from mnemic.encode.huggingface.families import FAMILIES
    from mnemic.encode.huggingface.heads import rename_head_weights
    from mnemic.encode.huggingface.shape import shape_of_encoder

    family, shape = FAMILIES.get(pretrained.family), shape_of_encoder(pretrained.encoder)
    if family is None or not family.head_names:
        print_warnings(f"a {pretrained.family} has no place for the heads of pre-training; they stay behind")
        return pretrained
    if (respond.vocabulary.norm.eps, respond.vocabulary.activation_name) != (shape.epsilon, shape.activation):
        raise ValueError(
            "the head has another epsilon or activation than the encoder, which Hugging Face does "
            "not know; give model.respond those of model.encode"
        )
    if respond.boundary is not None:
        print_warnings("the head of span boundaries stays behind: it has no place there")
    architecture = family.masked_lm_classes[respond.follows is not None]
    return pretrained._replace(
        pooler=None if respond.follows is None else respond.follows.pool,
        unused=rename_head_weights(weights_of(respond), family),
        config={"model_type": pretrained.family, "architectures": [architecture]},
    )


def add_discriminator_head(pretrained: "Pretrained", respond: "ReplacedTokenHead") -> "Pretrained":
    """Add the head that detects replaced tokens; the generator stays behind."""
    from mnemic.encode.huggingface.heads import rename_discriminator_head

    if pretrained.family != "electra":
        print_warnings(f"a {pretrained.family} has no place for the head of replaced tokens; it stays behind")
        return pretrained
    return pretrained._replace(
        unused=rename_discriminator_head(respond.dense, respond.score),
        config={"model_type": "electra", "architectures": ["ElectraForPreTraining"]},
    )


def add_permuted_head(pretrained: "Pretrained", respond: "PermutedHead") -> "Pretrained":
    """Add XLNet's head: its bias, since its matrix are the word vectors."""
    from mnemic.encode.huggingface.families import FAMILIES
    from mnemic.encode.huggingface.heads import rename_head_weights

    family = FAMILIES[pretrained.family]
    return pretrained._replace(
        unused=rename_head_weights({"bias": respond.bias.detach()}, family),
        config={"model_type": pretrained.family, "architectures": [family.masked_lm_classes[0]]},
    )


def add_span_head(pretrained: "Pretrained", respond: "SpanHead") -> "Pretrained":
    """Add the span head: a question-answering head and a classifier for "no answer"."""
    from mnemic.cli.networks.export_readme import MAX_TOKENS_KEY
    from mnemic.encode.huggingface.families import FAMILIES
    from mnemic.encode.huggingface.heads import rename_span_head

    if pretrained.family not in FAMILIES:
        return pretrained  # saving reports it
    if respond.relevance is not None:
        print_warnings("the head that scores relevance stays behind: it has no place there")
    family = FAMILIES[pretrained.family]
    labels = {"id2label": {"0": "no answer: start", "1": "no answer: end"}, MAX_TOKENS_KEY: respond.max_tokens}
    return pretrained._replace(
        unused=rename_span_head(respond.ends, respond.none, family),
        config={"model_type": pretrained.family, "architectures": [family.question_class], **labels},
    )


def has_class_head(name: str, respond: "ClassHead") -> bool:
    """Whether a family has a classifier like ours: a tanh over the first token's state."""
    from mnemic.encode.huggingface.families import FAMILIES

    return (
        name in FAMILIES
        and FAMILIES[name].has_tanh_classifier
        and respond.pool == "first"
        and respond.inner is not None
    )


def add_class_head(pretrained: "Pretrained", respond: "ClassHead", labels: Sequence[str]) -> "Pretrained":
    """Add the head of a classifier, with the names of its classes."""
    from mnemic.encode.huggingface.families import FAMILIES
    from mnemic.encode.huggingface.heads import rename_class_head

    assert respond.inner is not None  # by has_class_head
    family = FAMILIES[pretrained.family]
    names = {str(number): label for number, label in enumerate(labels or ["LABEL_0"])}
    config = {"id2label": names, "label2id": {label: int(number) for number, label in names.items()}}
    return pretrained._replace(
        unused=rename_class_head(respond.inner, respond.out, family),
        config={"model_type": pretrained.family, "architectures": [family.classification_class], **config},
    )
