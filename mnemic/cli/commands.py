"""The table of commands: their words, functions and places in the help."""

from collections.abc import Callable
from typing import NamedTuple

from mnemic.cli.documents import ask, demo, forget, maintain, mcp, remember
from mnemic.cli.documents import list as contents
from mnemic.cli.networks import (
    ask_story,
    average,
    data,
    evaluate,
    export,
    inspect,
    predict,
    recipes,
    table,
    train,
    words_table,
)
from mnemic.cli.text import ask as text_ask
from mnemic.cli.text import forget as text_forget
from mnemic.cli.text import read as text_read
from mnemic.cli.text import show as text_show


class Command(NamedTuple):
    """A command; its function's signature is its options, its docstring its help."""

    name: str  # one word, or the word of its group and its own
    function: Callable[..., int | None]  # returns the exit code; None: 0
    panel: str  # of the help


DOCUMENTS, NETWORKS = "Your documents", "Networks"
GROUPS = {
    "text": "Read a text of any length into one memory file, and ask it.",
    "story": "Ask memory networks about stories.",
    "data": "Generate or prepare training and test data.",
    "table": "Rebuild a published table.",
}
COMMANDS = (
    Command("remember", remember.remember, DOCUMENTS),
    Command("ask", ask.ask, DOCUMENTS),
    Command("search", ask.search, DOCUMENTS),
    Command("forget", forget.forget, DOCUMENTS),
    Command("update", remember.update, DOCUMENTS),
    Command("list", contents.list_documents, DOCUMENTS),
    Command("history", contents.history, DOCUMENTS),
    Command("stats", contents.stats, DOCUMENTS),
    Command("check", maintain.check, DOCUMENTS),
    Command("reindex", maintain.reindex, DOCUMENTS),
    Command("export-memory", maintain.export_memory, DOCUMENTS),
    Command("import-memory", maintain.import_memory, DOCUMENTS),
    Command("mcp", mcp.mcp, DOCUMENTS),
    Command("demo", demo.demo, DOCUMENTS),
    Command("text read", text_read.read, NETWORKS),
    Command("text ask", text_ask.ask, NETWORKS),
    Command("text show", text_show.show, NETWORKS),
    Command("text forget", text_forget.forget, NETWORKS),
    Command("story ask", ask_story.ask, NETWORKS),
    Command("predict", predict.predict, NETWORKS),
    Command("recipes", recipes.recipes, NETWORKS),
    Command("train", train.train, NETWORKS),
    Command("evaluate", evaluate.evaluate, NETWORKS),
    Command("inspect", inspect.inspect, NETWORKS),
    Command("export", export.export, NETWORKS),
    Command("average", average.average, NETWORKS),
    Command("ship", average.ship, NETWORKS),
    Command("data stories", data.generate_story_files, NETWORKS),
    Command("data show", data.show_story, NETWORKS),
    Command("data sequences", data.prepare_pretraining, NETWORKS),
    Command("data words", data.prepare_words, NETWORKS),
    Command("table babi", table.rebuild_babi, NETWORKS),
    Command("table words", words_table.compare_language_models, NETWORKS),
)
