"""Build the recipes of the table of students: of teachers and students."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mnemic.recipe import ConfigError, Recipe, load_recipe, override, parse_assignment
from mnemic.reproduce.student_tasks import StudentTask, TaskFiles
from mnemic.train.initialize import start_recipe_from

ARTICLES = (8, 32, 128)  # whose texts are a batch of a student that finds texts
RANKED_ARTICLES = 32  # of the student with a cross-encoder as teacher, which is slow
NETWORKS = {  # in the order of the table
    "teacher": "teacher",
    "alone": "student, labels only",
    "soft": "student, soft labels",
    "layers": "student, layers first",
    "ensemble": "student, several teachers",
    **{f"articles-{number}": f"student, texts of {number} articles" for number in ARTICLES},
    "cross-encoder": f"student, {RANKED_ARTICLES} articles and a cross-encoder",
    "baseline": "fasttext-classes",
}
LEARNING_KEYS = ("objective.", "phases.")  # of overrides for students with teachers alone
LAYERS_PHASE = {"objective": {"kind": "layers"}, "train": {"validate": 0, "keep": "last"}}
DEFAULT_HEADS = 4  # of a recipe that does not say


def build_teacher_recipe(task: StudentTask, files: TaskFiles, depth: int, start: str, sets: Sequence[str]) -> Recipe:
    """Build the recipe of a teacher.

    Without ``start`` it begins with random weights and has twice the ``depth`` of its student.
    """
    change = (
        partial(start_recipe_from, folder=Path(start).expanduser())
        if start
        else partial(override, key="model.encode.stack.depth", value=2 * depth)
    )
    settings = [*task.settings, *(task.start_settings if start else ())]
    recipe = load_recipe(task.recipe, [*settings, *sets], change=change)
    return use_files({key: value for key, value in recipe.items() if key != "pretrained"}, files)


def build_student_recipe(
    task: StudentTask, files: TaskFiles, teacher: Recipe, depth: int, width: int, sets: Sequence[str]
) -> Recipe:
    """Build the recipe of a student that learns alone.

    It has evenly spaced layers of the network that its teacher started from, or, where there is
    none or the widths differ, random weights and the settings for them.
    """
    teacher_width, encode = teacher["model"]["width"], teacher["model"]["encode"]
    check_sizes(encode.get("stack", {}), depth, width or teacher_width)
    if width in (0, teacher_width):
        return override(teacher, "model.encode.stack.depth", depth)
    recipe = use_files(load_recipe(task.recipe, [*task.settings, *sets]), files)
    recipe.pop("pretrained", None)
    for key, value in (("model.encode", encode), ("model.width", width), ("model.encode.stack.depth", depth)):
        recipe = override(recipe, key, value)
    if "inner" in encode["stack"]:
        recipe = override(recipe, "model.encode.stack.inner", 0)  # 4 · width
    return (
        override(recipe, "data.tokenizer", teacher["data"]["tokenizer"]) if "tokenizer" in teacher["data"] else recipe
    )


def add_teachers(student: Recipe, folders: Sequence[str], sets: Sequence[str], *, with_layers: bool = False) -> Recipe:
    """Return the recipe of a student that learns the soft labels of teachers.

    With ``with_layers`` it learns the layers of its teacher first. Of ``sets`` those of phases are
    for such students alone.
    """
    recipe = {
        **student,
        "objective": {"kind": "distil", "hard": student["objective"]},
        "teacher": {"folder": folders[0] if len(folders) == 1 else list(folders)},
        **({"phases": [LAYERS_PHASE, {}]} if with_layers else {}),
    }
    for key, value in map(parse_assignment, sets):
        if with_layers or not key.startswith("phases."):
            recipe = override(recipe, key, value)
    return recipe


def build_finder_recipes(student: Recipe, cross_encoder: str) -> dict[str, Recipe]:
    """Build the recipes of students that find texts, by network.

    They differ in the articles of a batch, whose texts are the negatives. One more learns the
    rankings of ``cross_encoder``, if it is named; without other trained weights all have its
    vocabulary.
    """
    if student["train"]["batch"] < max(ARTICLES):
        raise ConfigError(f"finding takes train.batch ≥ {max(ARTICLES)}: a step has no more articles than questions")
    if cross_encoder and "init_from" not in student["model"]:
        student = override(student, "data.tokenizer", {"kind": "stored", "folder": cross_encoder})
    recipes = {f"articles-{number}": override(student, "data.articles", number) for number in ARTICLES}
    if cross_encoder:
        recipes["cross-encoder"] = {
            **recipes[f"articles-{RANKED_ARTICLES}"],
            "objective": {"kind": "distil-ranking", "hard": student["objective"]},
            "teacher": {"folder": cross_encoder},
        }
    return recipes


def build_baseline_recipe(task: StudentTask, files: TaskFiles) -> Recipe:
    """Build the recipe of a baseline of words, which has its own settings."""
    settings = [text for text in task.settings if text.startswith("data.")]
    return use_files(load_recipe(NETWORKS["baseline"], [f"data.kind={task.baseline}", *settings]), files)


def use_files(recipe: Recipe, files: TaskFiles) -> Recipe:
    """Set the files of a recipe's data, whatever its overrides say."""
    names = {"folder": files.train.parent, "train_file": files.train.name, "test_file": files.dev.absolute()}
    if files.validation is not None:
        names["validation_file"] = files.validation.name
    return override(recipe, "data", {**recipe["data"], **{key: str(name) for key, name in names.items()}})


def check_sizes(stack: Mapping[str, Any], depth: int, width: int) -> None:
    """Raise an error unless a student's layers can learn from its teacher's."""
    if not isinstance(stack.get("depth"), int):
        raise ConfigError("the teacher of a table of students is a Transformer with layers: give --start a BERT")
    if not 1 <= depth <= stack["depth"] or stack["depth"] % depth:
        raise ConfigError(
            f"--depth {depth} does not divide the teacher's {stack['depth']} layers, so a student has none to learn "
            "from: give a divisor"
        )
    heads = stack.get("attention", {}).get("heads", DEFAULT_HEADS)
    if width % heads:
        raise ConfigError(
            f"--width {width} is no multiple of the {heads} attention heads that teacher and student have"
        )


def describe_start(student: Recipe) -> str:
    """Describe the weights that a student starts from."""
    model = student["model"]
    if "init_from" not in model:
        return "random weights"
    return f"{model['encode']['stack']['depth']} layers, evenly spaced, of {model['init_from']}"
