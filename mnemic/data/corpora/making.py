"""From the documents of a block to its training sequences: cut by a format, and assembled."""

import random
from dataclasses import dataclass

from mnemic.data.corpora.formats import Format
from mnemic.data.corpora.sequences import Example, assemble
from mnemic.data.corpora.tokens import TokenDocument
from mnemic.text import Subwords


@dataclass(frozen=True, kw_only=True)
class Maker:
    """What a ``Stream`` calls for each block; documents are shuffled before they are cut."""

    tokenizer: Subwords  # whose [CLS] and [SEP] frame the sequences
    format: Format
    most: int = 128  # tokens of a sequence, special ones included

    def __call__(self, documents: list[TokenDocument], dice: random.Random) -> list[Example]:
        texts = [document.tokens for document in documents]
        dice.shuffle(texts)
        plans = self.format([text.ends for text in texts], self.most, dice)
        cls, sep = self.tokenizer.cls, self.tokenizer.sep
        return [assemble(plan, texts, cls=cls, sep=sep) for plan in plans]
