"""The user's settings: a TOML file whose values stand for options that were not given.

The environment beats the file, and the command line beats both. A setting has the name of its
option; the memory is used where no project has its own.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mnemic.files import replace_file
from mnemic.recipe.errors import ConfigError, did_you_mean

FILE_NAME = "config.toml"


class Setting(NamedTuple):
    """A setting: its type, its meaning, and the commands whose option it is."""

    type: type
    help: str
    commands: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None

    def check(self, key: str, value: Any) -> Any:
        """Return a value of this setting, or raise ``ConfigError``."""
        is_number = isinstance(value, int) and not isinstance(value, bool) and self.type is float
        value = float(value) if is_number else value
        is_valid = isinstance(value, self.type) and not isinstance(value, bool)
        if is_valid and self.type is list:
            is_valid = all(isinstance(item, str) for item in value)
        if not is_valid:
            raise ConfigError(f"{key} is {TYPE_NAMES[self.type]}, not {value!r}")
        if self.bounds and not self.bounds[0] <= value <= self.bounds[1]:
            raise ConfigError(f"{key} is from {self.bounds[0]:g} to {self.bounds[1]:g}, not {value:g}")
        return value


TYPE_NAMES = {str: "a text", int: "a whole number", float: "a number", list: "a list of texts"}
LARGE = 1_000_000
SETTINGS = {
    "memory": Setting(str, "the memory where no project has its own"),
    "reader": Setting(str, "the model that answers", ("ask", "mcp")),
    "confidence": Setting(float, "minimum probability of an answer", ("ask",), (0, 1)),
    "hops": Setting(int, "number of reads per question", ("ask",), (1, LARGE)),
    "passages": Setting(int, "passages to read per hop", ("ask",), (1, LARGE)),
    "rerank": Setting(int, "passages that the reader ranks anew; 0: none", ("ask",), (0, LARGE)),
    "limit": Setting(int, "sentences of evidence, or passages of a search", ("ask", "search"), (1, LARGE)),
    "include": Setting(list, "files to read in folders", ("remember", "watch")),
    "exclude": Setting(list, "files to leave out in folders", ("remember", "watch")),
}


def find_config_folder() -> Path:
    """Return the folder of the settings and of the history of questions."""
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "mnemic"


def find_config_file() -> Path:
    """Return the path of the settings, whether the file exists or not."""
    return find_config_folder() / FILE_NAME


def load_config() -> dict[str, Any]:
    """Load the settings of the file; a wrong key or value is an error."""
    path = find_config_file()
    if not path.is_file():
        return {}
    try:
        return check_settings(parse_toml(path.read_text(encoding="utf-8")))
    except ValueError as error:  # a ConfigError, TOMLDecodeError or UnicodeDecodeError is one
        raise ConfigError(f"{path}: {error}") from None


def parse_toml(text: str) -> dict[str, Any]:
    """Parse the text of a settings file."""
    import tomllib  # imported here: most users have no such file

    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError("it is nested too deeply") from None


def check_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Check keys and values, and return them."""
    return {key: get_setting(key).check(key, value) for key, value in values.items()}


def get_setting(key: str) -> Setting:
    """Return the setting of a key, or raise ``ConfigError`` with the one that was meant."""
    if key not in SETTINGS:
        raise ConfigError(f"no setting {key!r}{did_you_mean(key, SETTINGS)}; settings are {', '.join(SETTINGS)}")
    return SETTINGS[key]


def collect_defaults(command: str) -> dict[str, Any]:
    """Return the values of a command's options that the file sets, by parameter."""
    keys = [key for key, setting in SETTINGS.items() if command in setting.commands]
    return {key: value for key, value in load_config().items() if key in keys} if keys else {}


def parse_value(key: str, words: list[str]) -> Any:
    """Parse the words of a command line as the value of a setting."""
    setting = get_setting(key)
    if setting.type is list:
        return setting.check(key, words)
    if len(words) != 1:
        raise ConfigError(f"{key} has one value, not {len(words)}: mnemic config set {key} VALUE")
    if setting.type is str:
        is_path = key == "memory" and "://" not in words[0] and (os.sep in words[0] or "." in words[0])
        return os.path.abspath(os.path.expanduser(words[0])) if is_path else words[0]
    try:
        return setting.check(key, setting.type(words[0]))
    except ValueError as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{key} is {TYPE_NAMES[setting.type]}, not {words[0]!r}") from None


def write_setting(key: str, value: Any | None) -> None:
    """Write a setting into the file, or remove it with None; the other lines stay."""
    path = find_config_file()
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if value is None and key not in parse_toml(text):
        get_setting(key)  # raises, if it is none
    expected = {name: old for name, old in parse_toml(text).items() if name != key}
    line = re.compile(rf"(?m)^[ \t]*{re.escape(key)}[ \t]*=.*(?:\n|\Z)")
    if value is None:
        new_text = line.sub("", text, count=1)
    else:
        expected[key] = value
        assignment = f"{key} = {format_toml(value)}\n"
        new_text = line.sub(lambda _: assignment, text, count=1)
        if not line.search(text):
            gap = "" if not text or text.endswith("\n") else "\n"
            new_text = f"{text}{gap}{assignment}"
    try:
        is_changed = parse_toml(new_text) == expected
    except ValueError:
        is_changed = False
    if not is_changed:  # a value of several lines, or a table
        raise ConfigError(f"{key} cannot be changed here without other lines; edit {path} by hand")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replace_file(path) as file:
        file.write(new_text.encode("utf-8"))


def format_toml(value: Any) -> str:
    """Format a value as TOML, whose strings and numbers are written as in JSON."""
    import json

    return json.dumps(value).replace("\x7f", "\\u007f")
