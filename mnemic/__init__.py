"""Language models with an explicit memory.

Every name here is loaded when it is first used: ``import mnemic`` alone imports no torch. These
names are the public surface; everything else may change between versions.
"""

from mnemic._lazy import lazy_names

TYPE_CHECKING = False  # as typing's, whose import Ctrl-C would interrupt with a traceback

if TYPE_CHECKING:
    from mnemic.data.babi.format import read_story
    from mnemic.encode import load_encoder
    from mnemic.memory import Reading, Written
    from mnemic.models import MemoryNetwork, build_model
    from mnemic.predict.memory_state import State
    from mnemic.predict.model import Model, load
    from mnemic.predict.results import (
        Classification,
        GeneratedText,
        MemoryAnswer,
        RankedPassage,
        SpanAnswer,
        TaggedText,
        TextEmbeddings,
    )
    from mnemic.predict.story import StoryAnswer, ask_story
    from mnemic.recipe import ConfigError, load_recipe
    from mnemic.store import Answer, Evidence, Memory
    from mnemic.text import load_tokenizer
    from mnemic.train.run import fit
    from mnemic.train.sklearn import TextClassifier

__version__ = "0.2.0"

_HOMES = {
    "mnemic.data.babi.format": ["read_story"],
    "mnemic.encode": ["load_encoder"],
    "mnemic.memory": ["Reading", "Written"],
    "mnemic.models": ["MemoryNetwork", "build_model"],
    "mnemic.predict.memory_state": ["State"],
    "mnemic.predict.model": ["Model", "load"],
    "mnemic.predict.results": [
        "Classification",
        "GeneratedText",
        "MemoryAnswer",
        "RankedPassage",
        "SpanAnswer",
        "TaggedText",
        "TextEmbeddings",
    ],
    "mnemic.predict.story": ["StoryAnswer", "ask_story"],
    "mnemic.recipe": ["ConfigError", "load_recipe"],
    "mnemic.store": ["Answer", "Evidence", "Memory"],
    "mnemic.text": ["load_tokenizer"],
    "mnemic.train.run": ["fit"],
    "mnemic.train.sklearn": ["TextClassifier"],
}
__all__ = [
    "Answer",
    "Classification",
    "ConfigError",
    "Evidence",
    "GeneratedText",
    "Memory",
    "MemoryAnswer",
    "MemoryNetwork",
    "Model",
    "RankedPassage",
    "Reading",
    "SpanAnswer",
    "State",
    "StoryAnswer",
    "TaggedText",
    "TextClassifier",
    "TextEmbeddings",
    "Written",
    "ask_story",
    "build_model",
    "fit",
    "load",
    "load_encoder",
    "load_recipe",
    "load_tokenizer",
    "read_story",
]

if not TYPE_CHECKING:  # a type checker would take every name for known
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
