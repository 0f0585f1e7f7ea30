"""Answer questions about a knowledge base, with the facts that the answer was read from."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

import torch
from torch import Tensor

from mnemic.checkpoint.folder import Checkpoint
from mnemic.data import DATASETS
from mnemic.data.knowledge.batches import encode_questions
from mnemic.data.knowledge.dataset import KnowledgeEncoder
from mnemic.data.knowledge.format import KnowledgeError, KnowledgeQuestion
from mnemic.data.knowledge.slots import bracket_entity
from mnemic.predict.story import MAX_ANSWERS, StoryAnswer, collect_evidence, hop_gates_of, quote_words
from mnemic.recipe import build, kind_name, kind_of
from mnemic.text import WordTokenizer

# What a slot holds, by data.keys; else a window.
ITEM_NAMES = {"facts": "fact", "sentences": "sentence"}


def has_knowledge_base(checkpoint: Checkpoint) -> bool:
    """Return whether a network was trained on a knowledge base rather than on stories."""
    return bool(kind_of(DATASETS, checkpoint.recipe["data"]).has_knowledge_base)


@torch.no_grad()
def ask_knowledge_base(checkpoint: Checkpoint, question: str) -> StoryAnswer:
    """Answer a question with an entity of the network's knowledge base.

    The question names its entity in brackets: ``who directed [The Bat]``. The base is read from
    the network's recipe.
    """
    if not question.strip():
        raise KnowledgeError("the question is empty; ask for example 'who directed [The Bat]'")
    tokenizer = checkpoint.tokenizer
    assert isinstance(tokenizer, WordTokenizer)
    data_source = build(DATASETS, checkpoint.recipe["data"])
    encoder, item = (KnowledgeEncoder(data_source, tokenizer), ITEM_NAMES.get(data_source.keys, "window"))
    dataset = encode_questions([KnowledgeQuestion(question, ())], encoder.base, tokenizer, encoder.select)
    slot_ids = dataset.slots[0].tolist()
    if not slot_ids:
        raise KnowledgeError(
            f"no {item} of the base shares a rare word with {question!r}; spell the entity that is "
            "asked about as the base does, in brackets: "
            f"{' or '.join(suggest_entities(question, encoder))}"
        )
    output = checkpoint.network.eval()(dataset.batch(torch.tensor([0])).inputs)
    evidence = collect_evidence(output, [encoder.slot_texts[slot] for slot in slot_ids])
    logits = output.logits[0, 0].masked_fill(~dataset.entities, -torch.inf)
    ranked = rank_entities(logits, encoder.content.names, tokenizer)
    unknown = tokenizer.find_unknown_words(question)
    notes = (f"the model does not know {quote_words(unknown)}, left out of the question",) if unknown else ()
    kind = kind_name(checkpoint.recipe["model"]["memory"])
    sizes = (len(evidence), len(slot_ids))
    return StoryAnswer(*ranked[0], ranked, evidence, *sizes, notes, memory=kind, taken=hop_gates_of(output), item=item)


def suggest_entities(question: str, encoder: KnowledgeEncoder) -> list[str]:
    """Suggest entities spelled like the question's, or the first two of the base."""
    match = re.search(r"\[(.+?)\]", question)
    names = sorted(encoder.content.names)
    matches = get_close_matches(match[1], names, 3, 0.7) if match else []
    return [f"[{name}]" for name in matches or [candidate for candidate in names if candidate[0].isalpha()][:2]]


def rank_entities(logits: Tensor, names: Iterable[str], tokenizer: WordTokenizer) -> tuple[tuple[str, float], ...]:
    """Rank the most probable entities: (name as in the base, probability), best first."""
    names_by_id = {tokenizer.id_of(bracket_entity(name)): name for name in names if bracket_entity(name) in tokenizer}
    top = logits.softmax(-1).topk(min(MAX_ANSWERS, int(logits.isfinite().sum())))
    return tuple(
        (names_by_id[token_id], probability) for probability, token_id in zip(top.values.tolist(), top.indices.tolist())
    )
