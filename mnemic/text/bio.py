"""Decode BIO tags into entities."""

from collections.abc import Sequence
from typing import NamedTuple


class EntitySpan(NamedTuple):
    """An entity's kind and its words, from ``first`` to ``last`` inclusive."""

    kind: str
    first: int
    last: int


def decode_bio_tags(tags: Sequence[str]) -> list[EntitySpan]:
    """Decode a sequence of BIO tags (B-…, I-… and O) into entity spans.

    As in seqeval's default, an I- that continues no entity of its kind begins one.
    """
    entities: list[EntitySpan] = []
    previous_tag = "O"
    for index, tag in enumerate(tags):
        kind = tag[2:]
        if tag != "O":
            if tag.startswith("I-") and previous_tag != "O" and previous_tag[2:] == kind:
                entities[-1] = entities[-1]._replace(last=index)
            else:
                entities.append(EntitySpan(kind, index, index))
        previous_tag = tag
    return entities
