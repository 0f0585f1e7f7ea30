"""Ask questions about scenes, with answers of one word and the object they are about."""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from mnemic.data.pictures.captions import NO_OBJECT
from mnemic.data.pictures.scenes import COLORS, HELD_OUT, MAX_OBJECTS, SHAPES, SIZES, Scene, SceneObject

NUMBERS = ("zero", "one", "two", "three", "four")
QUESTION_WORDS = (*NUMBERS, "what", "how", "many", "objects", "are", "there", "is", "the", "color", "shape", "size",
                  "right", "below", "yes", "no")  # fmt: skip
ANSWERS = (*COLORS, *SHAPES, *SIZES, *NUMBERS[1 : MAX_OBJECTS + 1], "yes", "no")


class SceneQuestion(NamedTuple):
    """A question about a scene, and its answer."""

    text: str
    answer: str  # one of ANSWERS
    object: int  # that the answer is read from; NO_OBJECT: it is about all of them


def ask_questions(scene: Scene, random: Random) -> list[SceneQuestion]:
    """Ask all questions that a scene answers without doubt, one of each type at most."""
    candidates = [list(ask(scene, random)) for ask in QUESTION_TYPES]
    return [random.choice(questions) for questions in candidates if questions]


def ask_number(scene: Scene, random: Random) -> Iterator[SceneQuestion]:
    """Ask how many objects there are."""
    yield SceneQuestion("how many objects are there", NUMBERS[len(scene)], NO_OBJECT)


def ask_color(scene: Scene, random: Random) -> Iterator[SceneQuestion]:
    """Ask for the color of the only object of a shape."""
    for number in find_unique(scene, lambda item: item.shape):
        yield SceneQuestion(f"what color is the {scene[number].shape}", scene[number].color, number)


def ask_shape(scene: Scene, random: Random) -> Iterator[SceneQuestion]:
    """Ask for the shape of the only object of a color."""
    for number in find_unique(scene, lambda item: item.color):
        yield SceneQuestion(f"what shape is {scene[number].color}", scene[number].shape, number)


def ask_size(scene: Scene, random: Random) -> Iterator[SceneQuestion]:
    """Ask for the size of the only object of a color and shape."""
    for number in find_unique(scene, lambda item: (item.color, item.shape)):
        yield SceneQuestion(f"what size is the {scene[number].color} {scene[number].shape}", scene[number].size, number)


def ask_neighbor(scene: Scene, random: Random) -> Iterator[SceneQuestion]:
    """Ask for the shape of the only object to one side of an object."""
    for number in find_unique(scene, lambda item: (item.color, item.shape)):
        anchor = scene[number]
        for relation, is_there in RELATIONS.items():
            neighbors = [index for index, item in enumerate(scene) if is_there(item, anchor)]
            if len(neighbors) == 1:
                text = f"what shape is {relation} the {anchor.color} {anchor.shape}"
                yield SceneQuestion(text, scene[neighbors[0]].shape, neighbors[0])


def ask_existence(scene: Scene, random: Random) -> Iterator[SceneQuestion]:
    """Ask whether there is an object of a color and shape; half are."""
    number = random.randrange(len(scene))
    color, shape = scene[number].color, scene[number].shape
    if random.random() < 0.5:
        yield SceneQuestion(f"is there a {color} {shape}", "yes", number)
        return
    pairs = {(item.color, item.shape) for item in scene}
    # Color or shape is in the scene, so that both have to be looked for. Pairs that training never
    # shows are not asked for: they would always be absent.
    similar = [(color, name) for name in SHAPES] + [(name, shape) for name in COLORS]
    color, shape = random.choice([pair for pair in similar if pair not in pairs | HELD_OUT])
    yield SceneQuestion(f"is there a {color} {shape}", "no", NO_OBJECT)


def find_unique(scene: Scene, key: Callable[[SceneObject], object]) -> list[int]:
    """Find the objects whose key no other object of the scene has."""
    keys = [key(item) for item in scene]
    return [number for number, value in enumerate(keys) if keys.count(value) == 1]


# Whether an object lies to one side of another one, on its row or in its column.
RELATIONS: dict[str, Callable[[SceneObject, SceneObject], bool]] = {
    "left of": lambda item, anchor: item.row == anchor.row and item.column < anchor.column,
    "right of": lambda item, anchor: item.row == anchor.row and item.column > anchor.column,
    "above": lambda item, anchor: item.column == anchor.column and item.row < anchor.row,
    "below": lambda item, anchor: item.column == anchor.column and item.row > anchor.row,
}
QUESTION_TYPES: Sequence[Callable[[Scene, Random], Iterator[SceneQuestion]]] = (
    ask_number, ask_color, ask_shape, ask_size, ask_neighbor, ask_existence,
)  # fmt: skip
