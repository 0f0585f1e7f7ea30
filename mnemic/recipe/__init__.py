"""From a recipe (TOML) to parts: one loader, dotted overrides, and the one factory ``build``.

A recipe is a plain dictionary with a few known sections. It holds only what differs from the
parts' defaults; a constructor's typed keyword arguments are its schema. Every mistake of the
user raises ``ConfigError``, which says where it is, what came and what would be right.
"""

from mnemic.recipe.build import build as build
from mnemic.recipe.build import fill as fill
from mnemic.recipe.build import fits as fits
from mnemic.recipe.build import hints as hints
from mnemic.recipe.build import named as named
from mnemic.recipe.build import whole as whole
from mnemic.recipe.errors import ConfigError as ConfigError
from mnemic.recipe.errors import count_of as count_of
from mnemic.recipe.errors import listed as listed
from mnemic.recipe.errors import near as near
from mnemic.recipe.errors import spoken as spoken
from mnemic.recipe.load import CHANGED as CHANGED
from mnemic.recipe.load import RECIPES as RECIPES
from mnemic.recipe.load import SECTIONS as SECTIONS
from mnemic.recipe.load import about as about
from mnemic.recipe.load import assignment as assignment
from mnemic.recipe.load import check_sections as check_sections
from mnemic.recipe.load import find as find
from mnemic.recipe.load import load as load
from mnemic.recipe.load import names as names
from mnemic.recipe.load import override as override
from mnemic.recipe.load import read as read
from mnemic.recipe.merge import Recipe as Recipe
from mnemic.recipe.merge import merge as merge
