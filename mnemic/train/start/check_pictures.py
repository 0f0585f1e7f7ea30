"""Check that the data and the network of a recipe fit: pictures or none."""

from collections.abc import Mapping
from typing import Any

from mnemic.data import DATASETS
from mnemic.encode.pictures import PICTURE_ENCODERS
from mnemic.models.build_pictures import looks_at_pictures
from mnemic.recipe import ConfigError, join_words, kind_name, kind_of, select_kinds


def check_pictures(model: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    """Raise an error unless data of pictures meets an encoder of pictures."""
    if (kind_of(DATASETS, data).layout == "pictures") != looks_at_pictures(model):
        raise ConfigError(
            f"data of kind {join_words(select_kinds(DATASETS, layout='pictures'))} and an encoder of kind "
            f"{join_words(PICTURE_ENCODERS)} need each other; here data.kind is {kind_name(data)!r} and "
            f"model.encode.kind {kind_name(model['encode'])!r}"
        )
