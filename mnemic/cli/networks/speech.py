"""``mnemic read`` for generative networks: answers, continuations and perplexities."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint


def generate_texts(
    checkpoint: "Checkpoint", texts: Sequence[str], *, beams: int, num_words: int, seed: int
) -> list[dict[str, Any]]:
    """Generate an answer or a continuation, or compute the perplexity, of each text."""
    from mnemic.predict.generate import continue_texts, generate_answers, measure_perplexity

    if checkpoint.recipe["model"]["respond"]["kind"] == "seq2seq":
        if num_words:
            raise ValueError("this network answers texts; --words is for language models")
        return [asdict(result) for result in generate_answers(checkpoint, texts, num_beams=beams)]
    if beams > 1:
        raise ValueError("a language model samples its words; --beams is for networks that answer")
    if num_words:
        continuations = continue_texts(checkpoint, texts, max_words=num_words, seed=seed)
        return [{k: v for k, v in asdict(result).items() if k != "ranked"} for result in continuations]
    return [asdict(result) for result in measure_perplexity(checkpoint, texts)]
