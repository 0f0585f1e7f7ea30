"""A new kind needs only one class and one line of its table.

Shapes: b batch, n tokens or inputs, m queries, s slots, d width.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import text_files
import torch
from app_runs import run
from recipe_runs import train, write_recipe
from torch import Tensor, nn

from mnemic.data import DATASETS
from mnemic.data.contract import Names
from mnemic.data.text_tasks.batches import TextDataset
from mnemic.data.text_tasks.encode_windows import encode_labeled
from mnemic.data.text_tasks.examples import LabeledExample
from mnemic.data.text_tasks.splits import WindowFiles
from mnemic.encode import ATTENTIONS, ENCODERS
from mnemic.encode.embeddings import DEFAULT_EMBEDDINGS
from mnemic.encode.token_encoder import TokenEncoder
from mnemic.memory import MEMORIES, Reading
from mnemic.memory.append import AppendMemory, Slots
from mnemic.memory.selective import SelectiveMemory
from mnemic.models import StoryInputs, WindowBatch, build_model, check_model_parts
from mnemic.objectives import OBJECTIVES, CarriedState, Loss
from mnemic.recipe import ConfigError, load_recipe
from mnemic.respond import RESPONSES
from mnemic.respond.contract import Response
from mnemic.text import Tokenizer

SIZES = {"vocab": 12, "classes": 3, "max_length": 6}


class RunningMeanEncoder(TokenEncoder):
    """Average the embeddings of a token and of all tokens before it."""

    def __init__(self, width: int, vocab: int, *, embeddings: Mapping[str, Any] = DEFAULT_EMBEDDINGS) -> None:
        super().__init__(width, vocab, embeddings)

    @property
    def is_causal(self) -> bool:
        return True

    def forward(self, tokens: Tensor, mask: Tensor, context: None = None) -> Tensor:
        """Encode tokens: b n → b n d."""
        states = self.embeddings(tokens, mask).cumsum(1) / mask.cumsum(1).clamp(min=1).unsqueeze(-1)
        return states * mask.unsqueeze(-1)


class FirstWord(nn.Module):
    """Encode a text as the vector of its first word, for a memory."""

    reads_texts = True

    def __init__(self, width: int, vocab: int, *, tables: int = 1) -> None:
        super().__init__()
        self.width = width
        self.tables = nn.ParameterList(torch.randn(vocab, width) * 0.1 for _ in range(tables))

    @property
    def words(self) -> nn.Parameter:
        return self.tables[0]

    def forward(self, tokens: Tensor, mask: Tensor, context: None = None) -> Tensor:
        """Encode texts: u w → u t d."""
        return torch.stack([nn.functional.embedding(tokens[:, 0], table) for table in self.tables], 1)


class MeanAttention(nn.Module):
    """Average all visible positions."""

    supports_packing = False
    dropout = 0.0

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, context: Tensor, mask: Tensor) -> Tensor:
        """Attend from ``x`` b n d to ``context`` b m d."""
        weights = mask[:, 0].to(x.dtype).expand(-1, x.shape[1], -1)  # b n m
        return self.out(weights @ context / weights.sum(-1, keepdim=True).clamp(min=1))


class MeanMemory(AppendMemory):
    """Append inputs; read the question and the mean of all of them."""

    def __init__(self, width: int, *, slots: int = 5) -> None:
        super().__init__()
        self.num_slots = slots
        self.out = nn.Linear(width, width)

    def read(
        self, state: Slots, query: Tensor, *, teacher_slots: Tensor | None = None, uniforms: Tensor | None = None
    ) -> Reading:
        """Read with ``query`` (b m 1 d)."""
        mask = state.mask.to(query.dtype)
        weights = (mask / mask.sum(1, keepdim=True).clamp(min=1)).unsqueeze(1).expand(-1, query.shape[1], -1)
        output = query[:, :, 0] + self.out(weights @ state.states[:, :, 0])
        return Reading(output, weights[:, None, None], weights[:, None, None])


class TextTopic(Response):
    """Score classes from the last real state."""

    source = "text"
    reads_segments = pools_text = True
    methods = ("classify",)

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.out = nn.Linear(width, classes)

    def forward(self, query: None, reading: Reading | None, states: Tensor, mask: Tensor) -> Tensor:
        """Score the classes, b c."""
        return self.out(states[:, -1])


class BiasedWord(Response):
    """Score words with a bias."""

    methods = ("ask_story",)

    def __init__(self, width: int, vocab: int) -> None:
        super().__init__()
        self.out = nn.Linear(width, vocab)

    def forward(self, query: Tensor, reading: Reading, states: Tensor, mask: Tensor) -> Tensor:
        """Score all words, b m v."""
        return self.out(reading.found)


class RenamedMemory(SelectiveMemory):
    """Keep what is worth most, under a name of its own."""

    when_full = "it is full"


class DistanceLoss:
    """Half the squared distance of the probabilities to the right class."""

    replaces = "classes"

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        probabilities = network(batch.inputs).logits.softmax(-1)  # w c, texts of one window each
        targets = nn.functional.one_hot(batch.targets, probabilities.shape[-1])
        return Loss((probabilities - targets).square().sum() / 2, torch.tensor(len(targets)), carried)


class SureLoss:
    """Minus the probability of the right answer."""

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        probabilities = network(batch.inputs).logits.softmax(-1)  # b 1 v
        return Loss(-probabilities.gather(-1, batch.answers.unsqueeze(-1)).sum(), torch.tensor(len(batch.answers)))


@dataclass(frozen=True, kw_only=True)
class MoodFiles(WindowFiles):
    """Texts whose last word is their class, one per line."""

    response: ClassVar[str] = "classes"
    objectives: ClassVar[Names] = ("classes",)
    files: ClassVar[str] = "mood"
    alternative: ClassVar[str] = "none"

    def read_file(self, path: Path) -> list[LabeledExample]:
        """Split the class off each line."""
        lines = path.read_text(encoding="utf-8").splitlines()
        return [LabeledExample(text, None, label) for text, label in (line.rsplit(" ", 1) for line in lines)]

    def list_texts(self, examples: Sequence[LabeledExample]) -> Iterable[str]:
        """List all texts."""
        return [example.text for example in examples]

    def list_labels(self, examples: Sequence[LabeledExample]) -> tuple[str, ...]:
        """List the classes."""
        return tuple(sorted({example.label for example in examples}))

    def count_outputs(self, labels: Sequence[str]) -> int:
        """Count the classes."""
        return len(labels)

    def encode(self, examples: Sequence[LabeledExample], tokenizer: Tokenizer, labels: Sequence[str]) -> TextDataset:
        """Encode examples as windows."""
        return encode_labeled(examples, tokenizer, self.window_options, labels=labels)


STORY = {"width": 8, "encode": {"kind": "bag"}, "memory": {"kind": "memn2n"}, "respond": {"kind": "word"}}
TEXT = {"width": 8, "encode": {"kind": "transformer"}, "respond": {"kind": "classes"}}
NEXT = TEXT | {"respond": {"kind": "next-token"}}
MEAN_STACK = {"kind": "transformer", "stack": {"kind": "encoder", "attention": {"kind": "new"}}}
SEGMENTS = TEXT | {"memory": {"kind": "selective"}, "segments": {}}
CASES: list[tuple[dict[str, Any], type, dict[str, Any]]] = [
    (ENCODERS, RunningMeanEncoder, TEXT | {"encode": {"kind": "new"}}),
    (ENCODERS, RunningMeanEncoder, NEXT | {"encode": {"kind": "new"}}),
    (ENCODERS, RunningMeanEncoder, SEGMENTS | {"encode": {"kind": "new"}}),
    (ENCODERS, FirstWord, STORY | {"encode": {"kind": "new"}}),
    (ATTENTIONS, MeanAttention, TEXT | {"encode": MEAN_STACK}),
    (MEMORIES, MeanMemory, STORY | {"memory": {"kind": "new"}}),
    (RESPONSES, TextTopic, TEXT | {"respond": {"kind": "new"}}),
    (RESPONSES, TextTopic, SEGMENTS | {"respond": {"kind": "new"}}),
    (RESPONSES, BiasedWord, STORY | {"respond": {"kind": "new"}}),
]


def make_batch(model: Mapping[str, Any]) -> tuple[Any, Tensor]:
    """Make inputs of four stories or windows, and their targets."""
    tokens = torch.randint(1, 12, (8, 6), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(tokens, dtype=torch.bool)
    if "memory" in model and "segments" not in model:
        return StoryInputs(tokens, mask, torch.arange(8).view(4, 2), torch.arange(4).view(4, 1)), tokens[:4, :1]
    windows = torch.arange(8).view(4, 2) if "segments" in model else None
    inputs = WindowBatch(tokens, mask, torch.zeros_like(tokens), mask, document_windows=windows)
    if model["respond"]["kind"] == "next-token":
        return inputs, tokens.roll(-1, 1)
    return inputs, (torch.arange(8) // 2 % 3)


@pytest.mark.parametrize(("table", "constructor", "model"), CASES)
def test_a_new_kind_is_built_checked_and_trained(
    table: dict[str, Callable[..., Any]], constructor: type, model: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(table, "new", constructor)
    torch.manual_seed(0)
    assert all(weight.is_meta for weight in check_model_parts(model, SIZES).parameters())
    network = build_model(model, SIZES)
    assert any(isinstance(module, constructor) for module in network.modules())
    inputs, targets = make_batch(model)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(inputs).logits.flatten(0, -2), targets.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]


def test_kinds_stand_only_where_their_attributes_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENCODERS, "new", FirstWord)
    with pytest.raises(ConfigError, match="no kind 'new' here"):
        build_model(TEXT | {"encode": {"kind": "new"}}, SIZES)
    monkeypatch.setitem(MEMORIES, "new", MeanMemory)
    with pytest.raises(ConfigError, match="no kind 'new' here; known kinds: blended, selective"):
        build_model(SEGMENTS | {"memory": {"kind": "new"}}, SIZES)
    monkeypatch.setitem(RESPONSES, "new", BiasedWord)
    with pytest.raises(ConfigError, match="a response of kind 'new' needs a memory"):
        build_model(TEXT | {"respond": {"kind": "new"}}, SIZES)
    monkeypatch.setattr(RunningMeanEncoder, "is_causal", False)
    monkeypatch.setitem(ENCODERS, "new", RunningMeanEncoder)
    with pytest.raises(ConfigError, match="words that this encoder has already read"):
        build_model(NEXT | {"encode": {"kind": "new"}}, SIZES)


NEW = {"kind": "new"}
STORIES = {"data": {"kind": "generated-babi", "tasks": [1], "count": 40}, "objective": {"kind": "answer"}}
TEXTS = {
    "data": {"kind": "classes", "length": 24, "overlap": 0, "tokenizer": {"kind": "wordpiece", "vocab": 100}},
    "objective": {"kind": "classes"},
}
STORY_CASES: list[tuple[dict[str, Any], type, dict[str, Any]]] = [
    (MEMORIES, MeanMemory, STORIES | {"model": STORY | {"memory": NEW}}),
    (ENCODERS, FirstWord, STORIES | {"model": STORY | {"encode": NEW}}),
    (RESPONSES, BiasedWord, STORIES | {"model": STORY | {"respond": NEW}}),
    (OBJECTIVES, SureLoss, STORIES | {"model": STORY, "objective": NEW}),
]
TEXT_CASES: list[tuple[dict[str, Any], type, dict[str, Any]]] = [
    (ENCODERS, RunningMeanEncoder, TEXTS | {"model": TEXT | {"encode": NEW}}),
    (ATTENTIONS, MeanAttention, TEXTS | {"model": TEXT | {"encode": MEAN_STACK}}),
    (RESPONSES, TextTopic, TEXTS | {"model": TEXT | {"respond": NEW}}),
    (OBJECTIVES, DistanceLoss, TEXTS | {"model": TEXT, "objective": NEW}),
    (DATASETS, MoodFiles, TEXTS | {"model": TEXT, "data": TEXTS["data"] | NEW}),
]
LONG = [
    'data={kind="long-recall", count=80, length=16, segments=2, where="first"}',
    'data.tokenizer={kind="wordpiece", vocab=400}', "model.width=16", 'model.memory={kind="new", slots=3}',
    'model.encode={kind="transformer", stack={kind="encoder", depth=1}}', 'model.respond={kind="predictor"}',
    'train.schedule={kind="constant"}', "train.matmul=float32",
]  # fmt: skip


@pytest.mark.parametrize(("table", "constructor", "recipe"), STORY_CASES)
def test_a_new_kind_of_story_network_is_asked(
    table: dict[str, Any], constructor: type, recipe: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(table, "new", constructor)
    model = train(tmp_path, recipe)
    story = ("--sentence", "Mary went to the garden.", "--sentence", "John went to the office.")
    answer = run("story", "ask", "--model", model, *story, "Where is Mary?", "--json")
    assert answer.code == 0, answer.err
    assert [row["text"] for row in answer.json["evidence"]] == [*story[1::2]]
    assert "hop 1" in run("story", "ask", "--model", model, *story, "Where is Mary?").out


@pytest.mark.parametrize(("table", "constructor", "recipe"), TEXT_CASES)
def test_a_new_kind_of_text_network_predicts(
    table: dict[str, Any], constructor: type, recipe: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(table, "new", constructor)
    text_files.classes(tmp_path, 40)
    if table is DATASETS:
        rows = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text().splitlines()]
        (tmp_path / "train.jsonl").unlink()
        (tmp_path / "train.txt").write_text("\n".join(f"{row['text']} {row['label']}" for row in rows))
    refused = run("train", write_recipe(tmp_path, recipe), "--out", tmp_path / "none")
    assert f"learns from {'mood' if table is DATASETS else 'text'} files" in refused.err
    model = train(tmp_path, recipe, "--data", tmp_path)
    predicted = run("predict", "--model", model, "--device", "cpu", stdin="a lovely house\n")
    assert predicted.code == 0, predicted.err
    assert set(json.loads(predicted.out)["ranked"]) == {"good", "bad"}


def test_a_new_kind_of_carried_memory_reads_a_text_and_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(MEMORIES, "new", RenamedMemory)
    recipe = load_recipe("bert-mass", LONG)
    recipe.pop("phases", None)
    model = train(tmp_path, recipe | {"objective": {"kind": "bert-mass", "ctrl": 0.3, "read": 0.1}})
    (tmp_path / "text.txt").write_text("Mary went to the garden. John went to the office. Ann is in the hall.")
    read = run("text", "read", tmp_path / "notes.mem", "--model", model, tmp_path / "text.txt")
    assert read.code == 0, read.err
    answer = run("text", "ask", tmp_path / "notes.mem", "Where is Mary?")
    assert answer.code == 0, answer.err
    assert "all 3 slots are filled: it is full" in answer.err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objective": NEW}, "objective.kind is 'new', but data of kind 'classes' needs 'classes'"),
        ({"model": TEXT | {"respond": {"kind": "tags"}}}, "model.respond.kind is 'tags', but data of kind 'classes'"),
        ({"data": TEXTS["data"] | {"labels": "numbers"}}, "but data of kind 'classes' needs 'numbers'"),
    ],
)
def test_a_response_or_objective_for_other_data_is_refused(
    changes: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(OBJECTIVES, "new", SureLoss)
    recipe = write_recipe(tmp_path, TEXTS | {"model": TEXT} | changes)
    refused = run("train", recipe, "--data", tmp_path, "--out", tmp_path / "run")
    assert refused.code == 2
    assert message in refused.err
