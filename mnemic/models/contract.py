"""The interface of all networks, and what they say about themselves."""

from collections.abc import Mapping
from typing import Any, Protocol


class OutputProtocol(Protocol):
    """What a network returns; each class of networks adds its own fields."""

    @property
    def logits(self) -> Any:
        """The logits of the answers, in the shape of the response."""
        ...


class ModelProtocol(Protocol):
    """A network: a module with weights that turns a batch of inputs into logits."""

    carries_memory: bool  # a state of its memory goes from one segment or call to the next
    reads_windows_in_turn: bool  # windows of a text depend on each other, and must not overlap

    @property
    def num_uniforms(self) -> int:
        """How many uniform random numbers one example needs during training."""
        ...

    def __call__(self, inputs: Any) -> OutputProtocol:
        """Answer a batch."""
        ...

    def dummy_inputs(self, sizes: Mapping[str, Any]) -> Any:
        """Make a tiny batch for a check of shapes, without a look at values."""
        ...
