"""Learn a subword vocabulary from texts: one function a kind, listed in ``TRAINERS``.

The same texts always give the same vocabulary, of at most ``vocab`` tokens, which spells each of
their characters wherever it stands. ``texts`` are gone through more than once, so an iterator,
which can be gone through only once, is held in memory.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import BpeTrainer, UnigramTrainer, WordPieceTrainer

from mnemic.text.tokenizers.subwords import NAMES, Subwords

SPECIALS = [names[0] for names in NAMES.values()]  # [PAD] [UNK] [CLS] [SEP] [MASK] are ids 0 to 4
LONGEST = 1000  # characters of what may be a word, or a sentence of Chinese
ENDLESS = re.compile(rf"\S{{{LONGEST}}}(?=\S)")
INNER, LAST = "##", "</w>"  # how a piece within a word begins, how its last piece ends


def train_wordpiece(
    texts: Iterable[str], *, vocab: int = 30_000, lowercase: bool = True, coverage: float = 1.0
) -> Subwords:
    """WordPiece on BERT's words (Devlin et al. 2019): Chinese characters and punctuation apart.

    Lower-casing strips accents too, as in BERT uncased. ``coverage`` is the share of the texts'
    characters that the vocabulary has to spell; the rarest beyond it become unknown.
    """
    tokenizer = Tokenizer(models.WordPiece(unk_token=SPECIALS[1]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=INNER)
    kept = _usable(texts, coverage)
    letters = _letters(tokenizer, kept)
    inner = [INNER + letter for letter in letters if _joins(tokenizer, letter)]
    known = _with_room(vocab, letters + inner)
    trainer = WordPieceTrainer(
        vocab_size=vocab,
        special_tokens=known,
        continuing_subword_prefix=INNER,
        show_progress=False,
    )
    tokenizer.train_from_iterator(kept, trainer)
    return _framed(_edited(tokenizer, _only_ours_special))


def train_bpe(
    texts: Iterable[str], *, vocab: int = 30_000, lowercase: bool = False, coverage: float = 1.0
) -> Subwords:
    """Byte-pair encoding of characters (Sennrich et al. 2016); ``coverage`` as in WordPiece."""
    tokenizer = Tokenizer(models.BPE(unk_token=SPECIALS[1], end_of_word_suffix=LAST))
    tokenizer.normalizer = _normalizer(normalizers.NFC(), lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.BPEDecoder(suffix=LAST)
    kept = _usable(texts, coverage)
    letters = _letters(tokenizer, kept)
    known = _with_room(vocab, letters + [letter + LAST for letter in letters])
    trainer = BpeTrainer(
        vocab_size=vocab, special_tokens=known, end_of_word_suffix=LAST, show_progress=False
    )
    tokenizer.train_from_iterator(kept, trainer)
    return _framed(_edited(tokenizer, _only_ours_special))


def train_byte_bpe(texts: Iterable[str], *, vocab: int = 30_000) -> Subwords:
    """Byte-pair encoding of utf-8 bytes (Radford et al. 2019): every text comes back unchanged."""
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    _with_room(vocab, alphabet)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=vocab,
        special_tokens=SPECIALS,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator(_usable(texts), trainer)
    return _framed(tokenizer)


def train_unigram(
    texts: Iterable[str], *, vocab: int = 30_000, lowercase: bool = False, coverage: float = 1.0
) -> Subwords:
    """The unigram language model (Kudo 2018), punctuation apart; ``coverage`` as in WordPiece."""
    tokenizer = Tokenizer(models.Unigram())
    blanks = normalizers.Replace(Regex(r"\s"), " ")
    tokenizer.normalizer = normalizers.Sequence(
        [_normalizer(normalizers.NFKC(), lowercase), blanks]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()]
    )
    tokenizer.decoder = decoders.Metaspace()
    kept = _usable(texts, coverage)
    _with_room(vocab, _letters(tokenizer, kept))
    trainer = UnigramTrainer(
        vocab_size=vocab, special_tokens=SPECIALS, unk_token=SPECIALS[1], show_progress=False
    )
    tokenizer.train_from_iterator(kept, trainer)
    return _framed(_edited(tokenizer, _settle_scores))


TRAINERS = {
    "wordpiece": train_wordpiece,
    "bpe": train_bpe,
    "byte-bpe": train_byte_bpe,
    "unigram": train_unigram,
}


def _usable(texts: Iterable[str], coverage: float = 1.0) -> Iterable[str]:
    """Texts that can be gone through again, with a blank for each character too rare to keep."""
    if isinstance(texts, str):
        raise ValueError("texts is one string; expected several: [text] for a single one")
    if not 0 < coverage <= 1:
        raise ValueError(f"coverage is {coverage}; expected a share above 0 and up to 1")
    again = list(texts) if iter(texts) is texts else texts
    if not any(text.strip() for text in again):
        raise ValueError("there is no text to learn from: the texts are none, or all of them blank")
    if coverage == 1.0:
        return _Cleared(again, {})
    counts: Counter[str] = Counter()
    for text in again:
        counts.update(text)
    allowed = (1 - coverage) * counts.total()
    rare = {}
    for letter, count in sorted(counts.items(), key=lambda pair: (pair[1], pair[0])):
        allowed -= count
        if allowed < 0:
            break
        rare[ord(letter)] = " "
    return _Cleared(again, rare)


@dataclass(frozen=True)
class _Cleared:
    """Texts without some characters, cleared as they are gone through: none is held.

    What goes on for very long without a blank, such as a file in base64, is cut: it is no word, and
    learning would take as long as the square of its length.
    """

    texts: Iterable[str]
    rare: dict[int, str]

    def __iter__(self) -> Iterator[str]:
        for text in self.texts:
            kept = text.translate(self.rare) if self.rare else text
            yield ENDLESS.sub(r"\g<0> ", kept) if len(kept) > LONGEST else kept


def _letters(tokenizer: Tokenizer, texts: Iterable[str]) -> list[str]:
    """The characters that the model itself gets to see, in order."""
    normal: set[str] = set()
    for text in texts:
        normal.update(tokenizer.normalizer.normalize_str(text))
    seen = (piece for letter in normal for piece, _ in _pieces(tokenizer, letter))
    return sorted({letter for piece in seen for letter in piece})


def _joins(tokenizer: Tokenizer, letter: str) -> bool:
    """Whether a letter can stand within a word, as no Chinese character can in WordPiece."""
    return len(_pieces(tokenizer, tokenizer.normalizer.normalize_str(f"a{letter}a"))) == 1


def _pieces(tokenizer: Tokenizer, text: str) -> list[tuple[str, tuple[int, int]]]:
    return tokenizer.pre_tokenizer.pre_tokenize_str(text)


def _with_room(vocab: int, letters: list[str]) -> list[str]:
    """Special tokens and letters, to be given to the trainer as special: left to itself it numbers
    a word's inner letters in the order of a hash, and breaks later ties by these numbers."""
    known = SPECIALS + letters
    if vocab < len(known):
        raise ValueError(
            f"vocab={vocab} has no room for {len(SPECIALS)} special tokens and {len(letters)} "
            f"letters; ask for at least {len(known)}, for less coverage (0.9995 leaves rare "
            "characters out) or for byte-bpe, which has 256 letters"
        )
    return known


def _normalizer(form: normalizers.Normalizer, lowercase: bool) -> normalizers.Normalizer:
    # Lower-casing comes first: it can leave an accent (İ) that the form then composes.
    return normalizers.Sequence([normalizers.Lowercase(), form]) if lowercase else form


def _framed(tokenizer: Tokenizer) -> Subwords:
    """The tokenizer with BERT's template: [CLS] a [SEP] b [SEP]."""
    cls, sep = SPECIALS[2], SPECIALS[3]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {sep} $B:1 {sep}:1",
        special_tokens=[(cls, SPECIALS.index(cls)), (sep, SPECIALS.index(sep))],
    )
    return Subwords(tokenizer)


def _edited(tokenizer: Tokenizer, edit: Callable[[dict[str, Any]], None]) -> Tokenizer:
    content = json.loads(tokenizer.to_str())
    edit(content)
    return Tokenizer.from_str(json.dumps(content))


def _only_ours_special(content: dict[str, Any]) -> None:
    """Make the letters, which were special for the training, ordinary again."""
    content["added_tokens"] = [
        token for token in content["added_tokens"] if token["content"] in SPECIALS
    ]


def _settle_scores(content: dict[str, Any]) -> None:
    """Undo what the unigram trainer leaves to the order of a hash: the last digits of sums, and
    which forced letter got which of the scores that it spaces 0.0001 apart from the lowest on."""
    ours, learned = (
        content["model"]["vocab"][: len(SPECIALS)],
        content["model"]["vocab"][len(SPECIALS) :],
    )
    lowest = min(score for _, score in learned)
    forced = lowest + 0.0001 * sum(len(piece) == 1 for piece, _ in learned)
    scores = {
        piece: round(lowest if len(piece) == 1 and score <= forced else score, 3)
        for piece, score in learned
    }
    content["model"]["vocab"] = ours + sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
