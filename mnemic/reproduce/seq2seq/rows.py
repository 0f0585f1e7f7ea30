"""Rows and columns of the table of noises."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Noises = Sequence[Mapping[str, Any]]


class NoiseRow(NamedTuple):
    """What the networks of a row learned before the tasks of the columns."""

    title: str
    noises: Noises | None = None  # None: nothing, the weights are random
    own_vocabulary: bool = False  # of the data of each column; else that of the pre-training


class NoiseColumn(NamedTuple):
    """A task, and what is measured on its test split."""

    title: str
    recipe: str
    source: str  # the option that names the folder of its data
    metrics: tuple[str, ...]  # main one first
    scores: tuple[str, ...] = ()  # of generated texts, by name in ``mnemic.evaluate.text_scores``
    settings: tuple[str, ...] = ()
    reads_spans: bool = False  # answered by an encoder-decoder as the body of a head


MULTI_VIEW: Noises = (
    {
        "kind": "one-of",
        "shares": [1, 1, 1],
        "choices": [[{"kind": "token-masking"}], [{"kind": "prefix"}], [{"kind": "causal"}]],
    },
)
ROWS: dict[str, NoiseRow] = {
    "none": NoiseRow("from scratch"),
    "own-vocabulary": NoiseRow("from scratch, vocabulary of the task", own_vocabulary=True),
    "infilling": NoiseRow("infilling", ({"kind": "infilling"},)),
    "infilling+permutation": NoiseRow(
        "infilling and sentence permutation (BART)", ({"kind": "sentence-permutation"}, {"kind": "infilling"})
    ),
    "token-masking": NoiseRow("token masking", ({"kind": "token-masking"},)),
    "token-deletion": NoiseRow("token deletion", ({"kind": "token-deletion"},)),
    "sentence-permutation": NoiseRow("sentence permutation", ({"kind": "sentence-permutation"},)),
    "rotation": NoiseRow("rotation", ({"kind": "rotation"},)),
    "sentinels": NoiseRow("sentinels (T5)", ({"kind": "sentinels"},)),
    "fragment": NoiseRow("fragment (MASS)", ({"kind": "fragment"},)),
    "prefix": NoiseRow("prefix", ({"kind": "prefix"},)),
    "multi-view": NoiseRow("masking, prefix or causal (UniLM)", MULTI_VIEW),
    "causal": NoiseRow("language model (GPT)", ({"kind": "causal"},)),
}
PRETRAINING = "pretraining"  # the name of a row's pre-training among its cells
COLUMNS: dict[str, NoiseColumn] = {
    "squad": NoiseColumn(
        "SQuAD", "bert-spans", "squad", ("f1", "exact"),
        settings=("train.epochs=4", "train.rate=1e-4", "data.length=384", "data.overlap=128"),
        reads_spans=True,
    ),
    "questions": NoiseColumn(
        "question generation", "question-generation", "squad", ("bleu", "rouge-l", "meteor-stem", "perplexity"),
        scores=("bleu", "rouge", "meteor-stem"), settings=("train.epochs=3", "train.rate=1e-4"),
    ),
    "translation": NoiseColumn(
        "Multi30k en-de", "multi30k", "multi30k", ("bleu", "chrf", "perplexity"), scores=("bleu", "chrf"),
    ),
}  # fmt: skip
