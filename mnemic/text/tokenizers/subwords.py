"""Subword tokenizers: ours and any Hugging Face ``tokenizer.json``, behind one class.

They differ in what ``decode(encode(text))`` gives back. ``byte-bpe`` loses nothing. The others
lose how white space was written and characters they never saw, and beyond that: ``bpe`` how an
accent was composed and the blanks around punctuation, ``unigram`` compatibility forms (``ﬁ``
becomes ``fi``), ``wordpiece`` control characters, the blanks around punctuation and, when it is
lower-cased, case and accents. Offsets quote the text as it was given, whatever the kind.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import tokenizers

from mnemic.text.tokenizers.contract import Encoded, Frame, write
from mnemic.text.tokenizers.offsets import settle

# What BERT and RoBERTa call the tokens that a network knows by their role.
NAMES = {
    "pad": ("[PAD]", "<pad>"),
    "unknown": ("[UNK]", "<unk>"),
    "cls": ("[CLS]", "<s>"),
    "sep": ("[SEP]", "</s>"),
    "mask": ("[MASK]", "<mask>"),
}


class Subwords:
    """Pieces of words to ids and back, through Hugging Face ``tokenizers``.

    A text is only ever a text: "[SEP]" in it is five characters and never the special token, for
    which one asks by role (``sep``) or by name (``id_of``). Truncation and padding that the given
    tokenizer may have are switched off. Segments tell the two texts of a pair apart also where the
    network does not: a RoBERTa takes zeros instead.
    """

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        tokenizer = tokenizers.Tokenizer.from_str(tokenizer.to_str())  # the caller's stays as it is
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._content = tokenizer.to_str(pretty=True)
        self.kind = _kind(self._content)
        self._ids = tokenizer.get_vocab()
        if not self._ids:
            raise ValueError("the tokenizer has an empty vocabulary; train it first")
        by_id = {number: piece for piece, number in self._ids.items()}
        # A file may skip ids; a network still needs a row for each of them.
        self.pieces = tuple(by_id.get(number, "") for number in range(max(by_id) + 1))
        self._roles = _roles(self._ids)
        self.specials = _specials(tokenizer, self._roles)
        self._alone, self._paired = _frames(tokenizer)
        # From here on the frame is ours; all that the post-processor would still do is to trim the
        # offsets of blanks to nothing.
        tokenizer.post_processor = None
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer

    def __len__(self) -> int:
        return len(self.pieces)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Subwords) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @property
    def pad(self) -> int:
        return self._role("pad")

    @property
    def unknown(self) -> int:
        return self._role("unknown")

    @property
    def cls(self) -> int:
        """The id of the token that begins every input."""
        return self._role("cls")

    @property
    def sep(self) -> int:
        """The id of the token that ends every text."""
        return self._role("sep")

    @property
    def mask(self) -> int:
        """The id of the token that hides another."""
        return self._role("mask")

    def id_of(self, token: str) -> int:
        """The id of a piece, spelled as in the vocabulary (``##ing``); ValueError if not there."""
        if token not in self._ids:
            raise ValueError(
                f"{token!r} is not among the {len(self)} pieces of this {self.kind} vocabulary; "
                "the tokens of a text come from encode(text)"
            )
        return self._ids[token]

    def name_of(self, role: str) -> str | None:
        """How the token of a role ("pad", "mask" …) is spelled; None if there is none."""
        return self.pieces[self._roles[role]] if role in self._roles else None

    def encode(self, text: str, pair: str | None = None, *, special: bool = True) -> Encoded:
        """The pieces of a text or a pair, framed as the tokenizer's own template says."""
        encoded = Encoded([], [], [], [])
        frame = self.frame(pair=pair is not None)
        if special:
            self._add(encoded, frame.before, [(0, 0)] * len(frame.before), 0)
        for segment, part in enumerate([text] if pair is None else [text, pair]):
            self._add_text(encoded, part, segment)
            if special:
                closing = frame.after if pair is None or segment else frame.between
                self._add(encoded, closing, [(len(part), len(part))] * len(closing), segment)
        return encoded

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """As ``encode``, on all cores at once and without offsets, which take most of the time."""
        try:
            found = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        except TypeError:  # which one it is says ``encode``
            return [self.encode(text, special=False).ids for text in texts]
        return [self._texts_only(own.ids) for own in found]

    def frame(self, *, pair: bool = False) -> Frame:
        """As the tokenizer's own template says."""
        return self._paired if pair else self._alone

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these ids; special tokens are left out, unknown pieces stay visible."""
        kept = [number for number in ids if number not in self.specials]
        if strange := [number for number in kept if not 0 <= number < len(self)]:
            raise ValueError(f"no piece has the id {strange[0]}; ids go from 0 to {len(self) - 1}")
        return self._tokenizer.decode(kept, skip_special_tokens=False)

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.json``, which Hugging Face tools read as well."""
        write(folder, self._content)

    def _role(self, role: str) -> int:
        if role not in self._roles:
            names = " or ".join(NAMES[role])
            raise ValueError(f"this {self.kind} tokenizer has no {role} token: no {names} in it")
        return self._roles[role]

    def _add_text(self, encoded: Encoded, text: str, segment: int) -> None:
        try:
            found = self._tokenizer.encode(text, add_special_tokens=False)
        except TypeError as error:
            raise ValueError(f"{text[:40]!r} is no unicode text: a lone surrogate in it") from error
        ids = self._texts_only(found.ids)
        self._add(encoded, ids, settle(text, found.tokens, found.offsets), segment)

    def _texts_only(self, ids: list[int]) -> list[int]:
        """A unigram model holds its special tokens as pieces and would read them out of a text."""
        if self.specials.isdisjoint(ids):
            return ids
        return [self.unknown if number in self.specials else number for number in ids]

    def _add(
        self, encoded: Encoded, ids: list[int], offsets: list[tuple[int, int]], segment: int
    ) -> None:
        encoded.ids.extend(ids)
        encoded.tokens.extend(self.pieces[number] for number in ids)
        encoded.offsets.extend(offsets)
        encoded.segments.extend([segment] * len(ids))


def _kind(content: str) -> str:
    parts = json.loads(content)
    if '"ByteLevel"' in json.dumps([parts["pre_tokenizer"], parts["decoder"]]):
        return "byte-bpe"
    return parts["model"]["type"].lower()


def _roles(ids: dict[str, int]) -> dict[str, int]:
    """The id of each role that the vocabulary has a name for."""
    named = {role: [name for name in names if name in ids] for role, names in NAMES.items()}
    return {role: ids[names[0]] for role, names in named.items() if names}


def _specials(tokenizer: tokenizers.Tokenizer, roles: dict[str, int]) -> frozenset[int]:
    added = tokenizer.get_added_tokens_decoder().items()
    special = {number for number, token in added if token.special}.union(roles.values())
    return frozenset(special - {roles.get("unknown", -1)})


def _frames(tokenizer: tokenizers.Tokenizer) -> tuple[Frame, Frame]:
    """The frames of a single text and of a pair, read off an input that has at least one token."""
    candidates = ["a", *sorted(tokenizer.get_vocab())]
    text = next(t for t in candidates if tokenizer.encode(t, add_special_tokens=False).ids)
    before, after, _ = _frame(tokenizer.encode(text))
    return Frame(before, [], after), _frame(tokenizer.encode(text, text))


def _frame(encoding: tokenizers.Encoding) -> Frame:
    frame = Frame([], [], [])
    place = 0
    for number, text in zip(encoding.ids, encoding.sequence_ids):
        if text is None:
            frame[place].append(number)
        else:
            place = text + 1
    return frame
