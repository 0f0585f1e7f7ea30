"""``mnemic recipes``: what ships with the package, and what can be changed in it."""

from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from mnemic.cli.options import AsJson
from mnemic.cli.render.console import out, print_json


def recipes(
    name: Annotated[
        str | None, typer.Argument(help="Show this one whole: a name, or a .toml file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the published systems that can be trained, or show one with all its options.

    Example: mnemic recipes memn2n
    """
    if name is None:
        list_all(as_json)
    else:
        show(name, as_json)


def list_all(as_json: bool) -> None:
    from mnemic.recipe import about, names

    known = {name: about(name) for name in names()}
    if as_json:
        print_json({"recipes": [{"name": name, "about": text} for name, text in known.items()]})
        return
    table = Table("recipe", "paper and published score", header_style="bold", show_lines=True)
    for name, text in known.items():
        table.add_row(f"[bold]{escape(name)}", escape(text))
    screen = out()
    screen.print(table)
    screen.print("one whole: mnemic recipes NAME    to train it: mnemic train NAME", style="dim")


def show(name: str, as_json: bool) -> None:
    from mnemic.cli.networks.schema import schema
    from mnemic.recipe import about, load
    from mnemic.recipe.to_toml import toml_of

    recipe, text = load(name), about(name)
    options = schema(recipe)
    if as_json:
        print_json({"name": name, "about": text, "recipe": recipe, "options": options})
        return
    screen = out()
    for line in text.splitlines():
        screen.print(f"# {line}", style="dim", markup=False, soft_wrap=True)
    screen.print(f"\n{toml_of(recipe)}", markup=False, soft_wrap=True)
    screen.print(options_table(options))
    screen.print("to change some: mnemic train NAME --set OPTION=VALUE", style="dim", markup=False)


def options_table(options: list[dict[str, Any]]) -> Table:
    """Every option with what it takes; a new section where a new part begins."""
    from mnemic.recipe.to_toml import value_of

    def spelled(option: dict[str, Any], key: str) -> str:
        return escape(value_of(option[key])) if key in option else ""

    table = Table("option", "takes", "default", "here", header_style="bold")
    table.columns[0].overflow = "fold"  # it is what must be typed
    for option in options:
        if option["option"].endswith((".kind", "train.epochs")):
            table.add_section()
        table.add_row(
            escape(option["option"]),
            escape(option["takes"]),
            spelled(option, "default"),
            f"[bold]{spelled(option, 'value')}",
        )
    return table
