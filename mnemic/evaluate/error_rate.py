"""How often a network answers wrongly, task by task; and by what weights are chosen.

Shapes: q questions; with many runs a runs axis in front.
"""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from mnemic.data.contract import Examples, Questions
from mnemic.data.corpora import CorpusSet
from mnemic.data.language_modeling.batches import WordSet
from mnemic.data.long_context.batches import LongSet
from mnemic.data.seq2seq.batches import SequenceSet
from mnemic.data.text_tasks.batches import TextSet
from mnemic.evaluate.text_metrics import figures
from mnemic.predict.perplexity import language_figures

AT_ONCE = 500  # questions a batch: memory, not results, depends on it


def predict(network: nn.Module, questions: Questions, rows: Tensor) -> Tensor:
    """The answer's word id for each question in ``rows`` (q, or runs q for many runs)."""
    return judged(network, questions, rows, lambda scores, part: scores.argmax(-1))


def wrong(network: nn.Module, questions: Questions, rows: Tensor) -> Tensor:
    """True where the answer is not a right one."""
    return judged(network, questions, rows, questions.wrong).bool()


@torch.no_grad()
def judged(
    network: nn.Module,
    questions: Questions,
    rows: Tensor,
    judge: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    """What ``judge(scores, rows)`` says of every question, asked some at a time."""
    if not rows.numel():
        return rows
    was = network.training
    network.eval()
    compact = questions.device.type != "cuda"
    parts = [
        judge(network(questions.batch(part, compact=compact).inputs).scores.squeeze(-2), part)
        for part in rows.split(AT_ONCE, -1)
    ]
    network.train(was)
    return torch.cat(parts, -1)


def look(network: nn.Module, examples: Examples) -> tuple[float, dict[str, float]]:
    """The error in percent that tells which weights are best, and the figures behind it.

    Of questions their mean error; of texts what their own first figure lacks to 100; of running
    text the perplexity, which is no percentage.
    """
    if isinstance(examples, WordSet):
        found = language_figures(network, examples)
        return found["perplexity"], found
    if isinstance(examples, TextSet | CorpusSet | SequenceSet):
        found = figures(network, examples)
        return 100 - next(iter(found.values())), found
    return mean(list(task_errors(network, cast(Questions, examples)).values())), {}


def task_errors(network: nn.Module, questions: Questions) -> dict[int, float]:
    """The error of each task in percent, for one network."""
    if isinstance(questions, LongSet):
        from mnemic.evaluate.long_context import recall_errors

        return recall_errors(network, questions)
    rows = torch.arange(len(questions), device=questions.device)
    return by_task(wrong(network, questions, rows), questions.task)


def by_task(wrong: Tensor, tasks: Tensor) -> dict[int, float]:
    """Percent wrong, task by task."""
    found = {task: wrong[tasks == task] for task in tasks.unique().tolist()}
    return {task: 100 * int(own.sum()) / len(own) for task, own in found.items()}


def mean(errors: Sequence[float]) -> float:
    """The unweighted mean over tasks, as the papers print it."""
    return sum(errors) / len(errors)
