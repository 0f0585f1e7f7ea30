"""The table of commands: their words, functions and places in the help."""

from collections.abc import Callable
from typing import TypeAlias

from mnemic.cli.documents import ask, config, demo, forget, maintain, mcp, remember, search, serve, trust, watch
from mnemic.cli.documents import list as contents
from mnemic.cli.networks import ask_story, augment, average, data, evaluate, export, inspect, predict, recipes, train
from mnemic.cli.networks.negatives import mine_negatives
from mnemic.cli.tables.attention_table import compare_attentions
from mnemic.cli.tables.babi_table import rebuild_babi
from mnemic.cli.tables.domains_table import compare_domains
from mnemic.cli.tables.pictures_table import compare_pictures
from mnemic.cli.tables.students_table import compare_students
from mnemic.cli.tables.vectors_table import compare_vectors
from mnemic.cli.tables.words_table import compare_language_models
from mnemic.cli.text import ask as text_ask
from mnemic.cli.text import forget as text_forget
from mnemic.cli.text import read as text_read
from mnemic.cli.text import show as text_show
from mnemic.cli.vectors.train import train_word_vectors

Commands: TypeAlias = dict[str, Callable[..., int | None]]
GROUPS = {
    "text": "Read a text of any length into one memory file, and ask it.",
    "story": "Ask memory networks about stories.",
    "data": "Generate or prepare training and test data.",
    "table": "Rebuild a published table.",
}
# Names of commands, one word or that of a group and its own → functions; "train vectors" has two
# words and no group. A signature has the options, a docstring the help; a function returns the exit
# code, or None for 0.
DOCUMENT_COMMANDS: Commands = {
    "remember": remember.remember,
    "watch": watch.watch,
    "ask": ask.ask,
    "search": search.search,
    "forget": forget.forget,
    "update": remember.update,
    "list": contents.list_documents,
    "history": contents.history,
    "stats": contents.stats,
    "check": maintain.check,
    "reindex": maintain.reindex,
    "export-memory": maintain.export_memory,
    "import-memory": maintain.import_memory,
    "config": config.config,
    "trust": trust.trust,
    "mcp": mcp.mcp,
    "serve": serve.serve,
    "demo": demo.demo,
}
NETWORK_COMMANDS: Commands = {
    "text read": text_read.read,
    "text ask": text_ask.ask,
    "text show": text_show.show,
    "text forget": text_forget.forget,
    "story ask": ask_story.ask,
    "predict": predict.predict,
    "recipes": recipes.recipes,
    "train": train.train,
    "train vectors": train_word_vectors,
    "evaluate": evaluate.evaluate,
    "inspect": inspect.inspect,
    "export": export.export,
    "average": average.average,
    "ship": average.ship,
    "data stories": data.generate_story_files,
    "data show": data.show_story,
    "data sequences": data.prepare_pretraining,
    "data words": data.prepare_words,
    "data scenes": data.generate_scene_file,
    "data negatives": mine_negatives,
    "data augment": augment.augment,
    "table babi": rebuild_babi,
    "table words": compare_language_models,
    "table domains": compare_domains,
    "table students": compare_students,
    "table attention": compare_attentions,
    "table vectors": compare_vectors,
    "table pictures": compare_pictures,
}
PANELS = {"Your documents": DOCUMENT_COMMANDS, "Networks": NETWORK_COMMANDS}  # of the help
COMMANDS = DOCUMENT_COMMANDS | NETWORK_COMMANDS
