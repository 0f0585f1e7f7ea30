"""``mnemic read`` for networks that speak: answers, continuations, and how likely a text is."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint


def speech_of(
    checkpoint: "Checkpoint", texts: Sequence[str], *, beams: int, words: int, seed: int
) -> list[dict[str, Any]]:
    """What the network says of each text, as plain values."""
    from mnemic.predict.generate import go_on, measure, say

    if checkpoint.recipe["model"]["respond"]["kind"] == "sequence":
        if words:
            raise ValueError("this network answers texts; --words is for language models")
        return [asdict(own) for own in say(checkpoint, texts, beams=beams)]
    if beams > 1:
        raise ValueError("a language model goes on by dice; --beams is for networks that answer")
    if words:
        said = go_on(checkpoint, texts, words=words, seed=seed)
        return [{k: v for k, v in asdict(own).items() if k != "ranked"} for own in said]
    return [asdict(own) for own in measure(checkpoint, texts)]
