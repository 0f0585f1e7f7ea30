"""Write labeled texts with similar ones beside them."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from mnemic.data.text_tasks.examples import LabeledExample

EXAMPLES_PER_CALL = 64  # examples whose copies are filled together

# Texts and a seed for each → the texts with replaced words, and the number of words.
FillTexts = Callable[[Sequence[str], Sequence[str]], list[tuple[str, int]]]


@dataclass
class AugmentCounts:
    """What became of the examples of a file."""

    examples: int = 0
    copies: int = 0  # that were written
    duplicates: int = 0  # copies that were there already
    unchanged: int = 0  # copies without a word to replace
    words: int = 0  # that were replaced in the copies


def augment_examples(
    examples: Iterable[LabeledExample], fill: FillTexts, *, copies: int, seed: int, counts: AugmentCounts
) -> Iterator[LabeledExample]:
    """Yield each example and up to ``copies`` similar ones with its label.

    A copy that occurred before, or is one of the originals, is left out. Each text of a pair is
    filled by itself. What a copy becomes depends on the seed, and on the example and its number.
    """
    all_examples = list(examples)
    seen = {(example.text, example.pair) for example in all_examples}
    remaining = iter(enumerate(all_examples))
    while batch := list(islice(remaining, EXAMPLES_PER_CALL)):
        keys = [(number, example, copy) for number, example in batch for copy in range(copies)]
        firsts = fill([example.text for _, example, _ in keys], [f"{seed}/{n}/{copy}/text" for n, _, copy in keys])
        seconds = fill(
            [example.pair or "" for _, example, _ in keys], [f"{seed}/{n}/{copy}/pair" for n, _, copy in keys]
        )
        pairs = iter(zip(firsts, seconds, strict=True))
        for _, example in batch:
            counts.examples += 1
            yield example
            for (text, num_words), (pair, num_pair_words) in islice(pairs, copies):
                copy = LabeledExample(text, None if example.pair is None else pair, example.label)
                if not num_words + num_pair_words:
                    counts.unchanged += 1
                elif (copy.text, copy.pair) in seen:
                    counts.duplicates += 1
                else:
                    seen.add((copy.text, copy.pair))
                    counts.copies += 1
                    counts.words += num_words + num_pair_words
                    yield copy


def format_example(example: LabeledExample) -> str:
    """Format an example as a JSON line that the data kinds ``classes`` and ``pairs`` read."""
    texts = {"text": example.text} if example.pair is None else {"text_a": example.text, "text_b": example.pair}
    return json.dumps(texts | {"label": example.label}, ensure_ascii=False) + "\n"
