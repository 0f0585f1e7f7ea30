"""Input → Generalization → Output → Response, joined in one ``forward``.

Shapes: u texts, w words, b batch, n inputs, m queries, s slots, d width.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor, nn

from mnemic.encode import ENCODERS, WHOLE
from mnemic.memory import MEMORIES, Reading, Written
from mnemic.recipe import ConfigError, build, fits, listed
from mnemic.respond import RESPONSES

IGNORE = -100  # a target that is not asked for
PARTS = ("width", "encode", "memory", "respond")


class Inputs(NamedTuple):
    """What a network reads. Each different text stands in ``texts`` once, however often it is used.

    So nothing is computed for padding, and stories that share sentences share the work.
    """

    texts: Tensor  # u w, word ids
    mask: Tensor  # u w, True = a real word
    story: Tensor  # b n, rows of texts in the order they were said; -1 = nothing there
    question: Tensor  # b m, rows of texts
    rolls: Tensor | None = None  # b r, uniform random numbers while training


class Output(NamedTuple):
    """Scores of the answers, and everything that shows how they came about."""

    scores: Tensor  # b m v
    reading: Reading
    written: Written


class Network(nn.Module):
    """The four parts. Every memory network of the library is this class with other parts."""

    def __init__(self, encode: nn.Module, memory: Any, respond: nn.Module) -> None:
        super().__init__()
        self.encode = encode
        self.memory = memory
        self.respond = respond

    @property
    def rolls(self) -> int:
        """How many uniform random numbers an example needs while training."""
        return self.memory.rolls

    def forward(self, inputs: Inputs) -> Output:
        states = self.encode(inputs.texts, inputs.mask)  # u …
        seen = inputs.story >= 0  # b n
        story = take(states, inputs.story.clamp(min=0))  # b n …
        query = take(states, inputs.question)  # b m …
        empty = self.memory.empty(seen.shape[0], story)
        written = self.memory.write(empty, story, seen)
        reading = self.memory.read(written.state, query, rolls=inputs.rolls)
        return Output(self.respond(query, reading, story, seen), reading, written)


def take(states: Tensor, rows: Tensor) -> Tensor:
    """``states[rows]`` (u … → b n …), by the kind of indexing whose gradient is fastest."""
    return states.index_select(0, rows.flatten()).unflatten(0, rows.shape)


def assemble(model: Mapping[str, Any], sizes: Mapping[str, int]) -> Network:
    """Make the network a recipe's ``[model]`` describes; ``sizes`` are facts of the data."""
    check_model(model)
    given = {"width": model["width"], **sizes}
    memory = build(MEMORIES, model["memory"], **given)
    kinds = {kind: ENCODERS[kind] for kind in WHOLE}
    encode = build(kinds, model["encode"], tables=memory.tables, **given)
    respond = build(RESPONSES, model["respond"], **given)
    if respond.tied:
        if not memory.ties:
            raise ConfigError(
                "respond.tied = true needs a memory whose last table holds its values, such as "
                "memn2n with tying = 'adjacent'; set model.respond.tied=false"
            )
        respond.table = encode.tables[-1]
    return Network(encode, memory, respond)


def check_model(model: Mapping[str, Any]) -> None:
    """All parts are there and nothing else is; the width, which no part checks, is a width."""
    if unknown := [key for key in model if key not in PARTS]:
        raise ConfigError(f"[model] does not take {unknown[0]!r}; it takes {listed(PARTS)}")
    if missing := [key for key in PARTS if key not in model]:
        raise ConfigError(f"[model] needs {listed(missing)}")
    if not fits(model["width"], int) or model["width"] < 1:
        raise ConfigError(f"model.width is a whole number from 1 on, not {model['width']!r}")
