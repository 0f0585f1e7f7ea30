"""The table of commands: their words, functions and places in the help."""

from collections.abc import Callable
from typing import NamedTuple

from mnemic.cli.documents import ask, demo, forget, maintain, mcp, remember
from mnemic.cli.documents import list as contents
from mnemic.cli.networks import ask_story, average, data, evaluate, export, inspect, predict, recipes, table, train
from mnemic.cli.networks.words_table import compare_language_models
from mnemic.cli.text import ask as text_ask
from mnemic.cli.text import forget as text_forget
from mnemic.cli.text import read as text_read
from mnemic.cli.text import show as text_show


class Command(NamedTuple):
    """A command; its function's signature is its options, its docstring its help."""

    name: str  # one word, or the word of its group and its own
    function: Callable[..., int | None]  # returns the exit code; None: 0


GROUPS = {
    "text": "Read a text of any length into one memory file, and ask it.",
    "story": "Ask memory networks about stories.",
    "data": "Generate or prepare training and test data.",
    "table": "Rebuild a published table.",
}
DOCUMENT_COMMANDS = (
    Command("remember", remember.remember),
    Command("ask", ask.ask),
    Command("search", ask.search),
    Command("forget", forget.forget),
    Command("update", remember.update),
    Command("list", contents.list_documents),
    Command("history", contents.history),
    Command("stats", contents.stats),
    Command("check", maintain.check),
    Command("reindex", maintain.reindex),
    Command("export-memory", maintain.export_memory),
    Command("import-memory", maintain.import_memory),
    Command("mcp", mcp.mcp),
    Command("demo", demo.demo),
)
NETWORK_COMMANDS = (
    Command("text read", text_read.read),
    Command("text ask", text_ask.ask),
    Command("text show", text_show.show),
    Command("text forget", text_forget.forget),
    Command("story ask", ask_story.ask),
    Command("predict", predict.predict),
    Command("recipes", recipes.recipes),
    Command("train", train.train),
    Command("evaluate", evaluate.evaluate),
    Command("inspect", inspect.inspect),
    Command("export", export.export),
    Command("average", average.average),
    Command("ship", average.ship),
    Command("data stories", data.generate_story_files),
    Command("data show", data.show_story),
    Command("data sequences", data.prepare_pretraining),
    Command("data words", data.prepare_words),
    Command("table babi", table.rebuild_babi),
    Command("table words", compare_language_models),
)
PANELS = {"Your documents": DOCUMENT_COMMANDS, "Networks": NETWORK_COMMANDS}  # of the help
COMMANDS = DOCUMENT_COMMANDS + NETWORK_COMMANDS
