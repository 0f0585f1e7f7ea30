"""Translate the keys and kinds of recipes that version 0.1 wrote.

A recipe of today comes out as it went in, so every recipe may pass through here: one from a file,
one from a checkpoint, one override of the command line.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from mnemic.recipe.merge import Recipe

T = TypeVar("T")

# By the table that a key stands in: its old name and its name now.
KEYS: dict[str, dict[str, str]] = {
    "": {"started": "pretrained"},
    "model": {"carry": "segments", "segment": "segmenter", "start": "init_from",
              "takes": "init_parts"},
    "segments": {"lasts": "carry_memory", "lessons": "write_probes"},
    "encode": {"hidden": "hide_rate", "longest": "max_length", "most": "max_n", "of": "encoder",
               "start": "init"},
    "embeddings": {"narrow": "embedding_width", "scaled": "scale"},
    "memory": {"alike": "similarity_first", "fresh": "empty_bonus", "least": "threshold",
               "longest": "max_length", "most": "max_writes", "spare": "free_slots",
               "spread": "slots_per_write"},
    "respond": {"copies": "copy", "longest": "max_length", "most": "max_tokens",
                "look": "picture_stack", "pairs": "next_sentence"},
    "data": {"alike": "interchangeable", "asked_each": "questions_per_passage", "asks": "target",
             "elsewhere": "other_articles", "held": "validation_file", "kept": "cache",
             "learnt": "train_file", "misses": "distractors", "numbered": "index_column",
             "retold": "augment", "tested": "test_file", "wrong": "negatives"},
    "objective": {"ranks": "rank", "smooth": "label_smoothing"},
    "train": {"fixed": "frozen", "optimiser": "optimizer"},
    "clip": {"most": "limit"},
}  # fmt: skip
KINDS: dict[str, dict[str, str]] = {
    "encode": {"context": "context-bag", "exact": "exact-match", "sentence": "recurrent-sentence",
               "words": "word-vectors"},
    "memory": {"bert-mass": "blended", "keeps": "selective"},
    "respond": {"decoded": "word-decoder", "joined": "word-joint", "matched": "word-match",
                "next": "next-token", "quotes": "quote", "sequence": "seq2seq",
                "several": "words"},
    "data": {"documents": "long-documents", "generated": "generated-babi",
             "reading": "retrieval", "sequences": "seq2seq", "stories": "babi",
             "words": "language-modeling"},
    "objective": {"next": "next-token", "next-word": "segment-next-token",
                  "reading": "retrieve-and-read"},
}  # fmt: skip
DATES = {"held": "validation_size", "tested": "test_size"}  # of the data kind dates: counts
# Old names of recipes: the name now, and the task whose settings had a recipe of their own.
RECIPES: dict[str, tuple[str, int | None]] = {
    "keeps": ("bert-mass-selective", None), "keeps-articles": ("bert-mass-articles", None),
    "keeps-words": ("bert-mass-words", None),
}  # fmt: skip
for _name in ("dmn-plus", "dmn-sum", "entnet", "wmn"):
    RECIPES[f"{_name}-retold"] = (f"{_name}-augmented", None)
for _name, _tasks in (("entnet", (3, 16)), ("entnet-retold", (2, 3, 16, 19)), ("dmn-plus-retold", (3, 17)),
                      ("dmn-sum-retold", (19,)), ("memnn-am-ng-nl", (2, 3, 8, 10))):  # fmt: skip
    for _task in _tasks:
        RECIPES[f"{_name}-task{_task}"] = (_name.replace("retold", "augmented"), _task)
for _name in ("ask", "encoder"):  # other tables that hold an encoder
    KEYS[_name], KINDS[_name] = KEYS["encode"], KINDS["encode"]
SIZES = {"longest": "max_length"}  # facts of the data that a network was built from
# Tensors of a stopped run: how their names begin.
STATE = {"optimiser.": "optimizer.", "dice": "rng_state", "parts.": "loss_sums.", "best.waited": "best.bad_evals",
         "loss_sums.looks": "loss_sums.entropy"}  # fmt: skip


def migrate_recipe(recipe: Mapping[str, Any]) -> Recipe:
    """Translate a whole recipe: its sections, phases and settings of single tasks."""
    return _migrate_table(recipe, "")


def migrate_override(key: str, value: Any) -> tuple[str, Any]:
    """Translate one dotted override, such as ``data.retold=7``.

    >>> migrate_override("data.retold", 7)
    ('data.augment', 7)
    """
    parent, path = "", []
    for name in key.split("."):
        name = KEYS.get(parent, {}).get(name, name)
        path.append(name)
        if name == "kind":
            return ".".join(path), _migrate_kind(value, parent)
        parent = _table_name(name)
    if isinstance(value, Mapping):
        value = _migrate_table(value, parent)
    elif isinstance(value, list):
        value = [_migrate_table(item, "") if isinstance(item, Mapping) else item for item in value]
    return ".".join(path), value


def migrate_sizes(sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Translate the facts of the data that a checkpoint keeps beside its recipe."""
    return {SIZES.get(name, name): value for name, value in sizes.items()}


def migrate_state(state: Mapping[str, T]) -> dict[str, T]:
    """Translate the names of the tensors that a stopped run keeps beside its weights.

    >>> migrate_state({"optimiser.0.exp_avg": 1, "sums": 2})
    {'optimizer.0.exp_avg': 1, 'sums': 2}
    """

    def translate(name: str) -> str:
        return next((new + name.removeprefix(old) for old, new in STATE.items() if name.startswith(old)), name)

    return {translate(name): tensor for name, tensor in state.items()}


def _migrate_table(table: Mapping[str, Any], parent: str) -> dict[str, Any]:
    migrated: dict[str, Any] = {}
    renamed = KEYS.get(parent, {}) | (DATES if table.get("kind") == "dates" else {})
    for old, value in table.items():
        name = renamed.get(old, old)
        if name == "kind":
            migrated[name] = _migrate_kind(value, parent)
        elif isinstance(value, Mapping):
            migrated[name] = _migrate_table(value, _table_name(name))
        elif name == "phases" and isinstance(value, list):
            migrated[name] = [_migrate_table(phase, "") if isinstance(phase, Mapping) else phase for phase in value]
        else:
            migrated[name] = value
    return migrated


def _migrate_kind(value: Any, parent: str) -> Any:
    return KINDS.get(parent, {}).get(value, value) if isinstance(value, str) else value


def _table_name(name: str) -> str:
    """Name the table under a key; phases and tasks hold whole sections."""
    return "" if name in ("phases", "pretrained", "tasks") or name.isdigit() else name
