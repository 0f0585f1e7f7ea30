"""Mine hard negatives: wrong texts that a network takes for the right one.

Shapes: n pairs, p second texts, d width.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from mnemic.data.text_tasks.examples import AnsweredPair
from mnemic.data.views.groups import number_texts, simplify
from mnemic.predict.text_tasks import embed_texts

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint

TEXTS_PER_BATCH = 1000  # embedded and compared at once; changes memory use, not results


def mine_hard_negatives(
    checkpoint: "Checkpoint",
    pairs: Sequence[AnsweredPair],
    *,
    top_k: int = 10,
    on_progress: Callable[[int, int], None] = lambda num_texts, total: None,
) -> Iterator[list[str]]:
    """Find the ``top_k`` most similar wrong second texts of each pair, best first.

    A text is not wrong if pairs link it with the right one (see ``number_texts``), or if it has
    one of the pair's ``answers`` as whole words: such false negatives are dropped, so that there
    may be fewer than ``top_k``.
    """
    texts = list({simplify(pair.second): pair.second for pair in reversed(pairs)}.values())
    group_of = number_texts((pair.first, pair.second) for pair in pairs)
    groups = torch.tensor([group_of[simplify(text)] for text in texts])
    total, embedded = len(pairs) + len(texts), []
    for start in range(0, len(texts), TEXTS_PER_BATCH):
        embedded.append(embed_texts(checkpoint, texts[start : start + TEXTS_PER_BATCH]).vectors)
        on_progress(min(start + TEXTS_PER_BATCH, len(texts)), total)
    vectors = torch.cat(embedded)  # p d
    for start in range(0, len(pairs), TEXTS_PER_BATCH):
        rows = pairs[start : start + TEXTS_PER_BATCH]
        scores = embed_texts(checkpoint, [pair.first for pair in rows]).vectors @ vectors.mT
        row_groups = torch.tensor([group_of[simplify(pair.second)] for pair in rows])
        scores = scores.masked_fill(groups == row_groups.unsqueeze(1), -torch.inf)
        best = scores.topk(min(top_k, len(texts)), dim=1)
        for pair, indices, cosines in zip(rows, best.indices.tolist(), best.values.tolist()):
            candidates = [texts[index] for index, cosine in zip(indices, cosines) if cosine > -torch.inf]
            yield [text for text in candidates if not has_answer(text, pair.answers)]
        on_progress(len(texts) + start + len(rows), total)


def has_answer(text: str, answers: Sequence[str]) -> bool:
    """Return whether a text has one of the answers as whole words, in any case."""
    content = simplify(text)
    return any(re.search(rf"(?<!\w){re.escape(simplify(answer))}(?!\w)", content) for answer in answers)
