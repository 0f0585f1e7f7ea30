"""The figures of a set of texts, in percent but for losses: the one it is judged by first."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.data.corpora import CorpusSet
from mnemic.data.seq2seq.batches import SequenceSet
from mnemic.data.text_tasks.batches import TextSet
from mnemic.evaluate import metrics
from mnemic.models import IGNORE
from mnemic.objectives.masking import TokenMasking
from mnemic.objectives.pretraining import ask, word_loss
from mnemic.predict.generate import spoken
from mnemic.predict.results import DOUBT
from mnemic.predict.windows import AT_ONCE, class_scores, spans, tags, vectors, vectors_and_keys
from mnemic.recipe import ConfigError
from mnemic.respond.merge_windows import Span

Figures = dict[str, float]
RECALLS = (1, 5)  # how many of the nearest texts are looked at
COMPARED = 500  # questions that are compared with all texts at once
BEAMS = 4  # of the beam search that stands beside the likeliest word each time


def figures(network: nn.Module, texts: TextSet | CorpusSet | SequenceSet) -> Figures:
    """Read all texts and compare what is said with what is right."""
    if not len(texts):
        raise ConfigError("there are no texts to judge by")
    if isinstance(texts, CorpusSet):
        return of_masked(network, texts)
    found = JUDGES[texts.kind](network, texts)
    main = {texts.metric: found[texts.metric]}
    return {name: 100 * value for name, value in (main | found).items()}


def of_classes(network: nn.Module, texts: TextSet) -> Figures:
    said, true = class_scores(network, texts).argmax(1).tolist(), texts.targets.tolist()
    two = len(texts.labels) == 2
    return {
        "accuracy": metrics.accuracy(said, true),
        "f1": metrics.f1(said, true) if two else metrics.macro_f1(said, true),
        "matthews": metrics.matthews(said, true),
    }


def of_numbers(network: nn.Module, texts: TextSet) -> Figures:
    said, true = class_scores(network, texts).squeeze(1).tolist(), texts.targets.tolist()
    return {"pearson": metrics.pearson(said, true), "spearman": metrics.spearman(said, true)}


def of_spans(network: nn.Module, texts: TextSet) -> Figures:
    """SQuAD's F1 and exact match. Where every question has an answer, as in 1.1, one is given."""
    unanswerable = [not own.answers for own in texts.examples]
    said = []
    for number, own in enumerate(spans(network, texts, longest_of(network))):
        nothing = any(unanswerable) and own.none >= DOUBT
        said.append("" if nothing else quoted(texts, number, own))
    found = answer_figures(said, [own.answers for own in texts.examples])
    if any(unanswerable):
        found["no answer"] = metrics.accuracy([not answer for answer in said], unanswerable)
    return found


def of_reading(network: nn.Module, texts: TextSet) -> Figures:
    """The answer in the right text, no answer in a wrong one, and the right text among all.

    F1 and exact match are SQuAD 1.1's: the right text is given, and so is an answer. "No answer"
    is the mean of two shares: of right texts in which an answer is seen, of wrong ones in which
    none is. "Calibration error" is how far the probability of no answer is from its frequency.
    """
    said = spans(network, texts, longest_of(network))
    without = [not own.answers for own in texts.examples]
    given = [number for number, own in enumerate(without) if not own]
    answers = [quoted(texts, number, said[number]) for number in given]
    found = answer_figures(answers, [texts.examples[number].answers for number in given])
    doubts = [own.none for own in said]
    found["no answer"] = metrics.balanced([own >= DOUBT for own in doubts], without)
    found["calibration error"] = metrics.calibration_error(doubts, without)
    return found | recalls(network, texts)


def recalls(network: nn.Module, texts: TextSet) -> Figures:
    """How often a question's own text is the nearest of all, or one of the nearest five.

    A text is as near as its nearest key; "whole" is by one vector a text instead.
    """
    if texts.search is None or not len(texts.search.questions):
        return {}
    asked = vectors(network, texts.search.questions)
    among, keys = vectors_and_keys(network, texts.search.texts)
    counts = torch.tensor([len(own) for own in keys])
    every, right = torch.cat(keys), torch.tensor(texts.search.right)
    ranks: dict[str, list[Tensor]] = {"": [], ", whole": []}
    for part, own in zip(asked.split(COMPARED), right.split(COMPARED)):
        best = torch.segment_reduce(every @ part.mT, "max", lengths=counts, axis=0).mT
        for way, scores in (("", best), (", whole", part @ among.mT)):
            ranks[way].append((scores > scores.gather(1, own.unsqueeze(1))).sum(1))
    return {
        f"recall@{most}{way}": float((torch.cat(own) < most).double().mean())
        for way, own in ranks.items()
        for most in RECALLS
    }


def longest_of(network: nn.Module) -> int:
    """How many tokens an answer of this network may have."""
    return network.respond.longest  # type: ignore[union-attr, return-value]


def quoted(texts: TextSet, number: int, span: Span) -> str:
    """What the text says where the answer was found."""
    offsets, text = texts.offsets(number), texts.examples[number].text
    return text[offsets[span.first][0] : offsets[span.last][1]] if offsets else ""


def answer_figures(said: Sequence[str], answers: Sequence[Sequence[str]]) -> Figures:
    both, count = list(zip(said, answers)), max(len(said), 1)
    return {
        "f1": sum(metrics.overlap_f1(*one) for one in both) / count,
        "exact": sum(metrics.exact(*one) for one in both) / count,
    }


def of_tags(network: nn.Module, texts: TextSet) -> Figures:
    said = [[texts.labels[tag] for tag in own.argmax(1).tolist()] for own in tags(network, texts)]
    found = metrics.entity_f1(said, [example.tags for example in texts.examples])
    return {"entity f1": found.f1, "precision": found.precision, "recall": found.recall}


@torch.no_grad()
def of_masked(network: nn.Module, corpus: CorpusSet) -> Figures:
    """How well hidden words are said, and what follows, where the network says it.

    Whatever a network was trained on, single tokens are hidden here, always the same: recipes can
    be compared. On a GPU products are in bfloat16.
    """
    was, on_gpu = network.training, corpus.device.type == "cuda"
    network.eval()
    sums = torch.zeros(5, dtype=torch.float64, device=corpus.device)
    rows = torch.arange(len(corpus), device=corpus.device)
    for part in rows.split(max(AT_ONCE // corpus.longest, 1)):
        batch = corpus.batch(part, compact=not on_gpu)
        asked = ask(batch, TokenMasking())
        with torch.autocast(corpus.device.type, torch.bfloat16, enabled=on_gpu):
            said = network(asked.inputs).scores
        loss = word_loss(said, asked)
        told = [loss.total, loss.targets, (said.words.argmax(-1) == asked.targets).sum()]
        if said.follows is not None:
            paired = batch.follows != IGNORE
            right = (said.follows.argmax(-1) == 1 - batch.follows) & paired
            told += [right.sum(), paired.sum()]
        sums[: len(told)] += torch.stack(told).double()
    network.train(was)
    total, targets, right, followed, paired = sums.tolist()
    found = {"accuracy": 100 * right / max(targets, 1), "loss": total / max(targets, 1)}
    return found | ({"follows": 100 * followed / paired} if paired else {})


def of_sequences(network: nn.Module, texts: SequenceSet) -> Figures:
    """How many answers are right to the last letter, by two ways of speaking."""
    ends = texts.answer.begins.tolist()
    answers = [texts.tokenizer.decode(texts.answer.ids[a:b].tolist()) for a, b in pairwise(ends)]
    said = {beams: [own[0][0] for own in spoken(network, texts, beams)] for beams in (1, BEAMS)}
    return {
        "exact": metrics.accuracy(said[1], answers),
        f"exact, {BEAMS} beams": metrics.accuracy(said[BEAMS], answers),
    }


JUDGES: dict[str, Callable[[nn.Module, Any], Figures]] = {
    "classes": of_classes,
    "numbers": of_numbers,
    "sequences": of_sequences,
    "spans": of_spans,
    "tags": of_tags,
    "reading": of_reading,
}
