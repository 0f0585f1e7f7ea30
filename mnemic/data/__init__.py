"""Loaders and generators of what networks learn from, one literal table of data sets."""

from collections.abc import Callable
from typing import Any

from mnemic.data.stories.dataset import generated_stories, story_folder

DATASETS: dict[str, Callable[..., Any]] = {
    "stories": story_folder,
    "generated": generated_stories,
}
