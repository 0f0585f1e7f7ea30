"""Make the sequences that a recipe pre-trains on, once, for any number of runs and machines."""

from pathlib import Path
from typing import Any

from mnemic.data.corpora import CorpusFiles
from mnemic.recipe import ConfigError, Recipe, fill


def prepare(recipe: Recipe, folder: Path) -> dict[str, Any]:
    """Put the sequences of a recipe's corpus into ``folder``, which is then its ``data.folder``."""
    data = dict(recipe.get("data", {}))
    if data.pop("kind", None) != "corpus":
        raise ConfigError(
            "this recipe does not learn from a corpus; take one such as bert-pretrain"
        )
    made = fill(CorpusFiles, data | {"kept": str(folder)}, name="corpus").data()
    parts = {"train": made.train, "validation": made.validation, "test": made.test}
    return {
        "folder": str(folder),
        "vocabulary": len(made.words),
        "sequences": {name: len(part) for name, part in parts.items()},
        "tokens": {name: len(part.tokens) for name, part in parts.items()},
        "bytes": sum(path.stat().st_size for path in folder.iterdir()),
    }
