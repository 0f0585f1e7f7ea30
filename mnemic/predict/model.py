"""The public interface to a trained network: ``mnemic.load`` returns a ``Model``."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from torch import Tensor

from mnemic.checkpoint import folder as checkpoints
from mnemic.checkpoint.folder import Checkpoint, TrainingProgress
from mnemic.encode.precision import Precision
from mnemic.predict import generate, long_text, results, text_tasks
from mnemic.predict.memory_state import State
from mnemic.recipe import Recipe
from mnemic.text import Tokenizer
from mnemic.text.windows import Truncation


def load(folder: str | Path, *, precision: Precision = "float32", device: str = "cpu") -> "Model":
    """Load a trained network from its folder, or a shipped one by its name.

    The checksum of each file is verified. With a ``precision`` other than float32 (see
    ``mnemic.encode.prepare_for_inference``) the network is for inference only.
    """
    checkpoint = checkpoints.load_checkpoint(folder, precision=precision)
    checkpoint.network.to(device)
    return Model(checkpoint)


class Model:
    """A trained network with methods for prediction; ``mnemic.load`` creates one."""

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
    def progress(self) -> TrainingProgress:
        return self.checkpoint.progress

    @property
    def state(self) -> Mapping[str, Tensor]:
        return self.checkpoint.state

    @property
    def origin(self) -> str:
        return self.checkpoint.origin

    def classify(
        self,
        texts: Sequence[text_tasks.TextOrPair],
        *,
        overlap: int | None = None,
        truncation: Truncation | None = None,
    ) -> list[results.Classification]:
        """Classify each text, or pair of texts."""
        return text_tasks.classify_texts(self.checkpoint, texts, overlap=overlap, truncation=truncation)

    def rate(
        self,
        texts: Sequence[text_tasks.TextOrPair],
        *,
        overlap: int | None = None,
        truncation: Truncation | None = None,
    ) -> list[results.Rating]:
        """Predict a number for each text, or pair of texts."""
        return text_tasks.predict_numbers(self.checkpoint, texts, overlap=overlap, truncation=truncation)

    def tag(
        self, texts: Sequence[str], *, overlap: int | None = None, truncation: Truncation | None = None
    ) -> list[results.TaggedText]:
        """Find the named entities of each text."""
        return text_tasks.tag_entities(self.checkpoint, texts, overlap=overlap, truncation=truncation)

    def answer(
        self, question: str, text: str, *, overlap: int | None = None, truncation: Truncation | None = None
    ) -> results.SpanAnswer:
        """Find the span of ``text`` that answers best, and the probability of no answer."""
        return text_tasks.answer_question(self.checkpoint, question, text, overlap=overlap, truncation=truncation)

    def embed(
        self,
        texts: Sequence[str],
        *,
        overlap: int | None = None,
        truncation: Truncation | None = None,
        keys: bool = False,
    ) -> results.TextEmbeddings:
        """Embed each text as a unit vector; with ``keys`` also each of its sentences."""
        return text_tasks.embed_texts(
            self.checkpoint, texts, overlap=overlap, truncation=truncation, with_sentences=keys
        )

    def say(self, texts: Sequence[str], *, beams: int = 1) -> list[results.GeneratedText]:
        """Generate the answer to each text, greedily or by beam search."""
        return generate.generate_answers(self.checkpoint, texts, num_beams=beams)

    def go_on(
        self,
        texts: Sequence[str],
        *,
        words: int = 20,
        seed: int = 0,
        temperature: float = 1.0,
        top: int = 0,
        share: float = 1.0,
    ) -> list[results.GeneratedText]:
        """Continue each text by sampling from a language model."""
        return generate.continue_texts(
            self.checkpoint, texts, max_words=words, seed=seed, temperature=temperature, top_k=top, top_p=share
        )

    def measure(self, texts: Sequence[str]) -> list[results.TextPerplexity]:
        """Measure the perplexity per word of each text."""
        return generate.measure_perplexity(self.checkpoint, texts)

    def remember(
        self,
        text: str,
        state: State | None = None,
        *,
        name: str | PathLike[str] = "",
        precision: Precision = "auto",
        on_progress: Callable[[int, int], None] = lambda seen, total: None,
    ) -> State:
        """Read a text of any length into a memory, after what ``state`` already holds.

        ``on_progress`` is called with the number of tokens read and of all tokens.
        """
        return long_text.read_text(
            self.checkpoint, text, state, name=name, precision=precision, on_progress=on_progress
        )

    def ask(self, state: State, question: str, *, text: str | None = None) -> results.MemoryAnswer:
        """Answer from a memory alone, with the spans of the text that were read."""
        return long_text.answer_from_memory(self.checkpoint, state, question, text=text)

    def load_state(self, path: str | Path) -> State:
        """Load a memory that ``State.save`` wrote; refuse one of another network."""
        return long_text.load_state(self.checkpoint, path)
