"""Kinds of data of pictures: generated scenes with captions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mnemic.data.contract import SPLITS, DataSource, Layout, LoadedData, Names, Split, check_count, check_minimum
from mnemic.data.language_modeling.batches import END
from mnemic.data.pictures.batches import SceneDataset, make_scene_dataset
from mnemic.data.pictures.captions import MAX_WORDS
from mnemic.data.pictures.questions import QUESTION_WORDS
from mnemic.data.pictures.scenes import COLORS, SHAPES, SIDE, SIZES, Pairs, Scene, generate_scenes
from mnemic.text import Tokenizer, WordTokenizer

CAPTION_WORDS = ("a", "above", "left", "of")


class SceneSource(DataSource):
    """Base of the kinds of generated scenes: generate a split and its vocabulary."""

    layout: ClassVar[Layout] = "pictures"
    input_description: ClassVar[str] = "looks at pictures"
    count: int
    validation_size: int
    test_size: int
    test_pairs: Pairs
    seed: int

    def __post_init__(self) -> None:
        for name in ("count", "validation_size", "test_size"):
            check_minimum(name, getattr(self, name), 1)
            check_count(name, getattr(self, name))

    def read_split(self, split: Split) -> list[Scene]:
        """Generate the scenes of one split."""
        count = {"train": self.count, "validation": self.validation_size, "test": self.test_size}[split]
        pairs = self.test_pairs if split == "test" else "seen"
        return generate_scenes(split, count, seed=self.seed, pairs=pairs)


@dataclass(frozen=True, kw_only=True)
class GeneratedScenes(SceneSource):
    """Generated pictures of one to four shapes, with captions.

    ``count``, ``validation_size`` and ``test_size`` are the scenes of training, validation and
    test. ``test_pairs = "held-out"``: each test scene has a pair of color and shape that training
    never shows.
    """

    response: ClassVar[str] = "caption"
    objectives: ClassVar[Names] = ("captions", "sampled-captions", "next-token")
    suggestions: ClassVar[Names] = ("evaluate {run}", "predict --model {run}")
    count: int = 10_000
    validation_size: int = 500
    test_size: int = 1_000
    test_pairs: Pairs = "seen"
    seed: int = 0

    def load(self) -> LoadedData[SceneDataset]:
        """Generate all splits."""
        tokenizer = make_scene_tokenizer()
        train, validation, test = (self.dataset(split, tokenizer) for split in SPLITS)
        return LoadedData(
            tokenizer,
            {"vocab": len(tokenizer), "max_length": MAX_WORDS + 1, "channels": 3, "side": SIDE},
            train,
            validation,
            test,
        )

    def dataset(self, split: Split, tokenizer: Tokenizer, labels: Sequence[str] = ()) -> SceneDataset:
        """Generate and encode one split."""
        assert isinstance(tokenizer, WordTokenizer)
        return make_scene_dataset(self.read_split(split), tokenizer)


def make_scene_tokenizer() -> WordTokenizer:
    """Make the vocabulary of captions and questions: all words of their grammars."""
    return WordTokenizer.from_texts([" ".join((*CAPTION_WORDS, *SHAPES, *COLORS, *SIZES, *QUESTION_WORDS))], (END,))
