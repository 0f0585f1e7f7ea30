"""Replace words of a text by those that a masked language model would write there.

Shapes: w windows, n tokens, m masked positions, v vocabulary, k candidates.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.encode.huggingface.families import ACTIVATIONS, FAMILIES
from mnemic.encode.huggingface.read import CONFIG_FILE, Pretrained, load_encoder
from mnemic.models import TextModel, WindowBatch
from mnemic.models.evaluating import evaluating
from mnemic.recipe import ConfigError, kind_name, kind_of
from mnemic.respond import RESPONSES
from mnemic.respond.pretraining.masked import PretrainingHeads
from mnemic.text import SubwordTokenizer, WindowOptions
from mnemic.text.tokenizers.trainers import END_OF_WORD
from mnemic.text.tokenizers.word_starts import find_word_starts
from mnemic.text.windows import make_text_windows

TOKENS_PER_BATCH = 16_384  # with padding
WORD_MARKS = ("Ġ", "▁")  # at the start of a word's first piece, in byte-level BPE and unigrams


class MaskedText(NamedTuple):
    """A text, some words of which are masked, and the random numbers that fill them."""

    text: str
    spans: list[tuple[int, int]]  # of the masked words, in order
    uniforms: list[float]  # one per masked word
    windows: list[tuple[list[int], list[int]]]  # token ids, and the masked positions in them
    originals: list[int]  # ids of the masked words


class WordFiller:
    """Replace words of texts, with a masked language model and its tokenizer.

    ``share`` of the words of one token are masked together, at least one, and each is replaced by
    one of the ``top_k`` words that the model finds likeliest there, drawn by their probabilities;
    the original word is none of them. Only letters count as a word: no number, no punctuation. A
    text longer than the model reads is filled in windows.
    """

    def __init__(self, network: Any, tokenizer: SubwordTokenizer, *, share: float = 0.15, top_k: int = 15) -> None:
        if not 0 < share <= 1 or top_k < 1:
            raise ConfigError(f"share must be above 0 and at most 1, and top_k 1 or more, not {share} and {top_k}")
        self.network, self.tokenizer, self.share, self.top_k = network, tokenizer, share, top_k
        max_length = network.encode.max_length or 512
        self.window_options = WindowOptions(max_length, 0)

    @cached_property
    def candidate_mask(self) -> Tensor:
        """Which pieces of the vocabulary are whole words: v."""
        pieces, special_ids = self.tokenizer.pieces, self.tokenizer.special_ids
        is_marked = any(piece.startswith(WORD_MARKS) for piece in pieces)
        has_ends = any(piece.endswith(END_OF_WORD) for piece in pieces)
        flags = torch.zeros(len(pieces), dtype=torch.bool)
        for number, piece in enumerate(pieces):
            if (is_marked and not piece.startswith(WORD_MARKS)) or (has_ends and not piece.endswith(END_OF_WORD)):
                continue
            flags[number] = number not in special_ids and self.tokenizer.decode([number]).strip().isalpha()
        if flags.sum() < 2:
            raise ConfigError("this vocabulary has no whole words to fill masks with: take another model")
        return flags

    def fill(self, texts: Sequence[str], seeds: Sequence[str]) -> list[tuple[str, int]]:
        """Return each text with some words replaced, and their number.

        A text without words comes back as it is. A seed decides which words are masked, and how
        they are filled.
        """
        masked_texts = [self.mask_words(text, Random(seed)) for text, seed in zip(texts, seeds, strict=True)]
        replacements = iter(self.choose_words(masked_texts))
        filled = []
        for masked in masked_texts:
            new_words = [next(replacements) for _ in masked.spans]
            filled.append((replace_spans(masked.text, masked.spans, new_words), len(new_words)))
        return filled

    def mask_words(self, text: str, rng: Random) -> MaskedText:
        """Mask some words of a text."""
        encoding = self.tokenizer.encode(text, special=False)
        starts = [*find_word_starts(text, encoding.offsets), True]
        words = [
            number
            for number, (start, end) in enumerate(encoding.offsets)
            if starts[number]
            and starts[number + 1]
            and text[start:end].isalpha()
            and encoding.ids[number] != self.tokenizer.unknown
        ]
        draws = [rng.random() for _ in words]
        positions = [number for number, draw in zip(words, draws) if draw < self.share]
        if words and not positions:
            positions = [words[draws.index(min(draws))]]
        ids = list(encoding.ids)
        for position in positions:
            ids[position] = self.tokenizer.mask
        windowed = make_text_windows(self.tokenizer, encoding._replace(ids=ids), self.window_options)
        windows = [
            (window.ids, [number for number, token in enumerate(window.ids) if token == self.tokenizer.mask])
            for window in windowed.windows
        ]
        return MaskedText(
            text,
            [encoding.offsets[position] for position in positions],
            [rng.random() for _ in positions],
            [window for window in windows if window[1]],
            [encoding.ids[position] for position in positions],
        )

    def choose_words(self, masked_texts: Sequence[MaskedText]) -> Iterator[str]:
        """Choose a word for each masked one, in order."""
        windows = [window for masked in masked_texts for window in masked.windows]
        originals = torch.tensor([number for masked in masked_texts for number in masked.originals], dtype=torch.long)
        uniforms = torch.tensor([uniform for masked in masked_texts for uniform in masked.uniforms])
        logits = self.compute_logits(windows)  # m v
        allowed = self.candidate_mask.repeat(len(logits), 1)
        allowed[torch.arange(len(logits)), originals] = False
        scores, ids = logits.masked_fill(~allowed, float("-inf")).topk(min(self.top_k, logits.shape[1]))  # m k
        cumulative = scores.softmax(-1).cumsum(-1)
        rank = (cumulative <= uniforms.unsqueeze(1) * cumulative[:, -1:]).sum(-1).clamp(max=ids.shape[1] - 1)  # m
        for number in ids.gather(1, rank.unsqueeze(1)).squeeze(1).tolist():
            yield self.tokenizer.decode([number]).strip()

    @torch.no_grad()
    def compute_logits(self, windows: Sequence[tuple[list[int], list[int]]]) -> Tensor:
        """Compute the logits of all masked positions, in order: m v."""
        order = sorted(range(len(windows)), key=lambda number: -len(windows[number][0]))
        logits: dict[int, Tensor] = {}
        start, device = 0, self.network.device
        with evaluating(self.network):
            while start < len(order):
                numbers = order[start : start + max(TOKENS_PER_BATCH // len(windows[order[start]][0]), 1)]
                batch, counts = make_masked_batch([windows[number] for number in numbers], self.tokenizer.pad, device)
                outputs = self.network(batch).logits.masked_logits.float().cpu()[:, : len(self.tokenizer)]
                logits.update(zip(numbers, outputs.split(counts)))
                start += len(numbers)
        return torch.cat([torch.zeros(0, len(self.tokenizer)), *(logits[number] for number in range(len(windows)))])


def make_masked_batch(
    windows: Sequence[tuple[list[int], list[int]]], pad: int, device: torch.device
) -> tuple[WindowBatch, list[int]]:
    """Pad windows to a batch; return it with the number of masked positions in each."""
    width = max(len(ids) for ids, _ in windows)
    masked = [row * width + position for row, (_, positions) in enumerate(windows) for position in positions]
    tokens = torch.tensor([ids + [pad] * (width - len(ids)) for ids, _ in windows], device=device)
    lengths = torch.tensor([len(ids) for ids, _ in windows], device=device)
    mask = torch.arange(width, device=device) < lengths.unsqueeze(1)
    batch = WindowBatch(tokens, mask, torch.zeros_like(tokens), torch.tensor(masked, device=device))
    return batch, [len(positions) for _, positions in windows]


def replace_spans(text: str, spans: Sequence[tuple[int, int]], words: Sequence[str]) -> str:
    """Replace spans of a text by words; a capital letter stays one."""
    pieces, position = [], 0
    for (start, end), word in zip(spans, words, strict=True):
        is_capital = text[start].isupper() and word.islower()
        pieces += [text[position:start], word.capitalize() if is_capital else word]
        position = end
    return "".join([*pieces, text[position:]])


def load_masked_model(folder: Path) -> tuple[Any, SubwordTokenizer]:
    """Load a masked language model and its tokenizer: a run, or a Hugging Face folder."""
    if (folder / CONFIG_FILE).is_file():
        return load_huggingface_model(folder)
    checkpoint = load_checkpoint(folder)
    respond = checkpoint.recipe["model"]["respond"]
    if kind_of(RESPONSES, respond) is not PretrainingHeads or "segments" in checkpoint.recipe["model"]:
        raise ConfigError(
            f"{folder} responds with {kind_name(respond)!r}: take a masked language "
            "model, such as a run of bert-pretrain or the folder of a BertForMaskedLM"
        )
    assert isinstance(checkpoint.tokenizer, SubwordTokenizer)  # no other has a mask
    return checkpoint.network, checkpoint.tokenizer


def load_huggingface_model(folder: Path) -> tuple[TextModel, SubwordTokenizer]:
    """Load a BERT or ALBERT with its masked-language-model head from a Hugging Face folder."""
    pretrained = load_encoder(folder)
    if pretrained.tokenizer is None:
        raise ConfigError(f"{folder} has no tokenizer: no tokenizer.json and no vocab.txt")
    encoder, config = pretrained.encoder, pretrained.config
    respond = PretrainingHeads(
        encoder.width,
        encoder.embeddings.tokens.shape[0],
        encoder.embeddings.tokens,
        activation=ACTIVATIONS.get(config.get("hidden_act", "gelu"), "gelu"),  # type: ignore[arg-type]
        epsilon=config.get("layer_norm_eps", 1e-12),
    )
    respond.load_state_dict(find_head_weights(pretrained, folder), strict=False)  # the words are the encoder's
    return TextModel(encoder, respond), pretrained.tokenizer


def find_head_weights(pretrained: Pretrained, folder: Path) -> dict[str, Tensor]:
    """Find the weights of a masked-language-model head under Hugging Face's names."""
    names = {
        f"{name}{suffix}": f"{huggingface_prefix}{suffix}"
        for name, huggingface_prefix in FAMILIES[pretrained.family].head_names.items()
        if name.startswith("vocabulary.")
        for suffix in ([""] if name.endswith(".bias") else [".weight", ".bias"])
    }
    if not names or any(name not in pretrained.unused for name in names.values()):
        raise ConfigError(
            f"{folder} has no masked-language-model head that mnemic reads: take the folder of a BertForMaskedLM, or "
            "train one with bert-pretrain"
        )
    return {name: pretrained.unused[huggingface_key] for name, huggingface_key in names.items()}
