"""Keys that are tied to words: from the words of a recipe to the ids that only the data knows."""

from collections.abc import Mapping
from typing import Any

from mnemic.recipe import ConfigError, Recipe, listed

SHOWN = 12  # words of the data, in an error


def with_tied_words(data: Any, recipe: Recipe) -> Any:
    """The data with the ids of ``model.memory.tied`` among its sizes, where that names words.

    The sizes are kept with a checkpoint, so that the network is built again without the data.
    """
    memory = recipe["model"].get("memory")
    tied = memory.get("tied") if isinstance(memory, Mapping) else None
    if not isinstance(tied, list) or not all(type(own) in (int, str) for own in tied):
        return data  # whoever builds the memory says what is wrong
    ids = [own if isinstance(own, int) else id_of(own, data.words) for own in tied]
    if strange := [own for own in ids if not 0 < own < len(data.words)]:
        last = len(data.words) - 1
        raise ConfigError(
            f"model.memory.tied has the id {strange[0]}; ids go from 1 to {last}; or name the words"
        )
    return data if ids == tied else data._replace(sizes={**data.sizes, "tied_words": ids})


def id_of(word: str, words: Any) -> int:
    if word not in words:
        some = listed(words.words[2 : 2 + SHOWN])
        raise ConfigError(
            f"model.memory.tied names {word!r}, which training never says; it says {some} …"
        )
    return words.id_of(word)
