"""Describe scenes by a grammar; report which object each word names.

caption → object, or object relation caption; object → "a" size color shape. Objects are named in
reading order, so that a scene has one caption: the next object is on the same row, and the
relation "left of", or below, and the relation "above".
"""

from typing import NamedTuple

from mnemic.data.pictures.scenes import MAX_OBJECTS, Scene, SceneObject

NO_OBJECT = -1  # what words such as "a" and "above" name
MAX_WORDS = 4 * MAX_OBJECTS + 2 * (MAX_OBJECTS - 1)


class Caption(NamedTuple):
    """The words of a caption, and which object each of them names."""

    words: tuple[str, ...]
    objects: tuple[int, ...]  # positions in the scene; NO_OBJECT for words that name none

    @property
    def text(self) -> str:
        """The words as one text."""
        return " ".join(self.words)


def describe_scene(scene: Scene) -> Caption:
    """Describe a scene.

    >>> from mnemic.data.pictures.scenes import generate_scenes
    >>> caption = describe_scene(generate_scenes("test", 1, seed=0)[0])
    >>> caption.text
    'a large purple triangle above a small purple ring'
    >>> caption.objects
    (-1, 0, 0, 0, -1, -1, 1, 1, 1)
    """
    words: list[str] = []
    objects: list[int] = []
    for number, item in enumerate(scene):
        relation = relate(scene[number - 1], item) if number else []
        words += [*relation, "a", item.size, item.color, item.shape]
        objects += [NO_OBJECT] * (len(relation) + 1) + [number] * 3
    return Caption(tuple(words), tuple(objects))


def relate(first: SceneObject, second: SceneObject) -> list[str]:
    """Say where an object is, seen from the next one in reading order."""
    return ["left", "of"] if first.row == second.row else ["above"]
