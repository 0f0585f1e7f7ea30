"""A new kind needs only one class and one line of its table.

Shapes: b batch, n tokens or inputs, m queries, s slots, d width.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.encode import ATTENTIONS, ENCODERS
from mnemic.encode.embeddings import DEFAULT_EMBEDDINGS
from mnemic.encode.token_encoder import TokenEncoder
from mnemic.memory import MEMORIES, Reading
from mnemic.memory.append import AppendMemory, Slots
from mnemic.models import StoryInputs, WindowBatch, build_model, check_model_parts
from mnemic.recipe import ConfigError
from mnemic.respond import RESPONSES
from mnemic.respond.contract import Response

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
