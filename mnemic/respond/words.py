"""Answer with several words, one after another, until there are no more.

Shapes: b batch, m queries, d width, v vocabulary, w words of answers (the last is "no more"),
p beginnings of answers (the first is empty), k steps of the longest answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.memory import Reading
from mnemic.memory.parts.match import MATCHES
from mnemic.recipe import build

TANH: Mapping[str, Any] = {"kind": "tanh"}


class SeveralWords(nn.Module):
    """``w₁ = argmax s_R([x, m], w)``, ``w₂ = argmax s_R([x, m, w₁], w)`` … until "no more" wins.

    AM of Weston et al. 2015b, for answers. ``spelled`` has a row for each entry of the vocabulary
    that is several words: the entry, then its words (from ``vocab`` on: words that are no entry).
    Each step is as ``matched``; words said before have vectors of their own, as facts have.

    Where we differ: an entry's score is the sum of its steps' scores, and the best entry is the
    answer; the best word of each step may lead to an answer that was never given. Where no entry
    is several words there is no "no more", and this is ``matched``.
    """

    tied = False

    def __init__(
        self,
        width: int,
        vocab: int,
        spelled: Sequence[Sequence[int]] = (),
        *,
        match: Mapping[str, Any] = TANH,
    ) -> None:
        super().__init__()
        self.match = build(MATCHES, match, width=width)
        answers = [[entry] for entry in range(vocab)]
        for entry, *words in spelled:
            answers[entry] = words
        end = max(vocab, *(word + 1 for words in answers for word in words))
        if spelled:
            answers = [[*words, end] for words in answers]
        starts = sorted({tuple(own[:step]) for own in answers for step in range(len(own))})
        longest, count = max(map(len, answers)), end + bool(spelled)
        begun = torch.zeros(len(starts), end)  # p w
        for row, start in enumerate(starts):
            for word in start:
                begun[row, word] += 1
        steps = torch.full((vocab, longest), len(starts) * count)  # v k, in p·w; behind it is 0
        for entry, own in enumerate(answers):
            for step, word in enumerate(own):
                steps[entry, step] = starts.index(tuple(own[:step])) * count + word
        self.register_buffer("begun", begun, persistent=False)
        self.register_buffer("steps", steps, persistent=False)
        self.begun: Tensor
        self.steps: Tensor
        self.table = nn.Parameter(torch.randn(count, width) * 0.1)
        self.said = nn.Parameter(torch.randn(end, width) * 0.1) if spelled else None

    def forward(self, query: Tensor, reading: Reading, states: Tensor, mask: Tensor) -> Tensor:
        asked = reading.found.unsqueeze(2)  # b m 1 d
        if self.said is not None:
            asked = asked + self.begun @ self.said  # b m p d
        scores = (self.match(asked) @ self.match(self.table).mT).flatten(2)  # b m (p w)
        scores = nn.functional.pad(scores, (0, 1))
        return scores.index_select(2, self.steps.flatten()).unflatten(2, self.steps.shape).sum(3)
