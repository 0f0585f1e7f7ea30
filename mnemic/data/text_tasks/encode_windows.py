"""Encode examples as windows with targets, one function per kind of task."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

from mnemic.data.text_tasks.batches import EncodedExample, Kind, TextDataset, make_text_dataset
from mnemic.data.text_tasks.examples import LabeledExample, QuestionExample, TaggedExample, TextError
from mnemic.models import IGNORE
from mnemic.text import Encoding, Tokenizer, WindowOptions
from mnemic.text.windows import Window, assign_tokens, make_pair_windows, make_question_windows, make_text_windows

TEXTS_PER_CALL = 1000  # texts per call of the tokenizer


def encode_labeled(
    examples: Sequence[LabeledExample],
    tokenizer: Tokenizer,
    options: WindowOptions,
    *,
    labels: Sequence[str],
    kind: Kind = "classes",
    metric: str = "accuracy",
) -> TextDataset:
    """Encode texts or pairs with classes, or with numbers (``kind="numbers"``).

    A class that is not in ``labels`` has the target IGNORE, and counts as wrong.
    """
    label_ids = {label: number for number, label in enumerate(labels)}

    def encode_example(example: LabeledExample, first: Encoding, second: Encoding) -> EncodedExample:
        """Make the windows of a text or pair, with its class or number."""
        if example.pair is None:
            windowed = make_text_windows(tokenizer, first, options)
        else:
            windowed = make_pair_windows(tokenizer, first, second, options)
        target = parse_number(example) if kind == "numbers" else label_ids.get(example.label, IGNORE)
        return EncodedExample(windowed, target)

    first_encodings = encode_ids(tokenizer, (example.text for example in examples))
    second_encodings = encode_ids(tokenizer, (example.pair or "" for example in examples))
    encoded_examples = map(encode_example, examples, first_encodings, second_encodings)
    return make_text_dataset(kind, encoded_examples, examples, tokenizer, labels=labels, metric=metric)


def encode_ids(tokenizer: Tokenizer, texts: Iterable[str]) -> Iterator[Encoding]:
    """Encode texts as token ids only, ``TEXTS_PER_CALL`` at a time."""
    remaining = iter(texts)
    while batch := list(islice(remaining, TEXTS_PER_CALL)):
        yield from (Encoding(ids, [], [], []) for ids in tokenizer.encode_batch(batch))


def parse_number(example: LabeledExample) -> float:
    """Return the label as a number, or raise a TextError."""
    try:
        return float(example.label)
    except ValueError:
        raise TextError(
            f"the label {example.label!r} of {example.text[:40]!r} is no number; for names of "
            'classes set data.labels = "names"'
        ) from None


def encode_questions(examples: Sequence[QuestionExample], tokenizer: Tokenizer, options: WindowOptions) -> TextDataset:
    """Encode questions with their texts; targets are the answer's first and last column.

    Columns are counted from 1 in the window; 0 means that the window has no answer.
    """

    @lru_cache(maxsize=8)  # questions about one text are neighbors
    def encode_text(text: str) -> Encoding:
        return tokenizer.encode(text, special=False)

    def encode_example(example: QuestionExample) -> EncodedExample:
        """Make the windows of a question and its text, with the answer's columns."""
        windowed = make_question_windows(tokenizer, example.question, encode_text(example.text), options)
        answer_tokens = find_answer_tokens(windowed.offsets, example)
        return EncodedExample(windowed, [find_answer_columns(window, answer_tokens) for window in windowed.windows])

    return make_text_dataset("spans", map(encode_example, examples), examples, tokenizer, metric="f1")


def find_answer_tokens(offsets: Sequence[tuple[int, int]], example: QuestionExample) -> tuple[int, int] | None:
    """Find the first and last token of the answer; None if there is no answer."""
    tokens = example.find_answer(offsets)
    return (tokens[0], tokens[-1]) if tokens else None


def find_answer_columns(window: Window, answer_tokens: tuple[int, int] | None) -> tuple[int, int]:
    """Find the answer's first and last column in a window; 0, 0 without."""
    first, end = window.token_range
    if answer_tokens is None or answer_tokens[0] < first or answer_tokens[1] >= end:
        return 0, 0
    shift = window.text_start - first + 1
    return answer_tokens[0] + shift, answer_tokens[1] + shift


def encode_tagged(
    examples: Sequence[TaggedExample], tokenizer: Tokenizer, options: WindowOptions, *, labels: Sequence[str]
) -> TextDataset:
    """Encode tagged words; the target of a word's first token is its tag.

    Where windows overlap, only the window that a token is assigned to has its target.
    """
    tag_ids = {label: number for number, label in enumerate(labels)}

    def encode_example(example: TaggedExample) -> EncodedExample:
        """Make the windows of a text, with one tag or IGNORE per token."""
        windowed = make_text_windows(tokenizer, example.text, options)
        tags = [IGNORE] * len(windowed.offsets)
        for token, tag in zip(find_first_tokens(windowed.offsets, example.word_spans), example.tags):
            if token is not None:
                tags[token] = tag_ids.get(tag, IGNORE)
        owner = assign_tokens([window.token_range for window in windowed.windows])
        targets: list[int] = []
        for number, window in enumerate(windowed.windows):
            window_targets = [IGNORE] * len(window.ids)
            for token in range(*window.token_range):
                if owner[token] == number:
                    column = window.text_start + token - window.token_range.start
                    window_targets[column] = tags[token]
            targets += window_targets
        return EncodedExample(windowed, targets)

    encoded_examples = map(encode_example, examples)
    return make_text_dataset("tags", encoded_examples, examples, tokenizer, labels=labels, metric="entity f1")


def find_first_tokens(offsets: Sequence[tuple[int, int]], word_spans: Sequence[tuple[int, int]]) -> list[int | None]:
    """Find each word's first token; None if the tokenizer drops the word."""
    starts = [start for start, _ in offsets]
    tokens: list[int | None] = []
    for start, end in word_spans:
        token = bisect_left(starts, start)
        while token < len(offsets) and starts[token] < end and offsets[token][1] <= start:
            token += 1  # a token of no character
        tokens.append(token if token < len(offsets) and starts[token] < end else None)
    return tokens
