"""A network that looks at pictures: regions are slots, read word by word.

Shapes: b pictures, c channels, y rows and x columns of pixels, n regions, m words, s slots,
d width.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.memory import Reading, Written
from mnemic.models.contract import BaseNetwork
from mnemic.models.picture_inputs import PictureInputs
from mnemic.respond.contract import Response
from mnemic.respond.generate import DecodingStep


class PictureOutput(NamedTuple):
    """Logits of a network that looks at pictures, with the gaze that they come from."""

    logits: Any  # b m v of words, or in the shape of the response
    states: Tensor  # b n d, the regions
    reading: Reading | None = None  # of each word as a query: weights b 1 1 m s
    written: Written | None = None
    memory: None = None  # carried to the next batch: nothing


class PictureNetwork(BaseNetwork):
    """Encode pictures (I), write their regions (G), and read them (O) while responding (R).

    The response, a decoder, asks the memory once per word with its own state: ``reading.weights``
    are the gaze. Without a memory the response gets the regions themselves.
    """

    def __init__(self, encode: Any, memory: Any, respond: Response) -> None:
        super().__init__()
        self.encode, self.memory, self.respond = encode, memory, respond
        self.key: Any = None if memory is None else nn.Linear(encode.width, encode.width)  # of regions

    @property
    def num_uniforms(self) -> int:
        """How many random numbers a picture needs: one, and one per word."""
        respond: Any = self.respond
        return 0 if self.memory is None or not self.memory.num_uniforms else 1 + respond.max_length

    def dummy_inputs(self, sizes: Mapping[str, Any]) -> PictureInputs:
        """Make two pictures with three words each."""
        pictures = torch.zeros(2, sizes.get("channels", 3), sizes["side"], sizes["side"])
        words = torch.ones(2, min(3, sizes["max_length"]), dtype=torch.long)
        return PictureInputs(pictures, words, words > 0)

    def forward(self, inputs: PictureInputs) -> PictureOutput:
        """Encode, write, read and respond."""
        return self.respond_to(self.encode(inputs.pictures), inputs)

    def respond_to(self, states: Tensor, inputs: PictureInputs) -> PictureOutput:
        """Respond to regions that are encoded already (b n d)."""
        mask = torch.ones_like(states[..., 0], dtype=torch.bool)
        if self.memory is None:
            words = {} if inputs.words is None else {"words": inputs.words}
            logits = self.respond(None, None, states, mask, **({} if self.respond.pools_text else words))
            return PictureOutput(logits.float(), states)
        written = self.write(states, mask)
        logits, reading = self.respond(
            self.memory, written.state, states, mask, words=inputs.words, uniforms=inputs.uniforms
        )
        return PictureOutput(logits.float(), states, reading, written)

    def write(self, states: Tensor, mask: Tensor) -> Written:
        """Write regions (b n d) into an empty memory."""
        slots = torch.stack([states, self.key(states)], 2)  # b n t d
        written: Written = self.memory.write(self.memory.empty(len(states), slots), slots, mask)
        return written

    def start_decoding(self, states: Tensor) -> tuple[DecodingStep, Any]:
        """Prepare to generate words about regions (b n d): a step and its first state."""
        respond: Any = self.respond
        mask = torch.ones_like(states[..., 0], dtype=torch.bool)
        slots = None if self.memory is None else self.write(states, mask).state

        def step(last_words: Tensor, state: Any) -> tuple[Tensor, Any]:
            """Score the next word after ``last_words`` (b): b v."""
            logits, state, _ = respond.step(self.memory, last_words, state)
            return logits, state

        return step, respond.start(states, mask, slots)
