"""Ask a trained network about a knowledge base; the answer carries the facts it was read from."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

import torch
from torch import Tensor

from mnemic.checkpoint.folder import Checkpoint
from mnemic.data import DATASETS
from mnemic.data.knowledge.batches import base_questions
from mnemic.data.knowledge.dataset import Sets
from mnemic.data.knowledge.format import KnowledgeError, Question
from mnemic.data.knowledge.key_value import entity
from mnemic.predict.story import OTHERS, Answer, Evidence, few, read_of, taken_of
from mnemic.recipe import build
from mnemic.text import Words

KINDS = ("knowledge", "generated-knowledge")  # of data
ITEMS = {"facts": "fact", "sentences": "sentence"}  # what a slot is, by data.keys; else a window


def knows_base(checkpoint: Checkpoint) -> bool:
    """Whether a network was trained on a knowledge base, and not on stories."""
    return checkpoint.recipe["data"].get("kind") in KINDS


@torch.no_grad()
def ask_base(checkpoint: Checkpoint, question: str) -> Answer:
    """Answer with an entity of the base. The base is that of the network's own recipe.

    The entity that is asked about stands in brackets: ``who directed [The Bat]``.
    """
    if not question.strip():
        raise KnowledgeError("the question is empty; ask for example 'who directed [The Bat]'")
    words = checkpoint.tokenizer
    assert isinstance(words, Words)
    source = build(DATASETS, checkpoint.recipe["data"])
    sets, item = Sets(source, words), ITEMS.get(source.keys, "window")
    asked = base_questions([Question(question, ())], sets.base, words, sets.select)
    chosen = asked.slots[0].tolist()
    if not chosen:
        raise KnowledgeError(
            f"no {item} of the base shares a rare word with {question!r}; spell the entity that is "
            f"asked about as the base does, in brackets: {' or '.join(close(question, sets))}"
        )
    output = checkpoint.network.eval()(asked.batch(torch.tensor([0])).inputs)
    evidence = tuple(
        Evidence(number, sets.shown[chosen[number]], tuple(weights))
        for number, weights in read_of(output).items()
    )
    scores = output.scores[0, 0].masked_fill(~asked.entities, -torch.inf)
    ranked = best_entities(scores, sets.material.names, words)
    unknown = words.unknown_words(question)
    notes = (
        (f"the model does not know {few(unknown)}, left out of the question",) if unknown else ()
    )
    kind = checkpoint.recipe["model"]["memory"]["kind"]
    sizes = (len(evidence), len(chosen))
    return Answer(
        *ranked[0], ranked, evidence, *sizes, notes, memory=kind, taken=taken_of(output), item=item
    )


def close(question: str, sets: Sets) -> list[str]:
    """Entities of the base that are spelled much like the one asked about; else the first two."""
    named = re.search(r"\[(.+?)\]", question)
    names = sorted(sets.material.names)
    found = get_close_matches(named[1], names, 3, 0.7) if named else []
    return [f"[{name}]" for name in found or [own for own in names if own[0].isalpha()][:2]]


def best_entities(
    scores: Tensor, names: Iterable[str], words: Words
) -> tuple[tuple[str, float], ...]:
    """The best answers with their probabilities, spelled as the base spells them."""
    spelled = {words.id_of(entity(name)): name for name in names if entity(name) in words}
    best = scores.softmax(-1).topk(min(OTHERS, int(scores.isfinite().sum())))
    return tuple((spelled[i], p) for p, i in zip(best.values.tolist(), best.indices.tolist()))
