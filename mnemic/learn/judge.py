"""The figures of a set of texts, in percent: the one it is judged by first."""

from collections.abc import Callable

from torch import nn

from mnemic.data.texts.tensors import TextSet
from mnemic.learn import metrics
from mnemic.learn.read import class_scores, spans, tags
from mnemic.learn.results import DOUBT
from mnemic.recipe import ConfigError

Figures = dict[str, float]


def figures(network: nn.Module, texts: TextSet) -> Figures:
    """Read all texts and compare what is said with what is right."""
    if not len(texts):
        raise ConfigError("there are no texts to judge by")
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
    longest: int = network.respond.longest  # type: ignore[union-attr, assignment]
    said = []
    for number, own in enumerate(spans(network, texts, longest)):
        offsets, example = texts.offsets(number), texts.examples[number]
        nothing = not offsets or (any(unanswerable) and own.none >= DOUBT)
        said.append("" if nothing else example.text[offsets[own.first][0] : offsets[own.last][1]])
    both = [(answer, example.answers) for answer, example in zip(said, texts.examples)]
    found = {
        "f1": sum(metrics.overlap_f1(*one) for one in both) / len(both),
        "exact": sum(metrics.exact(*one) for one in both) / len(both),
    }
    if any(unanswerable):
        found["no answer"] = metrics.accuracy([not answer for answer in said], unanswerable)
    return found


def of_tags(network: nn.Module, texts: TextSet) -> Figures:
    said = [[texts.labels[tag] for tag in own.argmax(1).tolist()] for own in tags(network, texts)]
    found = metrics.entity_f1(said, [example.tags for example in texts.examples])
    return {"entity f1": found.f1, "precision": found.precision, "recall": found.recall}


JUDGES: dict[str, Callable[[nn.Module, TextSet], Figures]] = {
    "classes": of_classes,
    "numbers": of_numbers,
    "spans": of_spans,
    "tags": of_tags,
}
