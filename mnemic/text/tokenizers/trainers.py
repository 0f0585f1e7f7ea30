"""Train a subword tokenizer on texts: one function per kind, listed in ``TRAINERS``.

The same texts always give the same vocabulary, of at most ``vocab`` tokens, which spells each of
their characters in any position. ``sentinels`` of them are special tokens that stand for spans, as
in T5. ``texts`` are iterated over more than once, so a one-shot iterator is first read into memory.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import BpeTrainer, UnigramTrainer, WordPieceTrainer

from mnemic.text.tokenizers.subwords import SENTINEL_NAME, SPECIAL_NAMES, SubwordTokenizer

# [PAD] [UNK] [CLS] [SEP] [MASK] are ids 0 to 4
SPECIAL_TOKENS = [names[0] for names in SPECIAL_NAMES.values()]
MAX_WORD_LENGTH = 1000  # characters of a word, or of a sentence of Chinese
OVERLONG_WORD = re.compile(rf"\S{{{MAX_WORD_LENGTH}}}(?=\S)")
CONTINUATION_PREFIX, END_OF_WORD = ("##", "</w>")  # of a piece inside a word (WordPiece), of its last piece (BPE)


def train_wordpiece(
    texts: Iterable[str], *, vocab: int = 30_000, lowercase: bool = True, coverage: float = 1.0, sentinels: int = 0
) -> SubwordTokenizer:
    """Train a WordPiece tokenizer on BERT's words (Devlin et al. 2019).

    Chinese characters and punctuation are words by themselves. Lower-casing strips accents too, as
    in BERT uncased. ``coverage`` is the fraction of the texts' characters that the vocabulary has
    to spell; the rarest beyond it become unknown.
    """
    tokenizer = Tokenizer(models.WordPiece(unk_token=SPECIAL_TOKENS[1]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=CONTINUATION_PREFIX)
    prepared_texts = _prepare_texts(texts, coverage)
    letters = _list_characters(tokenizer, prepared_texts)
    normalize, split = tokenizer.normalizer.normalize_str, tokenizer.pre_tokenizer.pre_tokenize_str
    # A letter that can stand inside a word: no Chinese character can.
    inner_letters = [letter for letter in letters if len(split(normalize(f"a{letter}a"))) == 1]
    continuations = [CONTINUATION_PREFIX + letter for letter in inner_letters]
    initial_tokens = _initial_tokens(vocab - sentinels, letters + continuations)
    trainer = WordPieceTrainer(
        vocab_size=vocab - sentinels,
        special_tokens=initial_tokens,
        continuing_subword_prefix=CONTINUATION_PREFIX,
        show_progress=False,
    )
    tokenizer.train_from_iterator(prepared_texts, trainer)
    return add_bert_template(_edit_json(tokenizer, _unmark_letters), sentinels)


def train_bpe(
    texts: Iterable[str], *, vocab: int = 30_000, lowercase: bool = False, coverage: float = 1.0, sentinels: int = 0
) -> SubwordTokenizer:
    """Train a tokenizer by byte-pair encoding of characters (Sennrich et al. 2016).

    ``coverage`` is as in WordPiece.
    """
    tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL_TOKENS[1], end_of_word_suffix=END_OF_WORD))
    tokenizer.normalizer = _make_normalizer(normalizers.NFC(), lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.BPEDecoder(suffix=END_OF_WORD)
    prepared_texts = _prepare_texts(texts, coverage)
    letters = _list_characters(tokenizer, prepared_texts)
    initial_tokens = _initial_tokens(vocab - sentinels, letters + [letter + END_OF_WORD for letter in letters])
    trainer = BpeTrainer(
        vocab_size=vocab - sentinels, special_tokens=initial_tokens, end_of_word_suffix=END_OF_WORD, show_progress=False
    )
    tokenizer.train_from_iterator(prepared_texts, trainer)
    return add_bert_template(_edit_json(tokenizer, _unmark_letters), sentinels)


def train_byte_bpe(texts: Iterable[str], *, vocab: int = 30_000, sentinels: int = 0) -> SubwordTokenizer:
    """Train a lossless tokenizer by byte-pair encoding of UTF-8 bytes (Radford et al. 2019)."""
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    _initial_tokens(vocab - sentinels, alphabet)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=vocab - sentinels, special_tokens=SPECIAL_TOKENS, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(_prepare_texts(texts), trainer)
    return add_bert_template(tokenizer, sentinels)


def train_unigram(
    texts: Iterable[str], *, vocab: int = 30_000, lowercase: bool = False, coverage: float = 1.0, sentinels: int = 0
) -> SubwordTokenizer:
    """Train a unigram language model tokenizer (Kudo 2018).

    Punctuation is split off; ``coverage`` is as in WordPiece.
    """
    tokenizer = Tokenizer(models.Unigram())
    blanks = normalizers.Replace(Regex(r"\s"), " ")
    tokenizer.normalizer = normalizers.Sequence([_make_normalizer(normalizers.NFKC(), lowercase), blanks])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()])
    tokenizer.decoder = decoders.Metaspace()
    prepared_texts = _prepare_texts(texts, coverage)
    _initial_tokens(vocab - sentinels, _list_characters(tokenizer, prepared_texts))
    trainer = UnigramTrainer(
        vocab_size=vocab - sentinels, special_tokens=SPECIAL_TOKENS, unk_token=SPECIAL_TOKENS[1], show_progress=False
    )
    tokenizer.train_from_iterator(prepared_texts, trainer)
    return add_bert_template(_edit_json(tokenizer, _make_scores_deterministic), sentinels)


TRAINERS = {"wordpiece": train_wordpiece, "bpe": train_bpe, "byte-bpe": train_byte_bpe, "unigram": train_unigram}


def _prepare_texts(texts: Iterable[str], coverage: float = 1.0) -> Iterable[str]:
    """Check the training texts and replace characters too rare to keep by blanks.

    The result can be iterated over more than once.
    """
    if isinstance(texts, str):
        raise ValueError("texts is one string; expected several: [text] for a single one")
    if not 0 < coverage <= 1:
        raise ValueError(f"coverage is {coverage}; expected a share above 0 and up to 1")
    reusable = list(texts) if iter(texts) is texts else texts
    if not any(text.strip() for text in reusable):
        raise ValueError("there is no text to learn from: the texts are none, or all of them blank")
    if coverage == 1.0:
        return _CleanTexts(reusable, {})
    counts = Counter(chain.from_iterable(reusable))
    max_dropped = (1 - coverage) * counts.total()
    rare = {}
    for letter, count in sorted(counts.items(), key=lambda pair: (pair[1], pair[0])):
        max_dropped -= count
        if max_dropped < 0:
            break
        rare[ord(letter)] = " "
    return _CleanTexts(reusable, rare)


@dataclass(frozen=True)
class _CleanTexts:
    """Texts without rare characters, cleaned on the fly to save memory.

    A very long run without a blank, such as a file in base64, is cut: it is no word, and training
    takes quadratic time in its length.
    """

    texts: Iterable[str]
    rare: dict[int, str]

    def __iter__(self) -> Iterator[str]:
        for text in self.texts:
            cleaned = text.translate(self.rare) if self.rare else text
            yield (OVERLONG_WORD.sub(r"\g<0> ", cleaned) if len(cleaned) > MAX_WORD_LENGTH else cleaned)


def _list_characters(tokenizer: Tokenizer, texts: Iterable[str]) -> list[str]:
    """List the characters that the model sees after normalization, in order."""
    characters = set(chain.from_iterable(map(tokenizer.normalizer.normalize_str, texts)))
    pieces = (piece for letter in characters for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(letter))
    return sorted({letter for piece in pieces for letter in piece})


def _initial_tokens(vocab: int, letters: list[str]) -> list[str]:
    """Return the special tokens and letters; ValueError if ``vocab`` is too small for them.

    All of them go to the trainer as special tokens: by itself it numbers a word's inner letters in
    the order of a hash, and breaks later ties by these numbers.
    """
    tokens = SPECIAL_TOKENS + letters
    if vocab < len(tokens):
        raise ValueError(
            f"vocab={vocab} has no room for {len(SPECIAL_TOKENS)} special tokens and "
            f"{len(letters)} letters; ask for at least {len(tokens)}, for less coverage (0.9995 "
            "leaves rare characters out) or for byte-bpe, which has 256 letters"
        )
    return tokens


def _make_normalizer(form: normalizers.Normalizer, lowercase: bool) -> normalizers.Normalizer:
    """Combine a Unicode normal form with optional lower-casing."""
    # Lower-casing comes first: it can leave an accent (İ) that the form then composes.
    return normalizers.Sequence([normalizers.Lowercase(), form]) if lowercase else form


def add_bert_template(tokenizer: Tokenizer, sentinels: int = 0) -> SubwordTokenizer:
    """Add BERT's template, [CLS] a [SEP] b [SEP], and sentinels, and wrap the tokenizer."""
    names = [SENTINEL_NAME.format(number) for number in range(sentinels)]
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    cls, sep = SPECIAL_TOKENS[2], SPECIAL_TOKENS[3]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {sep} $B:1 {sep}:1",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in (cls, sep)],
    )
    return SubwordTokenizer(tokenizer)


def _edit_json(tokenizer: Tokenizer, edit: Callable[[dict[str, Any]], None]) -> Tokenizer:
    """Edit a tokenizer through its JSON."""
    content = json.loads(tokenizer.to_str())
    edit(content)
    return Tokenizer.from_str(json.dumps(content))


def _unmark_letters(content: dict[str, Any]) -> None:
    """Make the letters, which were special during training, ordinary tokens again."""
    content["added_tokens"] = [token for token in content["added_tokens"] if token["content"] in SPECIAL_TOKENS]


def _make_scores_deterministic(content: dict[str, Any]) -> None:
    """Remove hash-order noise from the scores of a trained unigram model.

    The trainer leaves to the order of a hash the last digits of sums, and which forced letter gets
    which of the scores that it spaces 0.0001 apart from the lowest on.
    """
    vocabulary = content["model"]["vocab"]
    specials, learned = vocabulary[: len(SPECIAL_TOKENS)], vocabulary[len(SPECIAL_TOKENS) :]
    lowest = min(score for _, score in learned)
    forced = lowest + 0.0001 * sum(len(piece) == 1 for piece, _ in learned)
    scores = {piece: round(lowest if len(piece) == 1 and score <= forced else score, 3) for piece, score in learned}
    content["model"]["vocab"] = specials + sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
