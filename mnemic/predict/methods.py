"""Which methods of ``Model`` a trained network has."""

from typing import TYPE_CHECKING

from mnemic.data import DATASETS
from mnemic.recipe import ConfigError, join_words, kind_of

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint

METHODS = ("align", "answer", "ask", "ask_story", "caption", "classify", "complete", "detect", "embed",
           "generate", "load_state", "perplexity", "rate", "remember", "rerank", "select_task", "tag")  # fmt: skip
HINTS = {  # what a network answers questions about, by one of its methods
    "ask_story": ": it answers questions about stories (`mnemic story ask`)",
    "remember": ": it answers questions about what it has read (`mnemic text read`, then `mnemic text ask`)",
    "select_task": ": it learned several tasks, and each of them by itself can (`mnemic predict --task NAME`)",
}


class MethodError(ConfigError, AttributeError):
    """A trained network is asked for something it was not trained for."""


def methods_of(checkpoint: "Checkpoint") -> tuple[str, ...]:
    """List the methods that a trained network has, by its response and its data."""
    methods: tuple[str, ...] = checkpoint.network.respond.methods
    if methods == ("classify", "rate"):  # classes have names, numbers have none
        methods = ("classify",) if checkpoint.labels else ("rate",)
    data_kind = kind_of(DATASETS, checkpoint.recipe["data"])
    if methods == ("rate",) and data_kind.paired:  # the number of a question and a passage ranks passages
        methods = (*methods, "rerank")
    if data_kind.layout == "windows":
        methods = tuple(name for name in methods if name != "perplexity")  # it counts words, not subwords
        methods = tuple(dict.fromkeys((*methods, "embed")))
    return methods


def check_method(checkpoint: "Checkpoint", method: str) -> None:
    """Raise a MethodError unless the network has this method."""
    if method not in (methods := methods_of(checkpoint)):
        raise MethodError(describe_missing(method, methods))


def describe_missing(method: str, methods: tuple[str, ...]) -> str:
    """Explain that a network lacks a method, and what to use instead."""
    subject = next((HINTS[name] for name in methods if name in HINTS), "")
    return f"this network cannot {method}; it can {join_words(methods)}{subject}"
