"""``mnemic export``: an encoder as a folder that Hugging Face's tools read."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from mnemic.cli.options import AsJson
from mnemic.cli.render.console import out, print_json, size, warn

if TYPE_CHECKING:
    from mnemic.encode import Pretrained
    from mnemic.respond.pretraining import PretrainingHeads


def export(
    checkpoint: Annotated[
        Path,
        typer.Argument(
            metavar="CHECKPOINT",
            help="A run's folder or a checkpoint with a Transformer encoder, or a Hugging Face "
            "folder, which is then written anew: in one file, with today's names.",
        ),
    ],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write; a new folder.")],
    family: Annotated[
        str | None,
        typer.Option(
            "--family",
            metavar="NAME",
            help="Write it as bert, roberta, distilbert, electra or albert.",
            show_default="what it was, or the simplest that fits",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write an encoder for Hugging Face: config.json, model.safetensors, tokenizer.json.

    AutoModel.from_pretrained(DIR) and AutoTokenizer.from_pretrained(DIR) then read it and give the
    same states. A memory, and what answers from it, have no place there and stay behind; the heads
    of a pre-trained BERT do have one: AutoModelForMaskedLM reads them.

    Example: mnemic export runs/reader reader-for-transformers
    """
    from mnemic.encode import save_encoder

    pretrained = find(checkpoint, family)
    save_encoder(folder, pretrained)
    report = {
        "folder": str(folder),
        "family": pretrained.family,
        "parameters": sum(weight.numel() for weight in pretrained.encoder.parameters()),
        "files": {path.name: path.stat().st_size for path in sorted(folder.iterdir())},
        "tokenizer": pretrained.tokenizer is not None,
        "pooler": pretrained.pooler is not None,
        "heads": sorted(pretrained.unused),
    }
    if pretrained.tokenizer is None:
        warn("there was no subword tokenizer to write; only the weights are in the folder")
    if as_json:
        print_json(report)
    else:
        tell(report)


def find(checkpoint: Path, family: str | None) -> "Pretrained":
    """The encoder of a Hugging Face folder or of a checkpoint of ours."""
    from mnemic.checkpoint.folder import load
    from mnemic.encode import Pretrained, TransformerEncoder, load_encoder
    from mnemic.encode.huggingface import simplest_family
    from mnemic.respond.pretraining import PretrainingHeads
    from mnemic.text import Subwords

    if (checkpoint / "config.json").is_file():
        found = load_encoder(checkpoint)
        return found if family is None else found._replace(family=family)
    loaded = load(checkpoint)
    parts = loaded.network.named_modules()
    encoders = [part for _, part in parts if isinstance(part, TransformerEncoder)]
    if len(encoders) != 1:
        raise ValueError(
            f"{checkpoint} has {len(encoders)} Transformer encoders; expected one: `mnemic inspect "
            f"{checkpoint}` shows its parts"
        )
    tokenizer = loaded.tokenizer if isinstance(loaded.tokenizer, Subwords) else None
    name = family or simplest_family(encoders[0])
    found = Pretrained(encoders[0], tokenizer, name)
    respond = loaded.network.respond
    if isinstance(respond, PretrainingHeads):
        return with_heads(found, respond)
    own = {id(weight) for weight in encoders[0].parameters()}
    if left := sum(part.numel() for part in loaded.network.parameters() if id(part) not in own):
        warn(f"{left:,} weights of memory and response stay behind: they have no place there")
    return found


def with_heads(pretrained: "Pretrained", respond: "PretrainingHeads") -> "Pretrained":
    """What a network said while it was pre-trained, where the family has a place for it."""
    from mnemic.checkpoint.folder import weights_of
    from mnemic.encode.huggingface.families import FAMILIES, named_heads
    from mnemic.encode.huggingface.shape import shape_of

    family, shape = FAMILIES.get(pretrained.family), shape_of(pretrained.encoder)
    if family is None or not family.heads:
        warn(f"a {pretrained.family} has no place for the heads of pre-training; they stay behind")
        return pretrained
    if (respond.vocabulary.norm.eps, respond.vocabulary.kind) != (shape.epsilon, shape.activation):
        raise ValueError(
            "the head has another epsilon or activation than the encoder, which Hugging Face does "
            "not know; give model.respond those of model.encode"
        )
    return pretrained._replace(
        pooler=None if respond.follows is None else respond.follows.pool,
        unused=named_heads(weights_of(respond), family),
        config={
            "model_type": pretrained.family,
            "architectures": [family.masked[respond.follows is not None]],
        },
    )


def tell(report: dict[str, Any]) -> None:
    table = Table("file", "size", header_style="bold")
    table.columns[1].justify = "right"
    for name, count in report["files"].items():
        table.add_row(name, size(count))
    screen = out()
    screen.print(table)
    kept = f", with {len(report['heads'])} weights of heads" if report["heads"] else ""
    screen.print(f"{report['parameters']:,} weights as {report['family']}{kept}", markup=False)
    screen.print(f'AutoModel.from_pretrained("{report["folder"]}") loads it', markup=False)
