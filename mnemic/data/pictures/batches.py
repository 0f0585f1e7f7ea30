"""Dataset of scenes with captions, as tensors on one device, and its batches.

Shapes: e scenes, b scenes of a batch, m words of the longest caption, o objects (4), c colors (3),
y rows and x columns of pixels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from mnemic.data.batches import TensorDataset
from mnemic.data.language_modeling.batches import END
from mnemic.data.pictures.captions import NO_OBJECT, describe_scene
from mnemic.data.pictures.draw import draw_scenes
from mnemic.data.pictures.scenes import COLORS, MAX_OBJECTS, SHAPES, SIDE, SIZES, Scene
from mnemic.models.inputs import IGNORE
from mnemic.models.picture_inputs import PictureInputs
from mnemic.text import WordTokenizer

ATTRIBUTES = (SHAPES, COLORS, SIZES)  # of an object, in the order of ``SceneObjects.attributes``


class SceneObjects(NamedTuple):
    """The objects of scenes, in reading order: what a detector should find."""

    boxes: Tensor  # e o 4, corners as shares of the picture's side: x1 y1 x2 y2
    attributes: Tensor  # e o 3, indices of shape, color and size in ATTRIBUTES
    mask: Tensor  # e o, True = an object


class CaptionBatch(NamedTuple):
    """A batch of pictures with the words so far, and the words to predict."""

    inputs: PictureInputs
    targets: Tensor  # b m, the next word of each word, END after the last; IGNORE after that
    objects: Tensor  # b m, the object that each target names; NO_OBJECT


@dataclass(frozen=True, kw_only=True)
class SceneDataset(TensorDataset):
    """Pictures of scenes with their captions on one device."""

    metrics: ClassVar[str] = "captions"
    metric: ClassVar[str] = "exact"  # that selects the best weights
    num_unknown: ClassVar[int] = 0  # any caption can be generated
    scenes: Sequence[Scene]
    tokenizer: WordTokenizer
    pictures: Tensor  # e c y x, bytes
    words: Tensor  # e m+1, the caption between two END; padded with 0
    word_objects: Tensor  # e m+1, the object that each word names; NO_OBJECT
    lengths: Tensor  # e, words of a caption with one END
    objects: SceneObjects

    def __len__(self) -> int:
        return len(self.pictures)

    @property
    def token_counts(self) -> Tensor:
        """Return the words read and the words of each caption, e 2: the same numbers."""
        return self.lengths.unsqueeze(1).expand(-1, 2)

    @property
    def end_id(self) -> int:
        """The word before and after each caption."""
        return self.tokenizer.id_of(END)

    def batch(
        self, rows: Tensor, uniforms: Tensor | None = None, *, compact: bool = True, max_length: int | None = None
    ) -> CaptionBatch:
        """Return the scenes ``rows`` (b), padded to the longest caption among them."""
        lengths = self.lengths[rows]
        width = int(lengths.max()) if compact and len(rows) else max_length or self.words.shape[1] - 1
        words = self.words[rows][:, : width + 1].long()
        is_word = torch.arange(width, device=words.device) < lengths.unsqueeze(1)  # b m
        inputs = PictureInputs(self.read_pictures(rows), words[:, :-1] * is_word, is_word, uniforms)
        targets = words[:, 1:].masked_fill(~is_word, IGNORE)
        return CaptionBatch(inputs, targets, self.word_objects[rows][:, 1 : width + 1].long())

    def read_pictures(self, rows: Tensor) -> Tensor:
        """Return the pictures ``rows`` (b) as numbers from 0 to 1."""
        return self.pictures[rows].float() / 255

    def select(self, rows: Tensor) -> "SceneDataset":
        """Return a dataset of some scenes."""
        tensors = {name: getattr(self, name)[rows] for name in ("pictures", "words", "word_objects", "lengths")}
        objects = SceneObjects(*(tensor[rows] for tensor in self.objects))
        return replace(self, scenes=[self.scenes[int(row)] for row in rows], objects=objects, **tensors)


def make_scene_dataset(scenes: Sequence[Scene], tokenizer: WordTokenizer) -> SceneDataset:
    """Draw scenes and encode their captions."""
    captions = [describe_scene(scene) for scene in scenes]
    end_id = tokenizer.id_of(END)
    width = 2 + max((len(caption.words) for caption in captions), default=0)
    words = torch.full((len(scenes), width), tokenizer.pad, dtype=torch.short)
    word_objects = torch.full_like(words, NO_OBJECT)
    for row, (caption, ids) in enumerate(zip(captions, tokenizer.encode_batch([item.text for item in captions]))):
        words[row, : len(ids) + 2] = torch.tensor([end_id, *ids, end_id])
        word_objects[row, 1 : len(ids) + 1] = torch.tensor(caption.objects)
    return SceneDataset(
        scenes=scenes,
        tokenizer=tokenizer,
        pictures=draw_scenes(scenes),
        words=words,
        word_objects=word_objects,
        lengths=torch.tensor([len(caption.words) + 1 for caption in captions]),
        objects=encode_objects(scenes),
    )


def encode_objects(scenes: Sequence[Scene]) -> SceneObjects:
    """Encode the objects of scenes, padded to the most that a scene can have."""
    boxes = torch.zeros(len(scenes), MAX_OBJECTS, 4)
    attributes = torch.zeros(len(scenes), MAX_OBJECTS, len(ATTRIBUTES), dtype=torch.long)
    mask = torch.zeros(len(scenes), MAX_OBJECTS, dtype=torch.bool)
    for row, scene in enumerate(scenes):
        for number, item in enumerate(scene):
            boxes[row, number] = torch.tensor(item.box) / SIDE
            values: tuple[Any, ...] = (item.shape, item.color, item.size)
            attributes[row, number] = torch.tensor([names.index(value) for names, value in zip(ATTRIBUTES, values)])
            mask[row, number] = True
    return SceneObjects(boxes, attributes, mask)
