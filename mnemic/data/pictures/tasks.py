"""Several tasks about scenes, mixed by ratios: a batch is of one task.

Shapes: e scenes, b scenes or texts of a batch, m words of the longest text, o objects.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from mnemic.data.batches import TensorDataset
from mnemic.data.contract import SPLITS, LoadedData, Names, Sizes, Split
from mnemic.data.pictures.batches import ATTRIBUTES, encode_objects
from mnemic.data.pictures.dataset import SceneSource, make_scene_tokenizer
from mnemic.data.pictures.draw import draw_scenes
from mnemic.data.pictures.questions import ANSWERS
from mnemic.data.pictures.scenes import COLORS, SHAPES, SIDE, Pairs, Scene
from mnemic.data.pictures.task_texts import TRUTHS, TaskTexts, make_task_texts
from mnemic.models.pictures.task_network import TaskInputs
from mnemic.recipe import ConfigError
from mnemic.respond.pictures.detections import Boxes
from mnemic.respond.pictures.tasks import DETECTION, TASKS
from mnemic.text import Tokenizer, WordTokenizer

SHAPE, COLOR = ATTRIBUTES.index(SHAPES), ATTRIBUTES.index(COLORS)
TASK_CLASSES = {"detection": len(SHAPES), "questions": len(ANSWERS), "captions": len(TRUTHS), "reading": len(ANSWERS)}
READS_PICTURES = {"detection", "questions", "captions"}
MAX_TEXT = 32  # words of a caption with a question, and the task's token
EQUAL_RATIOS: Mapping[str, float] = dict.fromkeys(TASKS, 1.0)


class TaskBatch(NamedTuple):
    """A batch of one task, with the answers."""

    inputs: TaskInputs
    targets: Any  # b, class numbers; for detection Boxes


@dataclass(frozen=True, kw_only=True)
class TaskDataset(TensorDataset):
    """Scenes with the texts of all tasks on one device."""

    metrics: ClassVar[str] = "tasks"
    num_unknown: ClassVar[int] = 0
    num_uniforms: ClassVar[int] = 2  # of a row: for the task of the batch, and for a text of the scene
    pictures: Tensor  # e c y x, bytes
    boxes: Boxes
    texts: tuple[TaskTexts, ...]  # of each task but detection
    cumulative_ratios: Tensor  # of the tasks, cumulated

    def __len__(self) -> int:
        return len(self.pictures)

    @property
    def lengths(self) -> Tensor:
        """Return the length of each example: all pictures have one size."""
        return torch.ones(len(self), dtype=torch.long, device=self.device)

    @property
    def token_counts(self) -> Tensor:
        """Return the words read and the words of each text, t 2: the same numbers."""
        return torch.cat([texts.lengths for texts in self.texts]).unsqueeze(1).expand(-1, 2)

    @property
    def task_names(self) -> list[str]:
        """List the tasks that are trained."""
        shares = self.cumulative_ratios.diff(prepend=self.cumulative_ratios.new_zeros(1))
        return [name for name, share in zip(TASKS, shares) if share > 0]

    def batch(
        self, rows: Tensor, uniforms: Tensor | None = None, *, compact: bool = True, max_length: int | None = None
    ) -> TaskBatch:
        """Return the scenes ``rows`` (b) for one task, which the first uniform number selects."""
        numbers = torch.zeros(len(rows), 2) if uniforms is None else uniforms
        task = int((self.cumulative_ratios <= float(numbers[0, 0])).sum()) if len(rows) else DETECTION
        if task == DETECTION:
            return self.detection_batch(rows)
        texts = self.texts[task - 1]
        pick = (numbers[:, 1].to(texts.counts.device) * texts.counts[rows]).long()
        return self.text_batch(TASKS[task], texts.starts[rows] + pick, rows)

    def detection_batch(self, rows: Tensor) -> TaskBatch:
        """Return the pictures of scenes with their boxes."""
        boxes = Boxes(*(None if tensor is None else tensor[rows] for tensor in self.boxes))  # type: ignore[arg-type]
        return TaskBatch(TaskInputs(DETECTION, self.read_pictures(rows)), boxes)

    def text_batch(self, name: str, text_rows: Tensor, rows: Tensor) -> TaskBatch:
        """Return some texts of a task (b), with pictures if it reads them."""
        task = TASKS.index(name)
        texts = self.texts[task - 1]
        lengths = texts.lengths[text_rows]
        words = texts.words[text_rows, : int(lengths.max())].long()
        mask = torch.arange(words.shape[1], device=words.device) < lengths.unsqueeze(1)
        pictures = self.read_pictures(rows) if name in READS_PICTURES else None
        return TaskBatch(TaskInputs(task, pictures, words, mask), texts.targets[text_rows])

    def read_pictures(self, rows: Tensor) -> Tensor:
        """Return the pictures ``rows`` (b) as numbers from 0 to 1."""
        return self.pictures[rows].float() / 255


@dataclass(frozen=True, kw_only=True)
class SceneTasks(SceneSource):
    """Four tasks about generated scenes, for one network (as UniT has; Hu and Singh 2021).

    ``detection``: the box, shape and color of each object; ``questions`` about the picture that a
    word answers; ``captions``: is this one true?; ``reading``: a caption answers a question,
    without a picture. Each batch has one task; ``ratios`` says how often each is drawn, 0 for
    never. The other options are those of ``scenes``.
    """

    response: ClassVar[str] = "tasks"
    objectives: ClassVar[Names] = ("tasks",)
    suggestions: ClassVar[Names] = ("evaluate {run}",)
    ratios: Mapping[str, float] = field(default_factory=lambda: EQUAL_RATIOS)
    count: int = 10_000
    validation_size: int = 300
    test_size: int = 1_000
    test_pairs: Pairs = "seen"
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        values = list(self.ratios.values())
        if set(self.ratios) - set(TASKS) or not values or min(values) < 0 or not sum(values):
            raise ConfigError(f"data.ratios has a number from 0 on for {', '.join(TASKS)}, not {dict(self.ratios)}")

    def load(self) -> LoadedData[TaskDataset]:
        """Generate all splits."""
        tokenizer = make_scene_tokenizer()
        sizes: Sizes = {"vocab": len(tokenizer), "max_length": MAX_TEXT, "channels": 3, "side": SIDE}
        sizes |= {"task_classes": [TASK_CLASSES[task] for task in TASKS], "attributes": len(COLORS)}
        train, validation, test = (self.dataset(split, tokenizer) for split in SPLITS)
        return LoadedData(tokenizer, sizes, train, validation, test, labels=(*SHAPES, *COLORS))

    def dataset(self, split: Split, tokenizer: Tokenizer, labels: Sequence[str] = ()) -> TaskDataset:
        """Generate and encode one split."""
        assert isinstance(tokenizer, WordTokenizer)
        scenes: list[Scene] = self.read_split(split)
        ratios = torch.tensor([float(self.ratios.get(task, 0)) for task in TASKS])
        names = [task for task in TASKS if task != TASKS[DETECTION]]
        return TaskDataset(
            pictures=draw_scenes(scenes),
            boxes=make_boxes(scenes),
            texts=tuple(make_task_texts(name, scenes, tokenizer, split, self.seed) for name in names),
            cumulative_ratios=(ratios / ratios.sum()).cumsum(0).clamp(max=1),
        )


def make_boxes(scenes: Sequence[Scene]) -> Boxes:
    """Encode the objects of scenes: boxes by center and size, shapes as classes, colors beside."""
    objects = encode_objects(scenes)
    start, end = objects.boxes.split(2, -1)
    boxes = torch.cat([(start + end) / 2, end - start], -1)
    return Boxes(boxes, objects.attributes[..., SHAPE], objects.mask, objects.attributes[..., COLOR])
