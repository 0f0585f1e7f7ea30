"""Subword tokenizers: trained here or read from any Hugging Face ``tokenizer.json``.

They differ in what ``decode(encode(text))`` gives back. ``byte-bpe`` loses nothing. The others lose
how white space was written and characters they never saw, and beyond that: ``bpe`` how an accent
was composed and the blanks around punctuation, ``unigram`` compatibility forms (``ﬁ`` becomes
``fi``), ``wordpiece`` control characters, the blanks around punctuation and, when it is
lower-cased, case and accents. Offsets quote the original text, whatever the kind.
"""

import json
from collections.abc import Iterable, Sequence
from itertools import count, takewhile
from pathlib import Path

import tokenizers

from mnemic.text.tokenizers.contract import Encoding, SpecialTokens, write_tokenizer_file
from mnemic.text.tokenizers.offsets import align_offsets

# The special tokens of BERT and RoBERTa, by their role in a network.
SPECIAL_NAMES = {
    "pad": ("[PAD]", "<pad>"),
    "unknown": ("[UNK]", "<unk>"),
    "cls": ("[CLS]", "<s>"),
    "sep": ("[SEP]", "</s>"),
    "mask": ("[MASK]", "<mask>"),
}


SENTINEL_NAME = "<extra_id_{}>"  # T5's spelling


class SubwordTokenizer:
    """Convert text to subword ids and back, through Hugging Face ``tokenizers``.

    A text is only ever a text: "[SEP]" in it is five characters and never the special token, which
    is available by role (``sep``) or by name (``id_of``). Truncation and padding of the given
    tokenizer are switched off. Segments tell the two texts of a pair apart even where the network
    does not: a RoBERTa takes zeros instead.
    """

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        tokenizer = tokenizers.Tokenizer.from_str(tokenizer.to_str())  # the caller's is not changed
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._content = tokenizer.to_str(pretty=True)
        self.kind = _detect_kind(self._content)
        self._ids = tokenizer.get_vocab()
        if not self._ids:
            raise ValueError("the tokenizer has an empty vocabulary; train it first")
        by_id = {number: piece for piece, number in self._ids.items()}
        # A file may skip ids; a network still needs a row for each of them.
        self.pieces = tuple(by_id.get(number, "") for number in range(max(by_id) + 1))
        self._roles = {
            role: self._ids[name]
            for role, names in SPECIAL_NAMES.items()
            for name in reversed(names)  # the first one wins
            if name in self._ids
        }
        self.special_ids = _find_special_ids(tokenizer, self._roles)
        self._single_template, self._pair_template = _read_templates(tokenizer)
        # From here on this class adds the special tokens; the post-processor would only trim the
        # offsets of blanks to nothing.
        tokenizer.post_processor = None
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer

    def __len__(self) -> int:
        return len(self.pieces)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def __eq__(self, tokenizer: object) -> bool:
        return isinstance(tokenizer, SubwordTokenizer) and self._content == tokenizer._content

    def __hash__(self) -> int:
        return hash(self._content)

    def reads_like(self, tokenizer: "SubwordTokenizer") -> bool:
        """Whether another tokenizer gives every text the same ids, though its file may differ."""
        first, second = (json.loads(content) for content in (self._content, tokenizer._content))
        steps = ("normalizer", "pre_tokenizer", "model")
        same_steps = all(first.get(step) == second.get(step) for step in steps)
        templates = [(reader._single_template, reader._pair_template) for reader in (self, tokenizer)]
        return same_steps and templates[0] == templates[1] and self.special_ids == tokenizer.special_ids

    @property
    def pad(self) -> int:
        return self._role_id("pad")

    @property
    def unknown(self) -> int:
        return self._role_id("unknown")

    @property
    def cls(self) -> int:
        """The id of the token that begins every input."""
        return self._role_id("cls")

    @property
    def sep(self) -> int:
        """The id of the token that ends every text."""
        return self._role_id("sep")

    @property
    def mask(self) -> int:
        """The id of the mask token."""
        return self._role_id("mask")

    @property
    def sentinels(self) -> list[int]:
        """The ids of tokens that stand for spans, in order; none in most tokenizers."""
        names = (SENTINEL_NAME.format(number) for number in count())
        return [self._ids[name] for name in takewhile(self._ids.__contains__, names)]

    def id_of(self, token: str) -> int:
        """Return the id of a piece, spelled as in the vocabulary (``##ing``).

        ValueError if the vocabulary does not have it.
        """
        if token not in self._ids:
            raise ValueError(
                f"{token!r} is not among the {len(self)} pieces of this {self.kind} vocabulary; "
                "the tokens of a text come from encode(text)"
            )
        return self._ids[token]

    def name_of(self, role: str) -> str | None:
        """Return the spelling of a role's token ("pad", "mask" …); None if there is none."""
        return self.pieces[self._roles[role]] if role in self._roles else None

    def encode(self, text: str, pair: str | None = None, *, special: bool = True) -> Encoding:
        """Tokenize a text or a pair, with the special tokens of the tokenizer's template."""
        encoding = Encoding([], [], [], [])
        template = self.special_tokens(pair=pair is not None)
        if special:
            self._append_tokens(encoding, template.before, [(0, 0)] * len(template.before), 0)
        for segment, string in enumerate([text] if pair is None else [text, pair]):
            self._append_text(encoding, string, segment)
            if special:
                closing = template.after if pair is None or segment else template.between
                self._append_tokens(encoding, closing, [(len(string), len(string))] * len(closing), segment)
        return encoding

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each text, computed in parallel and without offsets.

        Offsets take most of the time of ``encode``.
        """
        try:
            encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        except TypeError:  # ``encode`` reports the text at fault
            return [self.encode(text, special=False).ids for text in texts]
        return [self._replace_specials(encoding.ids) for encoding in encodings]

    def special_tokens(self, *, pair: bool = False) -> SpecialTokens:
        """Return the special tokens around a text or a pair, by the tokenizer's template."""
        return self._pair_template if pair else self._single_template

    def decode(self, ids: Iterable[int]) -> str:
        """Convert ids back to text, without special tokens; unknown pieces stay visible."""
        text_ids = [number for number in ids if number not in self.special_ids]
        if invalid := [number for number in text_ids if not 0 <= number < len(self)]:
            raise ValueError(f"no piece has the id {invalid[0]}; ids go from 0 to {len(self) - 1}")
        return self._tokenizer.decode(text_ids, skip_special_tokens=False)

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.json``, which Hugging Face tools read as well."""
        content = json.dumps(json.loads(self._content), ensure_ascii=False, separators=(",", ":"))
        write_tokenizer_file(folder, content)  # two thirds of the indented form

    def _role_id(self, role: str) -> int:
        """Return the id of a special token by its role; ValueError if there is none."""
        if role not in self._roles:
            names = " or ".join(SPECIAL_NAMES[role])
            raise ValueError(f"this {self.kind} tokenizer has no {role} token: no {names} in it")
        return self._roles[role]

    def _append_text(self, encoding: Encoding, text: str, segment: int) -> None:
        """Tokenize a text and append its tokens to an encoding."""
        try:
            tokens = self._tokenizer.encode(text, add_special_tokens=False)
        except TypeError as error:
            raise ValueError(f"{text[:40]!r} is no unicode text: a lone surrogate in it") from error
        ids = self._replace_specials(tokens.ids)
        self._append_tokens(encoding, ids, align_offsets(text, tokens.tokens, tokens.offsets), segment)

    def _replace_specials(self, ids: list[int]) -> list[int]:
        """Replace special ids by ``unknown``.

        A unigram model holds its special tokens as pieces and would read them out of a text.
        """
        if self.special_ids.isdisjoint(ids):
            return ids
        return [self.unknown if number in self.special_ids else number for number in ids]

    def _append_tokens(self, encoding: Encoding, ids: list[int], offsets: list[tuple[int, int]], segment: int) -> None:
        """Append tokens to an encoding."""
        encoding.ids.extend(ids)
        encoding.tokens.extend(self.pieces[number] for number in ids)
        encoding.offsets.extend(offsets)
        encoding.segments.extend([segment] * len(ids))


def _detect_kind(content: str) -> str:
    """Detect a tokenizer's kind from its JSON: "byte-bpe", "wordpiece" …"""
    components = json.loads(content)
    if '"ByteLevel"' in json.dumps([components["pre_tokenizer"], components["decoder"]]):
        return "byte-bpe"
    return components["model"]["type"].lower()


def _find_special_ids(tokenizer: tokenizers.Tokenizer, roles: dict[str, int]) -> frozenset[int]:
    """Collect the ids of all special tokens but ``unknown``."""
    added = tokenizer.get_added_tokens_decoder().items()
    special = {number for number, token in added if token.special}.union(roles.values())
    return frozenset(special - {roles.get("unknown", -1)})


def _read_templates(tokenizer: tokenizers.Tokenizer) -> tuple[SpecialTokens, SpecialTokens]:
    """Read the special tokens around a text and around a pair off an encoded example.

    The example has at least one token.
    """
    candidates = ["a", *sorted(tokenizer.get_vocab())]
    text = next(t for t in candidates if tokenizer.encode(t, add_special_tokens=False).ids)
    before, after, _ = _read_template(tokenizer.encode(text))
    return SpecialTokens(before, [], after), _read_template(tokenizer.encode(text, text))


def _read_template(encoding: tokenizers.Encoding) -> SpecialTokens:
    """Read the special tokens before, between and after the texts of an encoding."""
    template = SpecialTokens([], [], [])
    gap = 0
    for number, sequence_id in zip(encoding.ids, encoding.sequence_ids):
        if sequence_id is None:
            template[gap].append(number)
        else:
            gap = sequence_id + 1
    return template
