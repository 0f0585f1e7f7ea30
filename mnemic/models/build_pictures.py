"""Build the network of a recipe whose encoder looks at pictures."""

from collections.abc import Mapping
from typing import Any

from mnemic.encode.pictures import PICTURE_ENCODERS
from mnemic.memory import MEMORIES
from mnemic.models.picture_network import PictureNetwork
from mnemic.models.pictures.build import build_picture_text_network
from mnemic.recipe import ConfigError, build, join_words, kind_name, kind_of, select_kinds
from mnemic.respond import RESPONSES


def looks_at_pictures(model: Mapping[str, Any]) -> bool:
    """Whether the encoder of a recipe's ``[model]`` is one of pictures."""
    encode = model.get("encode")
    return isinstance(encode, Mapping) and kind_name(encode) in PICTURE_ENCODERS


def build_picture_network(model: Mapping[str, Any], context: dict[str, Any]) -> Any:
    """Build a network that encodes pictures, with a memory of regions or none.

    A response that also reads words makes another network (see ``models.pictures``).
    """
    encode = build(PICTURE_ENCODERS, model["encode"], **context)
    response, kind = kind_of(RESPONSES, model["respond"]), kind_name(model["respond"])
    if response.reads_words:
        return build_picture_text_network(model, encode, context)
    if response.source != "picture" and not response.pools_text:
        known = join_words(select_kinds(RESPONSES, source="picture") | select_kinds(RESPONSES, pools_text=True))
        raise ConfigError(f"a response of kind {kind!r} does not look at pictures: respond with {known}")
    if response.reads_regions != ("memory" in model):
        raise ConfigError(
            f'a response of kind {kind!r} reads regions from a memory: add model.memory = {{ kind = "regions" }}'
            if response.reads_regions
            else f"a response of kind {kind!r} gets the picture itself: leave out model.memory"
        )
    memory = None
    if "memory" in model:
        memory = build(select_kinds(MEMORIES, holds_regions=True), model["memory"], **context)
        if memory.num_slots < encode.num_regions:
            raise ConfigError(
                f"the picture has {encode.num_regions} regions: model.memory.slots is as many, not {memory.num_slots}"
            )
    return PictureNetwork(encode, memory, build(RESPONSES, model["respond"], regions=encode.num_regions, **context))
