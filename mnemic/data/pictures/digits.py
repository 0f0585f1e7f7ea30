"""Handwritten digits of scikit-learn: 1,797 pictures of 8×8 pixels in ten classes.

Shapes: e pictures, b pictures of a batch, y rows and x columns of pixels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from mnemic.data.batches import TensorDataset
from mnemic.data.contract import DataSource, Layout, LoadedData, Names, Split
from mnemic.models.picture_inputs import PictureInputs
from mnemic.recipe import ConfigError
from mnemic.text import Tokenizer, WordTokenizer

DIGITS = tuple(map(str, range(10)))
BRIGHTEST = 16.0  # of scikit-learn's pixels
NUM_TEST, NUM_VALIDATION = 360, 180  # of 1,797; the rest is for training


class PictureClassBatch(NamedTuple):
    """A batch of pictures, and the class of each."""

    inputs: PictureInputs
    targets: Tensor  # b, class numbers
    owner: Tensor  # b, the number of each picture in the batch


@dataclass(frozen=True, kw_only=True)
class PictureClassDataset(TensorDataset):
    """Pictures with classes on one device."""

    metrics: ClassVar[str] = "picture-classes"
    metric: ClassVar[str] = "accuracy"  # that selects the best weights
    num_unknown: ClassVar[int] = 0
    labels: tuple[str, ...]
    pictures: Tensor  # e 1 y x, from 0 to 1
    targets: Tensor  # e

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def lengths(self) -> Tensor:
        """Return the length of each example: all pictures have one size."""
        return torch.ones_like(self.targets)

    @property
    def token_counts(self) -> Tensor:
        """Return the pictures read and the pictures of each example, e 2: one."""
        return self.lengths.unsqueeze(1).expand(-1, 2)

    def batch(
        self, rows: Tensor, uniforms: Tensor | None = None, *, compact: bool = True, max_length: int | None = None
    ) -> PictureClassBatch:
        """Return the pictures ``rows`` (b)."""
        owner = torch.arange(len(rows), device=rows.device)
        return PictureClassBatch(PictureInputs(self.pictures[rows], uniforms=uniforms), self.targets[rows], owner)


@dataclass(frozen=True, kw_only=True)
class DigitPictures(DataSource):
    """Handwritten digits that come with scikit-learn, which must be installed.

    A hash of the pixels decides the split of a picture, for any seed.
    """

    layout: ClassVar[Layout] = "pictures"
    response: ClassVar[str] = "classes"
    objectives: ClassVar[Names] = ("classes",)
    suggestions: ClassVar[Names] = ("evaluate {run}",)
    input_description: ClassVar[str] = "looks at pictures"

    def load(self) -> LoadedData[PictureClassDataset]:
        """Read all splits; the vocabulary is the digits."""
        tokenizer = WordTokenizer.from_texts([" ".join(DIGITS)])
        train, validation, test = (self.dataset(split, tokenizer) for split in ("train", "validation", "test"))
        sizes = {"vocab": len(tokenizer), "max_length": 1, "classes": len(DIGITS), "channels": 1, "side": 8}
        return LoadedData(tokenizer, sizes, train, validation, test, labels=DIGITS)

    def dataset(self, split: Split, tokenizer: Tokenizer, labels: Sequence[str] = DIGITS) -> PictureClassDataset:
        """Read one split."""
        pictures, targets = self.read_split(split)
        return PictureClassDataset(labels=DIGITS, pictures=pictures, targets=targets)

    def read_split(self, split: Split) -> tuple[Tensor, Tensor]:
        """Read the pictures (e 1 y x) and classes (e) of one split."""
        pictures, targets = load_digits()
        keys = [sha256(picture.numpy().tobytes()).digest() for picture in pictures]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        bounds = {"test": (0, NUM_TEST), "validation": (NUM_TEST, NUM_TEST + NUM_VALIDATION),
                  "train": (NUM_TEST + NUM_VALIDATION, len(order))}  # fmt: skip
        rows = torch.tensor(order[slice(*bounds[split])])
        return pictures[rows], targets[rows]


def load_digits() -> tuple[Tensor, Tensor]:
    """Load scikit-learn's digits: pictures e 1 y x from 0 to 1, and classes e."""
    try:
        from sklearn import datasets
    except ImportError:
        raise ConfigError(
            "data of kind digits comes with scikit-learn, which is not installed: pip install 'mnemic[pictures]'"
        ) from None
    digits = datasets.load_digits()
    return torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / BRIGHTEST, torch.tensor(digits.target).long()
