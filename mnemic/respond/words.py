"""Word head of MemNN for answers of several words, ended by a stop word.

Shapes: b batch, m queries, d width, v vocabulary, w words of answers (the last is the stop word),
p prefixes of answers (the first is empty), k steps of the longest answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.memory import Reading
from mnemic.memory.parts.match import MATCHES
from mnemic.recipe import build
from mnemic.respond.contract import Response
from mnemic.respond.word_match import DEFAULT_MATCH


class MultiWordHead(Response):
    """Score answers of several words, word by word.

    AM of Weston et al. 2015b, for answers:
    ``w₁ = argmax s_R([x, m], w)``, ``w₂ = argmax s_R([x, m, w₁], w)`` … until the stop word wins.
    ``spelled`` has a row for each entry of the vocabulary that is several words: the entry, then
    its words (ids from ``vocab`` on are words that are no entry). Each step is as in
    ``MatchWordHead``; earlier words of the answer have their own vectors, as facts have.

    Where we differ: an entry's score is the sum of its steps' scores, and the best entry is the
    answer; greedy steps may lead to an answer that is no entry. If no entry is several words,
    there is no stop word, and this is ``MatchWordHead``.
    """

    methods = ("ask_story",)

    def __init__(
        self, width: int, vocab: int, spelled: Sequence[Sequence[int]] = (), *, match: Mapping[str, Any] = DEFAULT_MATCH
    ) -> None:
        super().__init__()
        self.match = build(MATCHES, match, width=width)
        answers = [[entry] for entry in range(vocab)]
        for entry, *words in spelled:
            answers[entry] = words
        end_word = max(vocab, *(word + 1 for words in answers for word in words))
        if spelled:
            answers = [[*words, end_word] for words in answers]
        prefixes = sorted({tuple(answer[:step]) for answer in answers for step in range(len(answer))})
        max_length, num_words = max(map(len, answers)), end_word + bool(spelled)
        prefix_counts = torch.zeros(len(prefixes), end_word)  # p w
        for row, prefix in enumerate(prefixes):
            for word in prefix:
                prefix_counts[row, word] += 1
        # v k, indices into p·w; the index after the last has score 0
        steps = torch.full((vocab, max_length), len(prefixes) * num_words)
        for entry, answer in enumerate(answers):
            for step, word in enumerate(answer):
                steps[entry, step] = prefixes.index(tuple(answer[:step])) * num_words + word
        self.register_buffer("begun", prefix_counts, persistent=False)
        self.register_buffer("steps", steps, persistent=False)
        self.begun: Tensor
        self.steps: Tensor
        self.table = nn.Parameter(torch.randn(num_words, width) * 0.1)
        self.said = nn.Parameter(torch.randn(end_word, width) * 0.1) if spelled else None

    def forward(self, query: Tensor, reading: Reading, states: Tensor, mask: Tensor) -> Tensor:
        """Score all entries of the vocabulary, b m v."""
        queries = reading.found.unsqueeze(2)  # b m 1 d
        if self.said is not None:
            queries = queries + self.begun @ self.said  # b m p d
        logits = (self.match(queries) @ self.match(self.table).mT).flatten(2)  # b m (p w)
        logits = nn.functional.pad(logits, (0, 1))
        return logits.index_select(2, self.steps.flatten()).unflatten(2, self.steps.shape).sum(3)
