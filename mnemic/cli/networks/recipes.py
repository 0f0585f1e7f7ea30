"""``mnemic recipes``: list the shipped recipes, or show one with all its options."""

from typing import Annotated, Any

from mnemic.cli import options as opt
from mnemic.cli.render.console import Styled, print_json, print_table, print_text
from mnemic.recipe import load_recipe, recipe_comment, recipe_names
from mnemic.recipe.to_toml import format_toml, format_value


def recipes(
    name: Annotated[str | None, opt.Argument("RECIPE", "The recipe to show: a name or a .toml file.")] = None,
) -> None:
    """List the recipes of published systems, or show one with all its options.

    Example: mnemic recipes memn2n
    """
    if name is None:
        list_recipes()
    else:
        show_recipe(name)


def list_recipes() -> None:
    """Print all recipes with their paper and published score."""
    comments = {name: recipe_comment(name) for name in recipe_names()}
    print_json({"recipes": [{"name": name, "about": text} for name, text in comments.items()]})
    rows = [row for name, text in comments.items() for row in ([Styled(name, "bold"), text], None)]
    print_table(["recipe", "paper and published score"], rows)
    print_text("one whole: mnemic recipes NAME    to train it: mnemic train NAME", style="dim")


def show_recipe(name: str) -> None:
    """Print a recipe with its comment and all its options."""
    from mnemic.cli.networks.schema import list_options
    from mnemic.recipe import load_task_settings, recipe_comment

    recipe, text = load_recipe(name), recipe_comment(name)
    options = list_options(recipe)
    if tasks := load_task_settings(name):
        recipe = recipe | {"tasks": tasks}
    print_json({"name": name, "about": text, "recipe": recipe, "options": options})
    print_text("\n".join(f"# {line}" for line in text.splitlines()), style="dim")
    print_text(f"\n{format_toml(recipe)}")
    rows: list[list[Any] | None] = []
    for option in options:
        if option["option"].endswith((".kind", "train.epochs")):
            rows.append(None)
        default, value = (format_value(option[key]) if key in option else "" for key in ("default", "value"))
        rows.append([option["option"], option["takes"], default, Styled(value, "bold")])
    print_table(["option", "takes", "default", "here"], rows)
    print_text("to change some: mnemic train NAME --set OPTION=VALUE", style="dim")
