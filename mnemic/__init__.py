"""Language models with an explicit memory.

Every name here is loaded when it is first used: ``import mnemic`` alone imports no torch.
"""

from typing import TYPE_CHECKING

from mnemic._lazy import lazy_names

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint
    from mnemic.data.babi.format import read_story
    from mnemic.memory import Reading, Written
    from mnemic.models import MemoryNetwork as Network
    from mnemic.models import build_model as assemble
    from mnemic.predict import SentenceEvidence as Evidence
    from mnemic.predict import StoryAnswer as Answer
    from mnemic.predict import ask_story
    from mnemic.predict.memory_state import State
    from mnemic.predict.model import Model, load
    from mnemic.recipe import ConfigError, load_recipe
    from mnemic.store import Memory
    from mnemic.train.run import fit
    from mnemic.train.sklearn import TextClassifier

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Checkpoint",
    "ConfigError",
    "Evidence",
    "Memory",
    "Model",
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
    "mnemic.predict": ["Answer", "Evidence", "ask_story"],
    "mnemic.data.babi.format": ["read_story"],
    "mnemic.checkpoint.folder": ["Checkpoint"],
    "mnemic.predict.model": ["Model", "load"],
    "mnemic.train.sklearn": ["TextClassifier"],
    "mnemic.train.run": ["fit"],
    "mnemic.predict.memory_state": ["State"],
    "mnemic.memory": ["Reading", "Written"],
    "mnemic.models": ["Network", "assemble"],
    "mnemic.recipe": ["ConfigError", "load_recipe"],
    "mnemic.store": ["Memory"],
}
_ALIASES = {
    "Answer": "StoryAnswer",
    "Evidence": "SentenceEvidence",
    "Network": "MemoryNetwork",
    "assemble": "build_model",
}
if not TYPE_CHECKING:  # a type checker would take every name for known
    __getattr__, __dir__ = lazy_names(__name__, _HOMES, _ALIASES)
