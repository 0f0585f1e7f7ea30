"""Load recipes (TOML) and build the objects they describe.

A recipe is a plain dictionary with a few known sections. It holds only the options that differ
from the defaults; a constructor's typed keyword arguments are its schema. Every mistake of the
user raises ``ConfigError``, which says where it is, what came and what would be right.
"""

from mnemic.recipe.bounds import check_repeats as check_repeats
from mnemic.recipe.build import build as build
from mnemic.recipe.build import construct as construct
from mnemic.recipe.build import kind_name as kind_name
from mnemic.recipe.build import kind_of as kind_of
from mnemic.recipe.build import matches_type as matches_type
from mnemic.recipe.build import parameters_of as parameters_of
from mnemic.recipe.build import require_kinds as require_kinds
from mnemic.recipe.build import select_kinds as select_kinds
from mnemic.recipe.build import type_hints_of as type_hints_of
from mnemic.recipe.errors import ConfigError as ConfigError
from mnemic.recipe.errors import did_you_mean as did_you_mean
from mnemic.recipe.errors import join_words as join_words
from mnemic.recipe.errors import type_name as type_name
from mnemic.recipe.load import current_name_of as current_name_of
from mnemic.recipe.load import load_recipe as load_recipe
from mnemic.recipe.load import load_task_settings as load_task_settings
from mnemic.recipe.load import override as override
from mnemic.recipe.load import parse_assignment as parse_assignment
from mnemic.recipe.load import recipe_comment as recipe_comment
from mnemic.recipe.load import recipe_names as recipe_names
from mnemic.recipe.merge import Recipe as Recipe
from mnemic.recipe.merge import merge_recipes as merge_recipes
