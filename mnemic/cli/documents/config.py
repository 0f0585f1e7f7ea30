"""``mnemic config``: show and change the user's settings."""

import os
from collections.abc import Callable
from inspect import signature
from typing import Annotated, Any, Literal

from mnemic.cli import options as opt
from mnemic.cli.config import SETTINGS, find_config_file, load_config, parse_value, write_setting
from mnemic.cli.documents.ask import ask
from mnemic.cli.documents.common import shorten_path
from mnemic.cli.documents.remember import remember
from mnemic.cli.render.console import Styled, print_json, print_table, print_text

COMMANDS: dict[str, Callable[..., Any]] = {"ask": ask, "remember": remember}  # that have a setting's option

Action = Literal["show", "set", "unset", "path"]
ACTION_HELP = "show all, set KEY VALUE, unset KEY, or print the path of the file."


def config(
    action: Annotated[Action, opt.Argument("show|set|unset|path", ACTION_HELP)] = "show",
    words: Annotated[list[str] | None, opt.Argument("KEY VALUE", "A setting, and its value or values.")] = None,
) -> None:
    """Show or change your settings: defaults of options, in a TOML file.

    The environment beats the file, and options beat both.

    Example: mnemic config set limit 10

    A list: mnemic config set exclude "old/*" "*.bak"
    """
    path, words = find_config_file(), words or []
    if action in ("show", "path") and words:
        raise ValueError(f"`mnemic config {action}` takes no more words; to change one: mnemic config set KEY VALUE")
    if action == "path":
        print_json({"path": str(path)})
        print_text(str(path))
        return
    if action == "set":
        if len(words) < 2:
            raise ValueError("give a setting and its value: mnemic config set KEY VALUE")
        write_setting(words[0], parse_value(words[0], words[1:]))
    if action == "unset":
        if len(words) != 1:
            raise ValueError("give one setting: mnemic config unset KEY")
        write_setting(words[0], None)
    show_settings()


def show_settings() -> None:
    """Print all settings with their values."""
    path, values = find_config_file(), load_config()
    memory = os.environ.get("MNEMIC_MEMORY")
    print_json({"path": str(path), "settings": values, "environment": {"memory": memory} if memory else {}})
    rows: list[list[Any]] = []
    for key, setting in SETTINGS.items():
        value = values.get(key)
        text = " ".join(value) if isinstance(value, list) else "" if value is None else str(value)
        default = find_default(key) if value is None else ""
        note = f"{setting.help}; MNEMIC_MEMORY={memory} beats it" if key == "memory" and memory else setting.help
        rows.append([key, Styled(default, "dim") if default else Styled(text, "bold"), Styled(note, "dim")])
    print_table(["setting", "value", ""], rows, caption="values in brackets are the defaults")
    print_text(f"{shorten_path(str(path))}{'' if path.is_file() else ' (not written yet)'}", style="dim")


def find_default(key: str) -> str:
    """Return the default of a setting in brackets; empty without one."""
    if key == "memory":
        return f"({opt.MEMORY_DEFAULT})"
    command = COMMANDS.get(next(iter(SETTINGS[key].commands)))
    default = signature(command).parameters[key].default if command else None
    return "" if default is None else f"({default})"
