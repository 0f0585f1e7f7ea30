"""``fit`` and ``predict`` as scikit-learn has them, around a recipe; scikit-learn is not needed."""

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from mnemic.checkpoint.folder import Checkpoint, load
from mnemic.data.text_tasks.labelled import is_unicode
from mnemic.predict.text_tasks import classify
from mnemic.recipe import ConfigError, Recipe, assignment, override
from mnemic.recipe import load as load_recipe
from mnemic.train.initialize import with_start
from mnemic.train.run import fit


def check_pairs(texts: Sequence[str], labels: Sequence[object]) -> None:
    if isinstance(texts, str) or len(texts) != len(labels):
        count = "one string" if isinstance(texts, str) else f"{len(texts)} texts"
        raise ValueError(f"a label for every text, not {count} and {len(labels)} labels")


class TextClassifier:
    """Learns which class a text belongs to.

    ``recipe`` is a name, a path or a whole recipe whose data is of kind ``classes``; ``sets`` are
    overrides such as ``"train.epochs=3"``; ``start`` is a folder with a BERT to begin with, as
    ``mnemic train --start`` has it. The run goes to ``folder``, or is kept nowhere.
    """

    def __init__(
        self,
        recipe: str | Path | Recipe = "bert-classes",
        sets: Sequence[str] = (),
        *,
        start: str | Path | None = None,
        folder: str | Path | None = None,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        if isinstance(sets, str):
            raise ConfigError(f"sets are several, each KEY=VALUE: [{sets!r}] for a single one")
        self.recipe, self.sets, self.start, self.folder = recipe, sets, start, folder
        self.seed, self.device = seed, device
        self.checkpoint: Checkpoint | None = None

    def fit(self, texts: Sequence[str], labels: Sequence[object]) -> "TextClassifier":
        """Train on texts and their labels; a share of them is held back to choose the best by."""
        check_pairs(texts, labels)
        if not len(texts):
            raise ValueError("there is no text to learn from")
        for number, (text, label) in enumerate(zip(texts, labels)):
            if not isinstance(text, str) or not is_unicode(text):
                raise ValueError(f"text {number} is no unicode text: {str(text)[:40]!r}")
            if label is None:
                raise ValueError(f"text {number} has no label: it is None")
        self.classes_ = sorted(set(labels), key=str)
        names = {label: str(label) for label in self.classes_}
        if len(set(names.values())) < len(names):
            raise ValueError(f"labels that look the same are not: {self.classes_}")
        with TemporaryDirectory() as spare:
            place = Path(spare if self.folder is None else self.folder)
            place.mkdir(parents=True, exist_ok=True)
            with (place / "train.jsonl").open("w", encoding="utf-8") as file:
                for text, label in zip(texts, labels):
                    file.write(json.dumps({"text": text, "label": names[label]}) + "\n")
            whole = self.whole(place)
            for _ in fit(whole, place / "run", seed=self.seed, device=self.device, fresh=True):
                pass
            self.checkpoint = load(place / "run")
        return self

    def whole(self, folder: Path) -> Recipe:
        """The recipe with the texts' folder; nothing is kept for a test."""
        own = self.recipe if isinstance(self.recipe, dict) else load_recipe(self.recipe)
        if self.start is not None:
            own = with_start(own, Path(self.start).expanduser())
        for text in self.sets:
            own = override(own, *assignment(text))
        if own.get("data", {}).get("kind") != "classes":
            raise ConfigError("a text classifier needs a recipe whose data.kind is 'classes'")
        files = {"folder": str(folder), "learnt": "train.jsonl", "tested": ""}
        return own | {"data": own["data"] | files}

    def predict(self, texts: Sequence[str]) -> list[object]:
        """The class of each text, as it was given to ``fit``."""
        said = classify(self.trained, texts)
        by_name = {str(label): label for label in self.classes_}
        return [by_name[own.label] for own in said]

    def predict_proba(self, texts: Sequence[str]) -> torch.Tensor:
        """Each text's probabilities, in the order of ``classes_``."""
        said = [dict(own.ranked) for own in classify(self.trained, texts)]
        rows = [[own[str(label)] for label in self.classes_] for own in said]
        return torch.tensor(rows).view(-1, len(self.classes_))

    def score(self, texts: Sequence[str], labels: Sequence[object]) -> float:
        """The share of texts whose class is right."""
        check_pairs(texts, labels)
        return sum(a == b for a, b in zip(self.predict(texts), labels)) / max(len(labels), 1)

    @property
    def trained(self) -> Checkpoint:
        if self.checkpoint is None:
            raise ValueError("this classifier has learnt nothing yet: call fit(texts, labels)")
        return self.checkpoint
