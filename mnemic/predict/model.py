"""What ``mnemic.load`` returns: a trained network with the verbs it can be asked by."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from torch import Tensor

from mnemic.checkpoint import folder as checkpoints
from mnemic.checkpoint.folder import Checkpoint, Progress
from mnemic.encode.precision import Precision
from mnemic.predict import generate, long_text, results, text_tasks
from mnemic.predict.memory_state import State
from mnemic.recipe import Recipe
from mnemic.text import Tokenizer
from mnemic.text.windows import Truncation


def load(folder: str | Path, *, precision: Precision = "float32", device: str = "cpu") -> "Model":
    """Load a trained network from its folder, or a shipped one by its name.

    Every file is checked first. With another ``precision`` than float32 (see
    ``mnemic.encode.for_inference``) the network can only be read with.
    """
    checkpoint = checkpoints.load(folder, precision=precision)
    checkpoint.network.to(device)
    return Model(checkpoint)


class Model:
    """A trained network and the methods that it has; ``mnemic.load`` makes one."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint

    @property
    def recipe(self) -> Recipe:
        return self.checkpoint.recipe

    @property
    def seed(self) -> int:
        return self.checkpoint.seed

    @property
    def sizes(self) -> Mapping[str, Any]:
        return self.checkpoint.sizes

    @property
    def tokenizer(self) -> Tokenizer:
        return self.checkpoint.tokenizer

    @property
    def network(self) -> Any:
        return self.checkpoint.network

    @property
    def labels(self) -> tuple[str, ...]:
        return self.checkpoint.labels

    @property
    def progress(self) -> Progress:
        return self.checkpoint.progress

    @property
    def state(self) -> Mapping[str, Tensor]:
        return self.checkpoint.state

    @property
    def origin(self) -> str:
        return self.checkpoint.origin

    def classify(
        self,
        texts: Sequence[text_tasks.Text],
        *,
        overlap: int | None = None,
        truncation: Truncation | None = None,
    ) -> list[results.Classified]:
        """Classify each text, or pair of texts."""
        return text_tasks.classify(self.checkpoint, texts, overlap=overlap, truncation=truncation)

    def rate(
        self,
        texts: Sequence[text_tasks.Text],
        *,
        overlap: int | None = None,
        truncation: Truncation | None = None,
    ) -> list[results.Rated]:
        """Predict a number for each text, or pair of texts."""
        return text_tasks.rate(self.checkpoint, texts, overlap=overlap, truncation=truncation)

    def tag(
        self,
        texts: Sequence[str],
        *,
        overlap: int | None = None,
        truncation: Truncation | None = None,
    ) -> list[results.Tagged]:
        """Find the named entities of each text."""
        return text_tasks.tag(self.checkpoint, texts, overlap=overlap, truncation=truncation)

    def answer(
        self,
        question: str,
        text: str,
        *,
        overlap: int | None = None,
        truncation: Truncation | None = None,
    ) -> results.Answered:
        """Find the span of ``text`` that answers best, and the probability of no answer."""
        return text_tasks.answer(
            self.checkpoint, question, text, overlap=overlap, truncation=truncation
        )

    def embed(
        self,
        texts: Sequence[str],
        *,
        overlap: int | None = None,
        truncation: Truncation | None = None,
        keys: bool = False,
    ) -> results.Embedded:
        """Embed each text as a vector of length 1; with ``keys`` each of its sentences, too."""
        return text_tasks.embed(
            self.checkpoint, texts, overlap=overlap, truncation=truncation, keys=keys
        )

    def say(self, texts: Sequence[str], *, beams: int = 1) -> list[results.Spoken]:
        """Generate the answer to each text, greedily or by beam search."""
        return generate.say(self.checkpoint, texts, beams=beams)

    def go_on(
        self,
        texts: Sequence[str],
        *,
        words: int = 20,
        seed: int = 0,
        temperature: float = 1.0,
        top: int = 0,
        share: float = 1.0,
    ) -> list[results.Spoken]:
        """Continue each text by sampling from a language model."""
        return generate.go_on(
            self.checkpoint,
            texts,
            words=words,
            seed=seed,
            temperature=temperature,
            top=top,
            share=share,
        )

    def measure(self, texts: Sequence[str]) -> list[results.Measured]:
        """Measure the perplexity per word of each text."""
        return generate.measure(self.checkpoint, texts)

    def remember(
        self,
        text: str,
        state: State | None = None,
        *,
        name: str | PathLike[str] = "",
        precision: Precision = "auto",
        told: Callable[[int, int], None] = lambda seen, total: None,
    ) -> State:
        """Read a text of any length into a memory, after what ``state`` already holds."""
        return long_text.remember(
            self.checkpoint, text, state, name=name, precision=precision, told=told
        )

    def ask(self, state: State, question: str, *, text: str | None = None) -> results.Recollected:
        """Answer from a memory alone, with the spans of the text that were read."""
        return long_text.ask(self.checkpoint, state, question, text=text)

    def load_state(self, path: str | Path) -> State:
        """Load a memory that ``State.save`` wrote; refuse one of another network."""
        return long_text.load_state(self.checkpoint, path)
