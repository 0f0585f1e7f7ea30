"""Scenes with captions, to align the words of the latter with regions of the former.

Shapes: e scenes, b scenes of a batch, m words of the longest caption.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from mnemic.data.contract import Names, Split
from mnemic.data.pictures.batches import SceneDataset, make_scene_dataset
from mnemic.data.pictures.dataset import GeneratedScenes
from mnemic.models.picture_inputs import PictureInputs
from mnemic.text import Tokenizer, WordTokenizer


class AlignmentBatch(NamedTuple):
    """A batch of pictures with their captions."""

    inputs: PictureInputs
    caption_ids: Tensor  # b; captions that say the same have one number
    objects: Tensor  # b m, the object that each word names; NO_OBJECT


@dataclass(frozen=True, kw_only=True)
class AlignmentDataset(SceneDataset):
    """Pictures of scenes with their captions, to be ranked."""

    metrics: ClassVar[str] = "alignment"
    caption_ids: Tensor  # e

    def batch(  # type: ignore[override]
        self, rows: Tensor, uniforms: Tensor | None = None, *, compact: bool = True, max_length: int | None = None
    ) -> AlignmentBatch:
        """Return the scenes ``rows`` (b), captions without marks of their ends."""
        lengths = self.lengths[rows] - 1
        width = int(lengths.max()) if compact and len(rows) else self.words.shape[1] - 2
        words = self.words[rows][:, 1 : width + 1].long()
        mask = torch.arange(width, device=words.device) < lengths.unsqueeze(1)
        inputs = PictureInputs(self.read_pictures(rows), words * mask, mask)
        return AlignmentBatch(inputs, self.caption_ids[rows], self.word_objects[rows][:, 1 : width + 1].long())


@dataclass(frozen=True, kw_only=True)
class AlignedScenes(GeneratedScenes):
    """Generated pictures of one to four shapes, to be found by their captions.

    And the reverse. The options are those of ``scenes``.
    """

    response: ClassVar[str] = "alignment"
    objectives: ClassVar[Names] = ("alignment",)
    suggestions: ClassVar[Names] = ("evaluate {run}",)

    def dataset(self, split: Split, tokenizer: Tokenizer, labels: Sequence[str] = ()) -> AlignmentDataset:
        """Generate and encode one split."""
        assert isinstance(tokenizer, WordTokenizer)
        scenes = make_scene_dataset(self.read_split(split), tokenizer)
        numbers: dict[tuple[int, ...], int] = {}
        ids = [numbers.setdefault(tuple(words), len(numbers)) for words in scenes.words.tolist()]
        return AlignmentDataset(**vars(scenes), caption_ids=torch.tensor(ids, dtype=torch.long))
