"""Hide the sentences of a story in background text, and cut the result into segments.

Everything is an iterator: a sample of ten million tokens is never in memory as a whole.
"""

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

StoryPosition = Literal["anywhere", "first"]


class SentenceTokens(NamedTuple):
    """The tokens of a sentence, or of a span of a very long sentence."""

    ids: np.ndarray
    fact: int = -1  # index of the sentence in the story; -1 = background
    paragraph_tokens: int = 0  # tokens of the paragraph that this sentence begins; 0 = none


Segment: TypeAlias = list[SentenceTokens]  # of at most so many tokens as a model reads at once


def hide_story(
    story: Sequence[np.ndarray],
    background: Iterable[SentenceTokens],
    num_tokens: int,
    generator: Random,
    *,
    position: StoryPosition = "anywhere",
) -> Iterator[SentenceTokens]:
    """Insert a story's sentences into background, about ``num_tokens`` tokens in total.

    The story is never shortened. The positions of its sentences are uniform over the whole length,
    or all sentences come first (``position``); background follows the last one.
    """
    num_background_tokens = max(num_tokens - sum(len(sentence) for sentence in story), 0)
    last_offset = num_background_tokens if position == "anywhere" else 0
    offsets = sorted(generator.random() * last_offset for _ in story)
    background_sentences = iter(background)
    num_written = 0
    for number, offset in enumerate([*offsets, num_background_tokens]):
        while num_written < offset:
            filler = next(background_sentences)
            num_written += len(filler.ids)
            yield filler
        if number < len(story):
            yield SentenceTokens(story[number], number)


def insert_distractors(
    story: Sequence[np.ndarray], background: Iterable[SentenceTokens], probability: float, generator: Random
) -> Iterator[SentenceTokens]:
    """Insert distractors into background: sentences that resemble the story's.

    With ``probability`` a background sentence gets one before it: a span of a story sentence with
    its last token, or a story sentence with one token replaced from the background. They teach a
    network to tell the story from text that only looks like it.
    """
    story_sentences = {tuple(story_sentence.tolist()) for story_sentence in story}
    for sentence in background:
        if generator.random() < probability:
            ids, word = (generator.choice(story), sentence.ids[generator.randrange(len(sentence.ids))])
            size = len(ids) - 1
            if generator.random() < 0.5:
                begin = generator.randrange(max(size, 1))
                ids = np.append(ids[begin : generator.randint(begin + 1, max(size, 1))], ids[-1:])
            else:
                ids = ids.copy()
                ids[generator.randrange(max(size, 1))] = word
            if tuple(ids.tolist()) not in story_sentences:
                yield SentenceTokens(ids)
        yield sentence


def draw_excerpt(
    story: Sequence[np.ndarray], facts: Iterable[int], max_tokens: int, generator: Random
) -> Iterator[SentenceTokens]:
    """Draw a span of at most ``max_tokens`` tokens of the story around its facts.

    It never has less than the facts. The amount of text before them is uniform, as far as the story
    has it.
    """
    sorted_facts = sorted(facts)
    sizes = [len(sentence) for sentence in story]
    first, end = sorted_facts[0], sorted_facts[-1] + 1
    spare = max_tokens - sum(sizes[first:end])
    before = generator.random() * spare
    while first and sizes[first - 1] <= before:
        first -= 1
        before, spare = before - sizes[first], spare - sizes[first]
    while end < len(story) and sizes[end] <= spare:
        spare -= sizes[end]
        end += 1
    while end == len(story) and first and sizes[first - 1] <= spare:
        first -= 1
        spare -= sizes[first]
    for number in range(first, end):
        yield SentenceTokens(story[number], number)


def cut_segments(sentences: Iterable[SentenceTokens], max_tokens: int) -> Iterator[Segment]:
    """Group sentences into segments of at most ``max_tokens`` tokens.

    Only a sentence longer than that is split. A paragraph begins a segment unless all of it fits
    into the current one. Without sentences there is one empty segment.
    """
    segment: Segment = []
    size = 0
    has_yielded = False
    for sentence in sentences:
        min_tokens = min(sentence.paragraph_tokens, max_tokens)
        for chunk in [sentence] if len(sentence.ids) <= max_tokens else split_sentence(sentence, max_tokens):
            if size + max(len(chunk.ids), min_tokens) > max_tokens:
                yield segment
                has_yielded, segment, size = True, [], 0
            segment.append(chunk)
            size += len(chunk.ids)
            min_tokens = 0
    if segment or not has_yielded:
        yield segment


def split_sentence(sentence: SentenceTokens, max_tokens: int) -> list[SentenceTokens]:
    """Split a sentence that is too long into spans of ``max_tokens`` tokens."""
    cuts = range(0, len(sentence.ids), max_tokens)
    return [SentenceTokens(sentence.ids[start : start + max_tokens], sentence.fact) for start in cuts]
