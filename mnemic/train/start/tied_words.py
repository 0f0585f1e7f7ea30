"""Find the ids of the words that a memory ties to its slots."""

from collections.abc import Mapping
from typing import Any

from mnemic.recipe import ConfigError, Recipe, join_words

MAX_WORDS = 12  # of the data, listed in an error


def resolve_tied_words(data: Any, recipe: Recipe) -> Any:
    """Add the ids of the words in ``model.memory.tied`` to the sizes of the data.

    A checkpoint stores the sizes, so that the network can be rebuilt without the data.
    """
    memory = recipe["model"].get("memory")
    tied = memory.get("tied") if isinstance(memory, Mapping) else None
    if not isinstance(tied, list) or not all(type(key) in (int, str) for key in tied):
        return data  # building the memory reports the error
    ids = [key if isinstance(key, int) else word_id_of(key, data.tokenizer) for key in tied]
    if invalid := [key for key in ids if not 0 < key < len(data.tokenizer)]:
        last = len(data.tokenizer) - 1
        raise ConfigError(f"model.memory.tied has the id {invalid[0]}; ids go from 1 to {last}; or name the words")
    return data if ids == tied else data._replace(sizes={**data.sizes, "tied_words": ids})


def word_id_of(word: str, tokenizer: Any) -> int:
    """The id of a word; an error if it is not in the vocabulary."""
    if word not in tokenizer:
        known_words = join_words(tokenizer.vocabulary[2 : 2 + MAX_WORDS])
        raise ConfigError(
            f"model.memory.tied names {word!r}, which is not in the training data; it has {known_words} …"
        )
    return tokenizer.id_of(word)
