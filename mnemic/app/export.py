"""``mnemic export``: an encoder as a folder that Hugging Face's tools read."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from mnemic.app.options import AsJson
from mnemic.app.screen import out, print_json, size, warn

if TYPE_CHECKING:
    from mnemic.encode import Pretrained


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
    same states. A memory, and what answers from it, have no place there and stay behind.

    Example: mnemic export runs/reader reader-for-transformers
    """
    from mnemic.encode import save_encoder

    pretrained = find(checkpoint)
    if family is not None:
        pretrained = pretrained._replace(family=family)
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


def find(checkpoint: Path) -> "Pretrained":
    """The encoder of a Hugging Face folder or of a checkpoint of ours."""
    from mnemic.encode import Pretrained, TransformerEncoder, load_encoder
    from mnemic.encode.huggingface import simplest_family
    from mnemic.learn.checkpoint import load
    from mnemic.text import Subwords

    if (checkpoint / "config.json").is_file():
        return load_encoder(checkpoint)
    loaded = load(checkpoint)
    parts = loaded.network.named_modules()
    found = {name: part for name, part in parts if isinstance(part, TransformerEncoder)}
    if len(found) != 1:
        raise ValueError(
            f"{checkpoint} has {len(found)} Transformer encoders; expected one: `mnemic inspect "
            f"{checkpoint}` shows its parts"
        )
    encoder = next(iter(found.values()))
    tokenizer = loaded.tokenizer if isinstance(loaded.tokenizer, Subwords) else None
    return Pretrained(encoder, tokenizer, simplest_family(encoder))


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
