"""Build networks with an encoder of pictures and one of words."""

from collections.abc import Mapping
from typing import Any

from mnemic.encode import ENCODERS
from mnemic.models.pictures.alignment_network import AlignmentNetwork
from mnemic.models.pictures.task_network import TaskNetwork
from mnemic.recipe import ConfigError, build, kind_name, kind_of, select_kinds
from mnemic.respond import RESPONSES
from mnemic.respond.pictures.tasks import TASKS


def build_picture_text_network(
    model: Mapping[str, Any], encode: Any, context: Mapping[str, Any]
) -> AlignmentNetwork | TaskNetwork:
    """Build a network whose response compares, or reads, a picture and words."""
    kind, vocab = kind_name(model["respond"]), context["vocab"]
    if "ask" not in model or "memory" in model:
        raise ConfigError(
            f"a response of kind {kind!r} reads words beside the picture: add model.ask, an encoder of tokens such as "
            '{ kind = "transformer" }, and leave out model.memory'
        )
    has_tasks = kind_of(RESPONSES, model["respond"]).has_tasks
    words = select_kinds(ENCODERS, reads_texts=False)
    ask = build(words, model["ask"], **{**context, "vocab": vocab + len(TASKS) if has_tasks else vocab})
    respond = build(RESPONSES, model["respond"], **context)
    return TaskNetwork(encode, ask, respond, vocab) if has_tasks else AlignmentNetwork(encode, ask, respond)
