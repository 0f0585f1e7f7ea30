"""Language models with an explicit memory.

Every name here is loaded when it is first used: ``import mnemic`` alone imports no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mnemic.ask import Answer, Evidence, ask_story
    from mnemic.data.stories.format import read_story
    from mnemic.learn.checkpoint import Checkpoint, load
    from mnemic.learn.classifier import TextClassifier
    from mnemic.learn.fit import fit
    from mnemic.learn.state import State
    from mnemic.memory import Reading, Written
    from mnemic.network import Network, assemble
    from mnemic.recipe import ConfigError
    from mnemic.recipe import load as load_recipe
    from mnemic.store import Memory

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Checkpoint",
    "ConfigError",
    "Evidence",
    "Memory",
    "Network",
    "Reading",
    "State",
    "TextClassifier",
    "Written",
    "ask_story",
    "assemble",
    "fit",
    "load",
    "load_recipe",
    "read_story",
]

_HOMES = {
    "mnemic.ask": ["Answer", "Evidence", "ask_story"],
    "mnemic.data.stories.format": ["read_story"],
    "mnemic.learn.checkpoint": ["Checkpoint", "load"],
    "mnemic.learn.classifier": ["TextClassifier"],
    "mnemic.learn.fit": ["fit"],
    "mnemic.learn.state": ["State"],
    "mnemic.memory": ["Reading", "Written"],
    "mnemic.network": ["Network", "assemble"],
    "mnemic.recipe": ["ConfigError", "load_recipe"],
    "mnemic.store": ["Memory"],
}
_OTHERWISE = {"load_recipe": "load"}  # what its home calls it


def _find(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            found = getattr(import_module(home), _OTHERWISE.get(name, name))
            globals()[name] = found  # so that the next use does not come here
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if not TYPE_CHECKING:  # a type checker would take every name for known
    __getattr__ = _find


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
