"""Find the words that a tokenizer of any kind reads as one token."""

from collections.abc import Iterator, Sequence

from mnemic.text.tokenizers.contract import Tokenizer

FORMS = ("{}", " {}")  # some tokenizers have another token for a word after a blank


def match_words(tokenizer: Tokenizer, words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield ``(token id, index)`` of each word that is one token from end to end.

    A word may have two tokens, at the beginning of a text and after a blank. Several words may have
    one, such as "Ann" and "ann" where the tokenizer lower-cases.
    """
    skipped = tokenizer.special_ids | find_unknown_id(tokenizer)
    for form in FORMS:
        texts = [form.format(word) for word in words]
        start = len(form) - len(FORMS[0])
        for index, ids in enumerate(tokenizer.encode_batch(texts)):
            if len(ids) != 1 or ids[0] in skipped or not words[index].strip():
                continue
            # "dog," is no word, though a tokenizer of words drops its comma.
            if tokenizer.encode(texts[index], special=False).offsets == [(start, len(texts[index]))]:
                yield ids[0], index


def find_unknown_id(tokenizer: Tokenizer) -> frozenset[int]:
    """Find the id of unknown words; a tokenizer of bytes may have none."""
    try:
        return frozenset({tokenizer.unknown})
    except ValueError:
        return frozenset()
