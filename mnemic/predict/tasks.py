"""Use one task of a network that learned several, as a network of its own."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mnemic.data import DATASETS
from mnemic.models import TextModel
from mnemic.predict.methods import check_method, methods_of
from mnemic.recipe import ConfigError, build, did_you_mean, join_words

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint


def list_tasks(checkpoint: "Checkpoint") -> tuple[str, ...]:
    """List the names of a network's tasks; none if it learned only one."""
    if "select_task" not in methods_of(checkpoint):
        return ()
    return tuple(build(DATASETS, checkpoint.recipe["data"]).sources)


def select_task(checkpoint: "Checkpoint", name: str) -> "Checkpoint":
    """Return one task of a network as a network that classifies or rates.

    It has the encoder of the other one, and the outputs of its task alone.
    """
    check_method(checkpoint, "select_task")
    source: Any = build(DATASETS, checkpoint.recipe["data"])
    if name not in source.sources:
        hint = did_you_mean(name, source.sources)
        raise ConfigError(f"this network has no task {name!r}{hint}; its tasks: {join_words(source.sources)}")
    outputs, labels = source.find_outputs(name, checkpoint.labels)
    head = checkpoint.network.respond.select_outputs(outputs.first, outputs.num_outputs)
    model = checkpoint.recipe["model"]
    recipe = {
        **{key: value for key, value in checkpoint.recipe.items() if key not in ("phases", "pretrained")},
        "data": source.task_spec(name),
        "objective": {"kind": "numbers" if outputs.is_number else "classes"},
        "model": model | {"respond": model["respond"] | {"kind": "classes"}},
    }
    return replace(
        checkpoint,
        recipe=recipe,
        sizes={**checkpoint.sizes, "classes": outputs.num_outputs},
        network=TextModel(checkpoint.network.encode, head).train(checkpoint.network.training),
        state={},
        labels=labels,
        origin=f"{checkpoint.origin}, {name}",
    )
