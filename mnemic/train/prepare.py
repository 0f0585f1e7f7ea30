"""Prepare the pre-training sequences of a recipe once, for any number of runs."""

from pathlib import Path
from typing import Any

from mnemic.data.corpora import CorpusFiles
from mnemic.recipe import ConfigError, Recipe, construct


def prepare_sequences(recipe: Recipe, folder: Path) -> dict[str, Any]:
    """Write the sequences of a recipe's corpus to ``folder`` and return their statistics.

    Runs can then use the folder as ``data.folder``.
    """
    settings = dict(recipe.get("data", {}))
    if settings.pop("kind", None) != "corpus":
        raise ConfigError("this recipe does not train on a corpus; take one such as bert-pretrain")
    data = construct(CorpusFiles, settings | {"cache": str(folder)}, name="corpus").load()
    splits = {"train": data.train, "validation": data.validation, "test": data.test}
    return {
        "folder": str(folder),
        "vocabulary": len(data.tokenizer),
        "sequences": {name: len(dataset) for name, dataset in splits.items()},
        "tokens": {name: len(dataset.tokens) for name, dataset in splits.items()},
        "bytes": sum(path.stat().st_size for path in folder.iterdir()),
    }
