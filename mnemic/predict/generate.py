"""Let a trained network speak: ``say`` an answer, ``go_on`` with a text, ``measure`` one.

``say`` is for networks that answer a text with a text (data ``sequences``, ``dates``); the others
are for language models (data ``words``).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from mnemic.data import DATASETS
from mnemic.data.language_modeling.batches import END, joined, word_set
from mnemic.data.seq2seq.batches import SequenceSet, sequence_set
from mnemic.data.seq2seq.dataset import subwords
from mnemic.data.text_tasks.examples import Labelled
from mnemic.encode import Recurrent
from mnemic.predict.perplexity import figures_of, losses
from mnemic.predict.results import Measured, Spoken
from mnemic.predict.text_tasks import strings
from mnemic.recipe import ConfigError, build
from mnemic.respond.generate import NEVER, Said, beam, sample
from mnemic.text import Words

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint

AT_ONCE = 256  # texts a batch: memory, not results, depends on it


def say(checkpoint: "Checkpoint", texts: Sequence[str], *, beams: int = 1) -> list[Spoken]:
    """The answer to each text: the likeliest word each time, or the best of ``beams`` texts."""
    needs(checkpoint, "sequence", "say")
    examples = [Labelled(text, None, "") for text in strings(texts)]
    own = sequence_set(examples, subwords(checkpoint.tokenizer), checkpoint.sizes["longest"])
    placed = own.to(device_of(checkpoint))
    found = []
    for said, (seen, total) in zip(spoken(checkpoint.network, placed, beams), own.count.tolist()):
        ranked = tuple(said)
        found.append(Spoken(*ranked[0], ranked, seen, total))
    return found


def go_on(
    checkpoint: "Checkpoint",
    texts: Sequence[str],
    *,
    words: int = 20,
    seed: int = 0,
    temperature: float = 1.0,
    top: int = 0,
    share: float = 1.0,
) -> list[Spoken]:
    """Go on with each text by dice, for so many ``words`` or to the end of a document.

    Text and words together are what the network reads at once (``data.length``): of a longer text
    only the end is seen, and the result says how much. ``temperature``, ``top`` and ``share`` are
    those of ``generate.sample``. Each text has dice of its own. "Unknown" is never said: scores are
    among the other words.
    """
    needs(checkpoint, "next", "go on")
    room = checkpoint.sizes["longest"] - words
    if room < 1 or words < 1:
        most = checkpoint.sizes["longest"] - 1
        raise ConfigError(f"words is from 1 to {most}, for this network, not {words}")
    mark = checkpoint.tokenizer.id_of(END)
    how: dict[str, Any] = {"temperature": temperature, "top": top, "share": share}
    found = []
    for ids in checkpoint.tokenizer.encode_all(strings(texts)):
        dice = torch.Generator(device=device_of(checkpoint)).manual_seed(seed)
        given = [mark, *ids][-room:]
        said = sample(*begun(checkpoint, given), end=mark, most=words, dice=dice, **how)
        own = said.words[0, 0].tolist()
        text = checkpoint.tokenizer.decode(number for number in own if number != mark)
        score = float(said.scores[0, 0])
        found.append(Spoken(text, score, ((text, score),), min(len(given), len(ids)), len(ids)))
    return found


def measure(checkpoint: "Checkpoint", texts: Sequence[str]) -> list[Measured]:
    """How likely each text is: its perplexity a word, as in a test; ends are not asked for."""
    needs(checkpoint, "next", "measure")
    files, vocabulary = build(DATASETS, checkpoint.recipe["data"]), checkpoint.tokenizer
    assert isinstance(vocabulary, Words)
    mark = vocabulary.id_of(END)
    found = []
    for ids in vocabulary.encode_all(strings(texts)):
        if not ids:
            found.append(Measured(None, None, 0, 0))
            continue
        row = joined([ids], mark)
        own = word_set(row, vocabulary, length=files.length, context=files.context)
        loss, asked = losses(checkpoint.network, own.to(device_of(checkpoint)))
        loss, unknown = loss[:-1].double(), asked[:-1] == own.strange
        figures = figures_of(loss, unknown)
        known = figures["known words"] if not unknown.all() else None
        found.append(Measured(figures["perplexity"], known, int(unknown.sum()), len(ids)))
    return found


@torch.no_grad()
def spoken(network: nn.Module, texts: SequenceSet, beams: int) -> list[list[tuple[str, float]]]:
    """What a network says of each source, best first: texts with their log-probabilities."""
    was = network.training
    network.eval()
    found = []
    respond: Any = network.respond
    for rows in torch.arange(len(texts), device=texts.device).split(AT_ONCE) if len(texts) else ():
        inputs = texts.inputs(rows)
        states = network.encode(inputs.tokens, inputs.mask)  # type: ignore[operator]
        start = torch.full_like(rows, texts.tokenizer.cls)
        said: Said = beam(
            respond.step,
            respond.begin(states, inputs.mask),
            start,
            end=texts.tokenizer.sep,
            most=respond.longest,
            width=beams,
        )
        for ids, scores in zip(said.words.tolist(), said.scores.tolist()):
            found.append([(texts.tokenizer.decode(own), score) for own, score in zip(ids, scores)])
    network.train(was)
    return found


@torch.no_grad()
def begun(checkpoint: "Checkpoint", given: list[int]) -> tuple[Any, Any, Tensor]:
    """A step for ``generate``, its state after all words but the last, and that word."""
    network, own = checkpoint.network.eval(), checkpoint.tokenizer
    row = torch.tensor([given], device=device_of(checkpoint))
    unsaid = torch.tensor([own.pad, own.unknown], device=row.device)

    def read(words: Tensor, state: Any) -> tuple[Tensor, Any]:
        made = network.encode.carry(words, torch.ones_like(words, dtype=torch.bool), state)
        return made.states, made.state if isinstance(made, Recurrent) else made.cache

    def step(words: Tensor, state: Any) -> tuple[Tensor, Any]:
        states, state = read(words.unsqueeze(1), state)
        scores = network.respond(None, None, states, words).squeeze(1)
        return scores.index_fill(1, unsaid, NEVER), state

    state = read(row[:, :-1], None)[1] if len(given) > 1 else None
    return step, state, row[:, -1]


def needs(checkpoint: "Checkpoint", kind: str, what: str) -> None:
    """Whether a network can be asked this; an error that says who can."""
    own = checkpoint.recipe["model"]["respond"]["kind"]
    if own != kind:
        raise ConfigError(
            f"this network cannot {what}: its response is of kind {own!r}, and {kind!r} is needed"
        )


def device_of(checkpoint: "Checkpoint") -> torch.device:
    return next(checkpoint.network.parameters()).device
