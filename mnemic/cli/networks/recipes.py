"""``mnemic recipes``: list the shipped recipes, or show one with all its options."""

from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from mnemic.cli.options import JsonOption
from mnemic.cli.render.console import get_stdout, print_json


def recipes(
    name: Annotated[str | None, typer.Argument(help="The recipe to show: a name or a .toml file.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the recipes of published systems, or show one with all its options.

    Example: mnemic recipes memn2n
    """
    if name is None:
        list_recipes(as_json)
    else:
        show_recipe(name, as_json)


def list_recipes(as_json: bool) -> None:
    """Print all recipes with their paper and published score."""
    from mnemic.recipe import recipe_comment, recipe_names

    comments = {name: recipe_comment(name) for name in recipe_names()}
    if as_json:
        print_json({"recipes": [{"name": name, "about": text} for name, text in comments.items()]})
        return
    table = Table("recipe", "paper and published score", header_style="bold", show_lines=True)
    for name, text in comments.items():
        table.add_row(f"[bold]{escape(name)}", escape(text))
    screen = get_stdout()
    screen.print(table)
    screen.print("one whole: mnemic recipes NAME    to train it: mnemic train NAME", style="dim")


def show_recipe(name: str, as_json: bool) -> None:
    """Print a recipe with its comment and all its options."""
    from mnemic.cli.networks.schema import list_options
    from mnemic.recipe import load_recipe, load_task_settings, recipe_comment
    from mnemic.recipe.to_toml import format_toml

    recipe, text = load_recipe(name), recipe_comment(name)
    options = list_options(recipe)
    if tasks := load_task_settings(name):
        recipe = recipe | {"tasks": tasks}
    if as_json:
        print_json({"name": name, "about": text, "recipe": recipe, "options": options})
        return
    screen = get_stdout()
    for line in text.splitlines():
        screen.print(f"# {line}", style="dim", markup=False, soft_wrap=True)
    screen.print(f"\n{format_toml(recipe)}", markup=False, soft_wrap=True)
    screen.print(build_options_table(options))
    screen.print("to change some: mnemic train NAME --set OPTION=VALUE", style="dim", markup=False)


def build_options_table(options: list[dict[str, Any]]) -> Table:
    """Build a table of options, with one section per part of the recipe."""
    from mnemic.recipe.to_toml import format_value

    def format_field(option: dict[str, Any], key: str) -> str:
        return escape(format_value(option[key])) if key in option else ""

    table = Table("option", "takes", "default", "here", header_style="bold")
    table.columns[0].overflow = "fold"  # users copy it to --set
    for option in options:
        if option["option"].endswith((".kind", "train.epochs")):
            table.add_section()
        table.add_row(
            escape(option["option"]),
            escape(option["takes"]),
            format_field(option, "default"),
            f"[bold]{format_field(option, 'value')}",
        )
    return table
