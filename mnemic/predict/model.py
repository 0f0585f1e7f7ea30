"""What ``mnemic.load`` returns: a trained network with the methods that it has."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, overload

import torch

from mnemic.checkpoint.folder import Checkpoint, TrainingProgress, load_checkpoint
from mnemic.checkpoint.seq2seq_folder import is_seq2seq_folder, load_seq2seq
from mnemic.encode.precision import Precision, prepare_for_inference
from mnemic.predict import captions, generate, long_text, results, story, tasks, text_tasks
from mnemic.predict.memory_state import State
from mnemic.predict.methods import METHODS, MethodError, describe_missing, methods_of
from mnemic.predict.pictures import align, detect
from mnemic.predict.text_tasks import TextOrPair, build_window_options
from mnemic.recipe import Recipe, join_words
from mnemic.respond.generate import SamplingOptions
from mnemic.text import Tokenizer
from mnemic.text.windows import Truncation


def load(folder: str | Path, *, precision: Precision = "float32", device: str | torch.device = "cpu") -> "Model":
    """Load a trained network from its folder, or a shipped one by its name.

    The folder may also be a BART or T5 of Hugging Face. Every file is checked first. With another
    ``precision`` than float32 (see
    ``mnemic.encode.prepare_for_inference``) the network is for inference only.

    >>> mnemic.load("reader")
    Model('reader': answer, rerank, embed)
    """
    if is_seq2seq_folder(Path(folder)):
        checkpoint = load_seq2seq(Path(folder))
        network = prepare_for_inference(checkpoint.network, precision)
        checkpoint = checkpoint if precision == "float32" else replace(checkpoint, network=network)
    else:
        checkpoint = load_checkpoint(folder, precision=precision)
    checkpoint.network.to(device)
    return Model(checkpoint)


class Model:
    """A trained network and the methods that it has; ``mnemic.load`` makes one.

    ``methods`` names them; another one raises an ``AttributeError`` that does so, too.

    >>> mnemic.load("reader").methods
    ('answer', 'rerank', 'embed')
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.methods = methods_of(checkpoint)

    def __getattribute__(self, name: str) -> Any:
        if name in METHODS:
            methods = object.__getattribute__(self, "methods")
            if name not in methods:
                raise MethodError(describe_missing(name, methods))
        return object.__getattribute__(self, name)

    def __dir__(self) -> list[str]:
        return sorted(set(object.__dir__(self)) - set(METHODS) | set(self.methods))

    def __repr__(self) -> str:
        return f"Model({self.checkpoint.origin!r}: {join_words(self.methods)})"

    @property
    def recipe(self) -> Recipe:
        return self.checkpoint.recipe

    @property
    def seed(self) -> int:
        return self.checkpoint.seed

    @property
    def sizes(self) -> Any:
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
    def tasks(self) -> tuple[str, ...]:
        """The names of the tasks of a network that learned several, for ``select_task``."""
        return tasks.list_tasks(self.checkpoint)

    def select_task(self, name: str) -> "Model":
        """Return one of several tasks as a network of its own, which classifies or rates."""
        return Model(tasks.select_task(self.checkpoint, name))

    def classify(
        self, texts: Sequence[TextOrPair], *, overlap: int | None = None, truncation: Truncation | None = None
    ) -> list[results.Classification]:
        """Classify each text, or pair of texts."""
        return text_tasks.classify_texts(
            self.checkpoint, texts, build_window_options(self.checkpoint, overlap, truncation)
        )

    def rate(
        self, texts: Sequence[TextOrPair], *, overlap: int | None = None, truncation: Truncation | None = None
    ) -> list[results.Rating]:
        """Predict a number for each text, or pair of texts."""
        return text_tasks.predict_numbers(
            self.checkpoint, texts, build_window_options(self.checkpoint, overlap, truncation)
        )

    def tag(
        self, texts: Sequence[str], *, overlap: int | None = None, truncation: Truncation | None = None
    ) -> list[results.TaggedText]:
        """Find the named entities of each text."""
        return text_tasks.tag_entities(
            self.checkpoint, texts, build_window_options(self.checkpoint, overlap, truncation)
        )

    @overload
    def answer(
        self, question: str, text: str, *, overlap: int | None = None, truncation: Truncation | None = None
    ) -> results.SpanAnswer: ...

    @overload
    def answer(
        self, question: list[str], text: list[str], *, overlap: int | None = None, truncation: Truncation | None = None
    ) -> list[results.SpanAnswer]: ...

    def answer(
        self, question: Any, text: Any, *, overlap: int | None = None, truncation: Truncation | None = None
    ) -> results.SpanAnswer | list[results.SpanAnswer]:
        """Find the span of a text that answers a question; lists are answered in pairs.

        >>> text = "The lease ends on 30 June."
        >>> mnemic.load("reader").answer("When does the lease end?", text).quote(text)
        '30 June'
        """
        is_single = isinstance(question, str) or isinstance(text, str)
        questions, texts = ([question], [text]) if is_single else (list(question), list(text))
        if len(questions) != len(texts):
            raise ValueError(f"one text per question, not {len(questions)} questions and {len(texts)} texts")
        options = build_window_options(self.checkpoint, overlap, truncation)
        answers = text_tasks.answer_questions(self.checkpoint, list(zip(questions, texts)), options)
        return answers[0] if is_single else answers

    def rerank(
        self,
        question: str,
        passages: Sequence[str],
        *,
        overlap: int | None = None,
        truncation: Truncation | None = None,
    ) -> list[results.RankedPassage]:
        """Rank passages by how well they answer a question, best first.

        >>> passages = ["The rent is 700 euros a month.", "The lease ends on 30 June."]
        >>> ranked = mnemic.load("reader").rerank("When does the lease end?", passages)
        >>> [passage.index for passage in ranked]
        [1, 0]
        """
        options = build_window_options(self.checkpoint, overlap, truncation)
        return text_tasks.rerank_passages(self.checkpoint, question, passages, options)

    def embed(
        self,
        texts: Sequence[str],
        *,
        overlap: int | None = None,
        truncation: Truncation | None = None,
        sentences: bool = False,
    ) -> results.TextEmbeddings:
        """Embed each text, and with ``sentences`` its sentences, as vectors of length 1.

        >>> mnemic.load("reader").embed(["a cat", "a kitten", "a tax form"]).vectors.shape
        torch.Size([3, 384])
        """
        options = build_window_options(self.checkpoint, overlap, truncation)
        return text_tasks.embed_texts(self.checkpoint, texts, options, with_sentences=sentences)

    def generate(
        self,
        texts: Sequence[str],
        *,
        num_beams: int = 1,
        length_penalty: float = 0.0,
        min_tokens: int = 0,
        max_tokens: int = 0,
        no_repeat_ngrams: int = 0,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
    ) -> list[results.GeneratedText]:
        """Generate the answer to each text, greedily, by beam search or by sampling.

        The first options are those of ``mnemic.respond.generate.SearchOptions``; ``max_tokens`` 0
        is all that the network can say. One of ``temperature``, ``top_k`` and ``top_p`` samples.
        """
        options = {"num_beams": num_beams, "length_penalty": length_penalty, "min_tokens": min_tokens}
        options |= {"max_tokens": max_tokens, "no_repeat_ngrams": no_repeat_ngrams}
        sampling = SamplingOptions(temperature, top_k, top_p)
        return generate.generate_answers(self.checkpoint, texts, options=options, sampling=sampling, seed=seed)

    def caption(self, pictures: Any, *, num_beams: int = 1) -> list[results.PictureCaption]:
        """Describe pictures, with the gaze of each word.

        ``pictures`` is an array of bytes (n, height, width, colors) or a tensor from 0 to 1 (n,
        colors, height, width).
        """
        return captions.caption_pictures(self.checkpoint, pictures, num_beams=num_beams)

    def align(self, pictures: Any, captions: Sequence[str], *, beta: float = 0.0) -> list[list[results.AlignedWord]]:
        """Find the region of the picture for each word of its caption.

        ``pictures`` are as for ``caption``. With a ``beta`` above 0 neighboring words prefer the
        same region.
        """
        return align.align_captions(self.checkpoint, pictures, captions, beta=beta)

    def detect(self, pictures: Any, *, threshold: float = 0.5) -> list[list[results.DetectedObject]]:
        """Detect the objects in pictures, with their boxes; ``pictures`` are as for ``caption``."""
        return detect.detect_objects(self.checkpoint, pictures, threshold=threshold)

    def complete(
        self,
        texts: Sequence[str],
        *,
        max_words: int = 20,
        seed: int = 0,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
    ) -> list[results.GeneratedText]:
        """Continue each text by sampling from a language model."""
        return generate.continue_texts(
            self.checkpoint, texts, max_words=max_words, seed=seed, temperature=temperature, top_k=top_k, top_p=top_p
        )

    def perplexity(self, texts: Sequence[str]) -> list[results.TextPerplexity]:
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
        """Read a text of any length into a memory, after what ``state`` already holds."""
        return long_text.read_text(
            self.checkpoint, text, state, name=name, precision=precision, on_progress=on_progress
        )

    def ask(self, state: State, question: str, *, text: str | None = None) -> results.MemoryAnswer:
        """Answer from a memory alone, with the spans of the text that were read.

        >>> text = "The museum was founded by Edith Marlowe in 1897."
        >>> model = mnemic.load("bert-mass")
        >>> model.ask(model.remember(text), "Who founded the museum?", text=text).text
        'Edith Marlowe'
        """
        return long_text.answer_from_memory(self.checkpoint, state, question, text=text)

    def load_state(self, path: str | Path) -> State:
        """Load a memory that ``State.save`` wrote; refuse one of another network."""
        return long_text.load_state(self.checkpoint, path)

    def ask_story(self, sentences: Sequence[str], question: str) -> story.StoryAnswer:
        """Answer a question about a story, with the weight of each sentence at each hop.

        >>> model = mnemic.load("entnet-babi")
        >>> model.ask_story(["Mary went to the garden."], "Where is Mary?").text
        'garden'
        """
        return story.ask_story(self.checkpoint, sentences, question)
