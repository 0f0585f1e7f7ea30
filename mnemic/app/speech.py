"""``mnemic read`` for networks that speak: answers, continuations, and how likely a text is."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mnemic.learn.checkpoint import Checkpoint


def speech_of(
    checkpoint: "Checkpoint", texts: Sequence[str], *, beams: int, words: int, seed: int
) -> list[dict[str, Any]]:
    """What the network says of each text, as plain values."""
    if checkpoint.recipe["model"]["respond"]["kind"] == "sequence":
        if words:
            raise ValueError("this network answers texts; --words is for language models")
        return [asdict(own) for own in checkpoint.say(texts, beams=beams)]
    if beams > 1:
        raise ValueError("a language model goes on by dice; --beams is for networks that answer")
    if words:
        said = checkpoint.go_on(texts, words=words, seed=seed)
        return [{k: v for k, v in asdict(own).items() if k != "ranked"} for own in said]
    return [asdict(own) for own in checkpoint.measure(texts)]
