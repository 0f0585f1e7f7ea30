"""Declare the options of a command, for both parsers.

A command is a typed function: ``Annotated[int, Option("--limit, -n N", "…")]`` declares an option,
``Argument`` a word without a name. ``typer_app`` and ``plain_parser`` build their parsers from it.
"""

from typing import NamedTuple


class Option(NamedTuple):
    """An option of a command."""

    spelling: str  # its names, and the name of its value: "--limit, -n N"
    help: str
    default_text: str = ""  # shown instead of the default
    envvar: str | None = None  # sets it where the command line does not
    minimum: int | None = None

    @property
    def names(self) -> list[str]:
        """The names, such as --limit and -n."""
        return [word.rstrip(",") for word in self.spelling.split() if word.startswith("-")]

    @property
    def metavar(self) -> str | None:
        """The name of the value; None: that of its type."""
        return " ".join(word for word in self.spelling.split() if not word.startswith("-")) or None


class Argument(NamedTuple):
    """A word of a command line that is no option."""

    metavar: str
    help: str
