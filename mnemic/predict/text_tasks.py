"""Ask a trained network about texts: ``classify``, ``rate``, ``tag``, ``answer``, ``embed``.

Each takes a checkpoint, texts, and how long texts are read: as in training, unless ``overlap`` or
``truncation`` say otherwise.
"""

from collections.abc import Iterable, Sequence
from math import exp
from typing import TYPE_CHECKING, Any

from mnemic.data import DATASETS, TEXTS
from mnemic.data.text_tasks.batches import TextSet
from mnemic.data.text_tasks.encode_windows import asked_set, first_tokens, labelled_set, tagged_set
from mnemic.data.text_tasks.examples import Asked, Labelled, Tagged
from mnemic.predict import results
from mnemic.predict.slot_evidence import Looks
from mnemic.predict.windows import class_scores, spans, tags, vectors, vectors_and_keys
from mnemic.recipe import ConfigError, build
from mnemic.text import Room
from mnemic.text.bio import entities
from mnemic.text.rules import words_of
from mnemic.text.windows import Truncation

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint

Text = str | tuple[str, str]
# What each kind of response can be asked, by the name of the method.
METHODS = {"classes": ("classify", "rate"), "tags": ("tag",), "spans": ("answer",), "masked": ()}
OTHERS = {"next": "go_on and measure", "sequence": "say"}  # of ``learn.say``


def classify(
    checkpoint: "Checkpoint",
    texts: Sequence[Text],
    *,
    overlap: int | None = None,
    truncation: Truncation | None = None,
) -> list[results.Classified]:
    """The class of each text; of a pair of texts where the network compares two."""
    allowed(checkpoint, "classify")
    if not checkpoint.labels:
        raise ConfigError("this network gives numbers, not classes; use rate")
    own = labelled(checkpoint, texts, room_of(checkpoint, overlap, truncation))
    found, looks = [], Looks(own)
    chances = class_scores(checkpoint.network, own, looks.watch).softmax(1)
    for number, (chance, (seen, total)) in enumerate(zip(chances, own.count.tolist())):
        order = chance.argsort(descending=True).tolist()
        ranked = tuple((checkpoint.labels[label], float(chance[label])) for label in order)
        slots = looks.of_text(number)
        found.append(results.Classified(*ranked[0], ranked, seen, total, slots))
    return found


def rate(
    checkpoint: "Checkpoint",
    texts: Sequence[Text],
    *,
    overlap: int | None = None,
    truncation: Truncation | None = None,
) -> list[results.Rated]:
    """The number of each text, or pair, where the network was trained on numbers."""
    allowed(checkpoint, "rate")
    if checkpoint.labels:
        raise ConfigError("this network gives classes, not numbers; use classify")
    own = labelled(checkpoint, texts, room_of(checkpoint, overlap, truncation))
    looks = Looks(own)
    numbers = class_scores(checkpoint.network, own, looks.watch).squeeze(1).tolist()
    return [
        results.Rated(rated, seen, total, looks.of_text(number))
        for number, (rated, (seen, total)) in enumerate(zip(numbers, own.count.tolist()))
    ]


def tag(
    checkpoint: "Checkpoint",
    texts: Sequence[str],
    *,
    overlap: int | None = None,
    truncation: Truncation | None = None,
) -> list[results.Tagged]:
    """The named entities of each text."""
    allowed(checkpoint, "tag")
    room = room_of(checkpoint, overlap, truncation)
    examples = [Tagged(text, tuple(words_of(text)), ()) for text in strings(texts)]
    own = tagged_set(examples, checkpoint.tokenizer, room, labels=checkpoint.labels)
    found, looks = [], Looks(own)
    said = tags(checkpoint.network, placed(own, checkpoint), looks.watch)
    for number, (example, scores) in enumerate(zip(examples, said)):
        tokens = first_tokens(own.offsets(number), example.words)
        chance, best = scores.softmax(1).max(1)
        sure, names = chance.tolist(), [checkpoint.labels[label] for label in best.tolist()]
        named = tuple(
            results.Entity(
                one.kind,
                example.words[one.first][0],
                example.words[one.last][1],
                min(sure[one.first : one.last + 1]),
                looks.of_token(number, tokens[one.first] or 0),
            )
            for one in entities(names)
        )
        found.append(results.Tagged(named, *own.count[number].tolist()))
    return found


def answer(
    checkpoint: "Checkpoint",
    question: str,
    text: str,
    *,
    overlap: int | None = None,
    truncation: Truncation | None = None,
) -> results.Answered:
    """The stretch of ``text`` that answers ``question`` best, and how likely there is none."""
    (found,) = answer_all(checkpoint, [(question, text)], overlap=overlap, truncation=truncation)
    return found


def answer_all(
    checkpoint: "Checkpoint",
    asked: Sequence[tuple[str, str]],
    *,
    overlap: int | None = None,
    truncation: Truncation | None = None,
) -> list[results.Answered]:
    """As ``answer``, for many pairs of question and text at once."""
    allowed(checkpoint, "answer")
    room = room_of(checkpoint, overlap, truncation)
    examples = []
    for pair in asked:
        question, text = strings(pair)
        examples.append(Asked(question, text, (), -1, ""))
    if any(not own.question.strip() for own in examples):
        raise ConfigError("the question is empty; ask for example 'Who wrote it?'")
    own = asked_set(examples, checkpoint.tokenizer, room)
    longest = checkpoint.network.respond.longest
    found, looks = [], Looks(own)
    said = spans(checkpoint.network, placed(own, checkpoint), longest, looks.watch)
    for number, (span, (seen, total)) in enumerate(zip(said, own.count.tolist())):
        offsets = own.offsets(number)
        if not offsets:  # nothing to answer with
            found.append(results.Answered(0, 0, 0.0, 1.0, seen, total))
            continue
        start, end = offsets[span.first][0], offsets[span.last][1]
        slots = looks.of_token(number, span.first)
        found.append(results.Answered(start, end, exp(span.score), span.none, seen, total, slots))
    return found


def embed(
    checkpoint: "Checkpoint",
    texts: Sequence[str],
    *,
    overlap: int | None = None,
    truncation: Truncation | None = None,
    keys: bool = False,
) -> results.Embedded:
    """Each text as a vector of length 1, whatever the network was trained for.

    With ``keys`` each sentence of it has one, too: a text is as near as the nearest of them.
    """
    allowed(checkpoint, "embed")
    room = room_of(checkpoint, overlap, truncation)
    examples = [Labelled(text, None, "") for text in strings(texts)]
    own = labelled_set(examples, checkpoint.tokenizer, room, labels=())
    there = placed(own, checkpoint)
    seen, total = (tuple(part.tolist()) for part in own.count.unbind(1))
    if not keys:
        return results.Embedded(vectors(checkpoint.network, there), seen, total)
    found, parts = vectors_and_keys(checkpoint.network, there)
    return results.Embedded(found, seen, total, tuple(parts))


def allowed(checkpoint: "Checkpoint", method: str) -> None:
    """Whether a network can be asked this; an error that says what it can."""
    kind = checkpoint.recipe["model"]["respond"]["kind"]
    if kind in OTHERS:
        raise ConfigError(f"this network cannot {method}; it can {OTHERS[kind]}")
    if checkpoint.recipe["data"].get("kind") not in TEXTS:
        how = "stories: use `mnemic ask`, or mnemic.ask_story"
        if "carry" in checkpoint.recipe["model"]:
            how = "what it has read: use `mnemic read --state`, or remember(text) and then ask"
        raise ConfigError(f"this network cannot {method}; it answers questions about {how}")
    if method not in (*METHODS[kind], "embed"):
        own = METHODS[kind][kind == "classes" and not checkpoint.labels :][:1]
        raise ConfigError(f"this network cannot {method}; it can {' and '.join((*own, 'embed'))}")


def room_of(checkpoint: "Checkpoint", overlap: int | None, truncation: Truncation | None) -> Room:
    """How texts are read: as in training, unless told otherwise."""
    files = build(DATASETS, checkpoint.recipe["data"])
    if "carry" in checkpoint.recipe["model"] and (overlap, truncation) != (None, None):
        raise ConfigError(
            "this network reads all of a text, with a memory across its segments: leave out "
            "overlap and truncation"
        )
    shared = files.overlap if overlap is None else overlap
    return Room(files.length, shared, truncation or files.truncation).check()


def strings(texts: Iterable[Any]) -> list[str]:
    if isinstance(texts, str):
        raise ValueError("texts is one string; expected several: [text] for a single one")
    if not isinstance(texts, Iterable):
        raise ValueError(f"texts are several strings, not {texts!r}")
    found = list(texts)
    if strange := [text for text in found if not isinstance(text, str)]:
        raise ValueError(f"a text is a string, not {strange[0]!r}")
    return found


def labelled(checkpoint: "Checkpoint", texts: Sequence[Text], room: Room) -> TextSet:
    """Texts, or pairs where the network compares two, without labels."""
    if checkpoint.recipe["data"]["kind"] == "pairs":
        if strange := [own for own in texts if isinstance(own, str) or len(own) != 2]:
            raise ValueError(f"this network compares two texts: give pairs, not {strange[0]!r}")
        both = [strings(own) for own in texts]
        examples = [Labelled(first, second, "") for first, second in both]
    else:
        examples = [Labelled(text, None, "") for text in strings(texts)]
    own = labelled_set(examples, checkpoint.tokenizer, room, labels=checkpoint.labels)
    return placed(own, checkpoint)


def placed(texts: TextSet, checkpoint: "Checkpoint") -> TextSet:
    """The texts where the network is."""
    return texts.to(next(checkpoint.network.parameters()).device)
