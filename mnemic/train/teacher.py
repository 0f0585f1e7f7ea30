"""Load the teachers of a recipe: networks that a student learns from.

``[teacher]`` names the folders of trained networks, which are frozen, or describes one that learns
beside its student. No network that is saved, exported or shipped has them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.checkpoint.folder import Checkpoint, find_checkpoint, load_checkpoint
from mnemic.checkpoint.huggingface import is_huggingface_folder, load_classifier
from mnemic.data.contract import Data
from mnemic.objectives import OBJECTIVES
from mnemic.objectives.distillation.soft_ranking import is_cross_encoder
from mnemic.recipe import ConfigError, Recipe, construct, join_words, kind_name, kind_of, merge_recipes
from mnemic.respond import RESPONSES
from mnemic.text import SubwordTokenizer
from mnemic.train.initialize import initialize_network
from mnemic.train.phases import read_phases
from mnemic.train.sampler import make_generator


@dataclass(frozen=True, kw_only=True)
class TeacherSettings:
    """The keys of ``[teacher]``; several folders are several teachers.

    A teacher that ``learns`` has the student's ``[model]`` with the changes of ``model``, random
    weights, and the learning rate ``rate`` (0: the student's). ``data`` has the changes to the
    student's ``[data]`` by which teachers read more of each example.
    """

    folder: str | Sequence[str] = ""  # of a run, a checkpoint, a network that ships, or a classifier of Hugging Face
    learns: bool = False
    model: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    rate: float = 0.0

    def __post_init__(self) -> None:
        if self.learns and self.folder:
            raise ConfigError(
                "teacher.learns = true trains a new teacher: leave out teacher.folder, or set learns = false"
            )
        if not self.learns and (not self.folders or not all(self.folders)):
            raise ConfigError(
                f"teacher.folder is the folder of a trained network, or a list, not {self.folder!r}; "
                "teacher.learns = true trains one beside the student"
            )
        if not self.learns and (self.model or self.rate):
            raise ConfigError("teacher.model and rate are for a teacher that learns: set teacher.learns = true")
        if not self.rate >= 0:
            raise ConfigError(f"teacher.rate is a number from 0 on, not {self.rate}")

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders of all trained teachers."""
        return (self.folder,) if isinstance(self.folder, str) else tuple(self.folder)


def read_settings(recipe: Recipe) -> TeacherSettings | None:
    """Read ``[teacher]``; None if a recipe has none."""
    return construct(TeacherSettings, recipe["teacher"], name="teacher") if "teacher" in recipe else None


def load_teachers(recipe: Recipe, data: Data, device: torch.device, max_length: int = 0) -> tuple[nn.Module, ...]:
    """Load the frozen teachers of a recipe.

    There are none without ``[teacher]``, or with one that learns. ``max_length`` is that of the
    windows that teachers read; 0: the student's.
    """
    settings = read_settings(recipe)
    if settings is None or settings.learns:
        return ()
    objectives = [phase.recipe["objective"] for phase in read_phases(recipe)]
    ranks = any(getattr(kind_of(OBJECTIVES, objective), "ranks_texts", False) for objective in objectives)
    methods, teachers = kind_of(RESPONSES, recipe["model"]["respond"]).methods, []
    for folder in settings.folders:
        teacher = load_teacher(folder)
        ranks_passages = ranks and is_cross_encoder(teacher.network)
        if not ranks_passages:
            check_methods(methods, teacher, folder)
        check_inputs(teacher, data, folder, max_length or data.sizes["max_length"])
        if ranks_passages:
            check_cross_encoder(teacher, folder)
        else:
            check_labels(teacher, data, folder)
        teachers.append(teacher.network.eval().requires_grad_(False).to(device))
    for objective in objectives:
        check_roles(objective, teachers, ranks)
    return tuple(teachers)


def load_teacher(folder: str) -> Checkpoint:
    """Load a trained network: of mnemic, or a classifier in a Hugging Face folder."""
    path = Path(folder).expanduser()
    try:
        return load_classifier(path) if is_huggingface_folder(path) else load_checkpoint(path)
    except CheckpointError as error:
        raise CheckpointError(f"teacher.folder: {error}") from None


def check_methods(methods: Sequence[str], teacher: Checkpoint, folder: str) -> None:
    """Raise an error unless a teacher has one of the student's methods."""
    teacher_methods = kind_of(RESPONSES, teacher.recipe["model"]["respond"]).methods
    if tuple(methods) != tuple(teacher_methods) and {*methods}.isdisjoint(teacher_methods):
        raise ConfigError(
            f"the teacher {folder} is for {join_words(teacher_methods)}, the student for {join_words(methods)}: "
            "take a teacher that was trained on data of this kind"
        )


def check_labels(teacher: Checkpoint, data: Data, folder: str) -> None:
    """Raise an error unless a teacher has the labels of the data."""
    outputs, teacher_outputs = (
        join_words(labels) or str(sizes.get("classes", "none"))
        for labels, sizes in ((data.labels, data.sizes), (teacher.labels, teacher.sizes))
    )
    if outputs != teacher_outputs:
        hint = f"; name them so in id2label of {folder}/config.json" if is_huggingface_folder(Path(folder)) else ""
        raise ConfigError(f"the teacher {folder} has the labels {teacher_outputs}, the data has {outputs}{hint}")


def check_cross_encoder(teacher: Checkpoint, folder: str) -> None:
    """Raise an error unless a teacher scores a pair with one number."""
    if teacher.sizes.get("classes") != 1:
        raise ConfigError(
            f"the teacher {folder} has {teacher.sizes.get('classes')} classes; one that ranks has one output, a "
            "number: take a cross-encoder, or train one with bert-numbers"
        )


def check_inputs(teacher: Checkpoint, data: Data, folder: str, max_length: int) -> None:
    """Raise an error unless a teacher reads the data's tokens, in windows of this length."""
    if not have_same_ids(teacher.tokenizer, data.tokenizer):
        path = Path(folder).expanduser()
        stored = path if is_huggingface_folder(path) else find_checkpoint(path)
        raise ConfigError(
            f"the teacher {folder} has another vocabulary than the student: "
            f'set data.tokenizer={{kind="stored", folder="{stored}"}}'
        )
    limit = teacher.network.encode.max_length
    if limit is not None and max_length > limit:
        raise ConfigError(
            f"the teacher {folder} reads at most {limit} tokens, a window of the data has {max_length}: "
            f"set data.length={limit}"
        )


def have_same_ids(first: Any, second: Any) -> bool:
    """Whether two tokenizers give every text the same ids, however their files are written."""
    if first == second:
        return True
    return isinstance(first, SubwordTokenizer) and isinstance(second, SubwordTokenizer) and first.reads_like(second)


def check_roles(objective: Mapping[str, Any], teachers: Iterable[nn.Module], ranks: bool) -> None:
    """Raise an error if an objective lacks a teacher for its rankings, or wastes one.

    ``ranks``: an objective of some phase learns rankings.
    """
    kind, are_cross_encoders = kind_of(OBJECTIVES, objective), [is_cross_encoder(teacher) for teacher in teachers]
    if not getattr(kind, "ranks_texts", False):
        if ranks and getattr(kind, "needs_teacher", False) and any(are_cross_encoders):
            raise ConfigError(
                f"{kind_name(objective)} in one phase learns from no cross-encoder, distil-ranking in another does: "
                "set the same objective.kind in all phases, and its weight = 0 where it should not count"
            )
        return
    inner = objective["hard"]
    has_soft_labels = getattr(kind_of(OBJECTIVES, inner), "needs_teacher", False)
    if not any(are_cross_encoders):
        raise ConfigError(
            f"{kind_name(objective)} learns from a network that scores a question with a text, such as a "
            "cross-encoder: add its folder to teacher.folder"
        )
    if has_soft_labels and all(are_cross_encoders):
        raise ConfigError("objective.hard = distil learns from a reader, too: add its folder to teacher.folder")
    if not has_soft_labels and not all(are_cross_encoders):
        raise ConfigError(
            f"objective.hard of kind {kind_name(inner)!r} learns from no reader: make it distil, or leave the reader "
            "out of teacher.folder"
        )


def build_learning_teacher(settings: TeacherSettings, recipe: Recipe, data: Data, seed: int, max_length: int) -> Any:
    """Build the network of a teacher that learns, with random weights of its own."""
    model = merge_recipes(recipe["model"], settings.model)
    methods, teacher_methods = (kind_of(RESPONSES, spec["respond"]).methods for spec in (recipe["model"], model))
    if methods != teacher_methods:
        raise ConfigError(
            f"teacher.model is for {join_words(teacher_methods)}, the student for {join_words(methods)}: leave "
            "teacher.model.respond as in the student"
        )
    for phase in read_phases(recipe):
        objective = phase.recipe["objective"]
        if getattr(kind_of(OBJECTIVES, objective), "needs_trained_teacher", False):
            raise ConfigError(f"{kind_name(objective)} learns from trained networks: set teacher.folder, not learns")
    teacher_seed = make_generator(seed, "teacher").initial_seed() % 2**31
    return initialize_network(model, {**data.sizes, "max_length": max_length}, teacher_seed)
