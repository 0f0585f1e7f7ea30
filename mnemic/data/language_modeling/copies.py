"""Generated texts to copy, ``0 w 0 w`` with random symbols w, for language models.

The second half repeats the first, so that all of its symbols can be predicted by a network that
finds its way back (Kitaev et al. 2020, section 5).

Shapes: r texts, n tokens of a text, k symbols of w.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import ClassVar

import torch
from torch import Tensor

from mnemic.data.contract import SPLITS, DataSource, Layout, LoadedData, Names, Split, check_count
from mnemic.data.language_modeling.batches import END, TokenDataset
from mnemic.recipe import ConfigError
from mnemic.text import Tokenizer, WordTokenizer

MAX_SYMBOLS, MAX_TOKENS = 10_000, 500_000_000  # of the vocabulary; of a generated split
SEPARATOR = "0"  # before w; the symbols are "1", "2", …


@dataclass(frozen=True, kw_only=True)
class CopyDataset(TokenDataset):
    """Texts whose second half is predicted from the first."""

    metrics: ClassVar[str] = "copies"
    metric: ClassVar[str] = "accuracy"  # that selects the best weights

    @property
    def token_counts(self) -> Tensor:
        """Return the tokens read and the tokens of each text, r 2: the same numbers."""
        return self.lengths.unsqueeze(1).expand(-1, 2)


@dataclass(frozen=True, kw_only=True)
class GeneratedCopies(DataSource):
    """Generated copying: ``0 w 0 w``, of which only the second w is scored.

    A text has ``length`` tokens, half of which are 0 and w, and its symbols are random numbers from
    1 to ``symbols``. With ``min_length`` training texts have random even lengths from there on.
    ``count``, ``validation_size`` and ``test_size`` are the texts of training, validation and test.
    """

    layout: ClassVar[Layout] = "tokens"
    response: ClassVar[str] = "next-token"
    objectives: ClassVar[Names] = ("next-token",)
    context: ClassVar[int] = 0
    stream: ClassVar[bool] = False
    length: int = 256
    min_length: int = 0
    symbols: int = 127
    count: int = 10_000
    validation_size: int = 100
    test_size: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        if self.length % 2 or self.min_length % 2 or not (4 <= (self.min_length or 4) <= self.length):
            raise ConfigError(
                "data.length is an even number from 4 on, and data.min_length an even one from 4 to it, or 0; "
                f"not {self.length} and {self.min_length}"
            )
        if not 1 <= self.symbols <= MAX_SYMBOLS:
            raise ConfigError(f"data.symbols is from 1 to {MAX_SYMBOLS:,}, not {self.symbols}")
        for name in ("count", "validation_size", "test_size"):
            if getattr(self, name) < 1:
                raise ConfigError(f"data.{name} is at least 1, not {getattr(self, name)}")
            check_count(name, getattr(self, name))
            if getattr(self, name) * self.length > MAX_TOKENS:
                raise ConfigError(
                    f"data.{name} times data.length is at most {MAX_TOKENS:,} tokens, not "
                    f"{getattr(self, name) * self.length:,}: give a smaller number"
                )

    def load(self) -> LoadedData[CopyDataset]:
        """Generate all splits; the vocabulary is the numbers from 0 to ``symbols``."""
        tokenizer = WordTokenizer.from_texts([" ".join(map(str, range(self.symbols + 1)))], (END,))
        train, validation, test = (self.dataset(split, tokenizer) for split in SPLITS)
        return LoadedData(tokenizer, {"vocab": len(tokenizer), "max_length": self.length}, train, validation, test)

    def dataset(self, split: Split, tokenizer: Tokenizer, labels: Sequence[str] = ()) -> CopyDataset:
        """Generate one split as token ids: END 0 w 0 w per text."""
        assert isinstance(tokenizer, WordTokenizer)
        lengths, symbols = self.generate_symbols(split)  # r, r k
        ids_of = torch.tensor([tokenizer.id_of(str(number)) for number in range(self.symbols + 1)])
        halves = ids_of[torch.nn.functional.pad(symbols, (1, 0))]  # r 1+k, 0 and w
        column, half = torch.arange(self.length), (lengths // 2).unsqueeze(1)  # r 1
        texts = halves.gather(1, torch.where(column < half, column, column - half).clamp(max=halves.shape[1] - 1))
        texts = torch.nn.functional.pad(texts, (1, 0), value=tokenizer.id_of(END))  # r 1+n
        is_text = torch.arange(self.length + 1) <= lengths.unsqueeze(1)
        return CopyDataset(
            ids=texts[is_text].int(),
            starts=(lengths + 1).cumsum(0) - lengths - 1,
            lengths=lengths,
            context_lengths=lengths // 2 + 1,
            max_tokens=self.length,
            unknown_id=tokenizer.unknown,
        )

    def generate_symbols(self, split: Split) -> tuple[Tensor, Tensor]:
        """Draw the lengths of a split's texts (r), and their symbols (r k)."""
        number = int.from_bytes(sha256(f"copies/{split}/{self.seed}".encode()).digest()[:8], "big") >> 1
        generator = torch.Generator().manual_seed(number)
        count = {"train": self.count, "validation": self.validation_size, "test": self.test_size}[split]
        symbols = torch.randint(1, self.symbols + 1, (count, self.length // 2 - 1), generator=generator)
        min_length = self.min_length if split == "train" and self.min_length else self.length
        lengths = 2 * torch.randint(min_length // 2, self.length // 2 + 1, (count,), generator=generator)
        return lengths, symbols
