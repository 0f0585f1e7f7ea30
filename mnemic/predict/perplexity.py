"""How well a language model knows what comes next: perplexity, a word at a time.

Perplexity is e to the mean cross-entropy of the words asked for. Three figures say how unknown
words are counted:

    perplexity     all words; those that the vocabulary does not have are one word, "unknown"
    known words    only words that the vocabulary has are asked for; what was read is the same
    unknown %      how many words of a hundred the vocabulary does not have

Networks can be compared only with the same vocabulary on the same words.
"""

from math import exp

import torch
from torch import Tensor, nn

from mnemic.data.language_modeling.batches import WordSet
from mnemic.models import IGNORE
from mnemic.objectives.unigram import counts_of, unigram_loss
from mnemic.recipe import ConfigError

AT_ONCE = 4096  # words a batch: memory, not results, depends on it

Figures = dict[str, float]


@torch.no_grad()
def losses(network: nn.Module, words: WordSet) -> tuple[Tensor, Tensor]:
    """The cross-entropy of every word asked for, in nats, and the words, row by row: t each."""
    was = network.training
    network.eval()
    found, asked = [torch.zeros(0)], [torch.zeros(0, dtype=torch.long)]
    rows = torch.arange(len(words), device=words.device)
    for part in rows.split(max(AT_ONCE // words.length, 1)):
        batch = words.batch(part)
        states = network.encode(batch.inputs.tokens, batch.inputs.mask)  # type: ignore[operator]
        places = batch.targets != IGNORE  # b n; of context nothing is scored
        scores = network.respond(None, None, states[places], places)  # type: ignore[operator]
        targets = batch.targets[places]
        loss = nn.functional.cross_entropy(scores.float(), targets, reduction="none")
        found.append(loss.cpu())
        asked.append(targets.cpu())
    network.train(was)
    return torch.cat(found), torch.cat(asked)


def language_figures(network: nn.Module, words: WordSet) -> Figures:
    """Perplexity with and without unknown words, and their share."""
    if not len(words):
        raise ConfigError("there are no words to judge by")
    loss, asked = losses(network, words)
    return figures_of(loss.double(), asked == words.strange)


def figures_of(loss: Tensor, unknown: Tensor) -> Figures:
    """From the loss of each word, and whether it is unknown."""
    return {
        "perplexity": exp(float(loss.mean())),
        "known words": exp(float(loss[~unknown].mean())) if not unknown.all() else float("nan"),
        "unknown %": 100 * float(unknown.double().mean()),
    }


def unigram_figures(train: WordSet, words: WordSet, vocab: int) -> Figures:
    """The same for a model that knows only how common each word is in the training text."""
    seen, asked = (counts_of(own.ids[1:].long(), vocab) for own in (train, words))
    known = asked.clone()
    known[words.strange] = 0
    return {
        "perplexity": exp(unigram_loss(seen, asked)),
        "known words": exp(unigram_loss(seen, known)),
        "unknown %": 100 * float(asked[words.strange] / asked.sum()),
    }
