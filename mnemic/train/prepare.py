"""Prepare the pre-training sequences of a recipe once, for any number of runs."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mnemic.data.corpora import CorpusFiles
from mnemic.data.corpora.packed_folder import OnBytes, pack_folder
from mnemic.data.corpora.sequence_folder import is_sequence_folder
from mnemic.recipe import ConfigError, Recipe, construct


def prepare_sequences(
    recipe: Recipe, folder: Path, *, pack: bool = False, on_progress: OnBytes = lambda num_bytes, total: None
) -> dict[str, Any]:
    """Write the sequences of a recipe's corpus to ``folder`` and return their statistics.

    Runs can then use the folder as ``data.folder``. With ``pack`` it is compressed, and the corpus
    may be a folder of sequences; ``on_progress`` is called with the bytes that are packed.
    """
    settings = dict(recipe.get("data", {}))
    if settings.pop("kind", None) != "corpus":
        raise ConfigError("this recipe does not train on a corpus; take one such as bert-pretrain")
    source = construct(CorpusFiles, settings, name="corpus").path
    if is_sequence_folder(source) and not pack:
        raise ConfigError(f"{source} has sequences already: train on them, or give --pack to compress them")
    if pack and folder.exists():
        raise ConfigError(f"{folder} is there already; remove it, or give another --out")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as temporary:
        unpacked = Path(temporary) / "sequences" if pack else folder
        data = construct(CorpusFiles, settings | {"cache": str(unpacked)}, name="corpus").load()
        if pack:
            pack_folder(source if is_sequence_folder(source) else unpacked, folder, on_progress)
    splits = {"train": data.train, "validation": data.validation, "test": data.test}
    return {
        "folder": str(folder),
        "vocabulary": len(data.tokenizer),
        "sequences": {name: len(dataset) for name, dataset in splits.items()},
        "tokens": {name: len(dataset.tokens) for name, dataset in splits.items()},
        "bytes": sum(path.stat().st_size for path in folder.iterdir()),
    }
