"""Load the teachers of a recipe: trained networks that a student learns from.

``[teacher]`` names the folders of trained networks. They are frozen, and no checkpoint of the
student has them: they are read again when a run resumes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.checkpoint.folder import Checkpoint, find_checkpoint, load_checkpoint
from mnemic.data.contract import Data
from mnemic.recipe import ConfigError, Recipe, construct, join_words, kind_of
from mnemic.respond import RESPONSES


@dataclass(frozen=True, kw_only=True)
class TeacherSettings:
    """The keys of ``[teacher]``; several folders are several teachers."""

    folder: str | Sequence[str]  # of a run, a checkpoint, or a network that ships

    def __post_init__(self) -> None:
        if not self.folders or not all(self.folders):
            raise ConfigError(f"teacher.folder is the folder of a trained network, or a list, not {self.folder!r}")

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders of all teachers."""
        return (self.folder,) if isinstance(self.folder, str) else tuple(self.folder)


def load_teachers(recipe: Recipe, data: Data, device: torch.device) -> tuple[nn.Module, ...]:
    """Load the frozen teachers of a recipe; none if it has no ``[teacher]``."""
    if "teacher" not in recipe:
        return ()
    settings, teachers = construct(TeacherSettings, recipe["teacher"], name="teacher"), []
    for folder in settings.folders:
        try:
            checkpoint = load_checkpoint(Path(folder).expanduser())
        except CheckpointError as error:
            raise CheckpointError(f"teacher.folder: {error}") from None
        check_teacher(checkpoint, recipe, data, folder)
        teachers.append(checkpoint.network.eval().requires_grad_(False).to(device))
    return tuple(teachers)


def check_teacher(teacher: Checkpoint, recipe: Recipe, data: Data, folder: str) -> None:
    """Raise an error unless a teacher reads the student's data and answers alike."""
    methods, teacher_methods = (
        kind_of(RESPONSES, model["respond"]).methods for model in (recipe["model"], teacher.recipe["model"])
    )
    if methods != teacher_methods and {*methods}.isdisjoint(teacher_methods):
        raise ConfigError(
            f"the teacher {folder} is for {join_words(teacher_methods)}, the student for {join_words(methods)}: "
            "take a teacher that was trained on data of this kind"
        )
    if teacher.tokenizer != data.tokenizer:
        raise ConfigError(
            f"the teacher {folder} has another vocabulary than the student: "
            f'set data.tokenizer={{kind="stored", folder="{find_checkpoint(Path(folder).expanduser())}"}}'
        )
    outputs, teacher_outputs = (
        join_words(labels) or str(sizes.get("classes", "none"))
        for labels, sizes in ((data.labels, data.sizes), (teacher.labels, teacher.sizes))
    )
    if outputs != teacher_outputs:
        raise ConfigError(f"the teacher {folder} has the labels {teacher_outputs}, the data has {outputs}")
    limit, length = teacher.network.encode.max_length, data.sizes["max_length"]
    if limit is not None and length > limit:
        raise ConfigError(
            f"the teacher {folder} reads at most {limit} tokens, a window of the data has {length}: "
            f"set data.length={limit}"
        )
