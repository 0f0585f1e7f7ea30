"""A text classifier with scikit-learn's interface; scikit-learn is not needed."""

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from mnemic.checkpoint.folder import Checkpoint, load_checkpoint
from mnemic.data.text_tasks.labelled import is_unicode
from mnemic.predict.text_tasks import classify_texts
from mnemic.recipe import ConfigError, Recipe, load_recipe, override, parse_assignment
from mnemic.train.initialize import start_recipe_from
from mnemic.train.run import fit


def check_labels(texts: Sequence[str], labels: Sequence[object]) -> None:
    """Raise an error if there is not one label per text."""
    if isinstance(texts, str) or len(texts) != len(labels):
        count = "one string" if isinstance(texts, str) else f"{len(texts)} texts"
        raise ValueError(f"a label for every text, not {count} and {len(labels)} labels")


class TextClassifier:
    """Train a text classifier and predict classes.

    ``recipe`` is a name, a path or a recipe whose data is of kind ``classes``; ``sets`` are
    overrides such as ``"train.epochs=3"``; ``start`` is a folder with a BERT to start from, as in
    ``mnemic train --start``. The run is written to ``folder``, or to a temporary folder.
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
        """Train on texts and their labels; some of them become the validation set."""
        check_labels(texts, labels)
        if not len(texts):
            raise ValueError("there is no text to train on")
        for number, (text, label) in enumerate(zip(texts, labels)):
            if not isinstance(text, str) or not is_unicode(text):
                raise ValueError(f"text {number} is no unicode text: {str(text)[:40]!r}")
            if label is None:
                raise ValueError(f"text {number} has no label: it is None")
        self.classes_ = sorted(set(labels), key=str)
        names = {label: str(label) for label in self.classes_}
        if len(set(names.values())) < len(names):
            raise ValueError(f"different labels have the same text: {self.classes_}")
        with TemporaryDirectory() as temporary:
            folder = Path(temporary if self.folder is None else self.folder)
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / "train.jsonl").open("w", encoding="utf-8") as file:
                for text, label in zip(texts, labels):
                    file.write(json.dumps({"text": text, "label": names[label]}) + "\n")
            recipe = self.complete_recipe(folder)
            for _ in fit(recipe, folder / "run", seed=self.seed, device=self.device, fresh=True):
                pass
            self.checkpoint = load_checkpoint(folder / "run")
        return self

    def complete_recipe(self, folder: Path) -> Recipe:
        """Return the recipe with overrides and the folder of texts, without a test set."""
        recipe = self.recipe if isinstance(self.recipe, dict) else load_recipe(self.recipe)
        if self.start is not None:
            recipe = start_recipe_from(recipe, Path(self.start).expanduser())
        for assignment_text in self.sets:
            recipe = override(recipe, *parse_assignment(assignment_text))
        if recipe.get("data", {}).get("kind") != "classes":
            raise ConfigError("a text classifier needs a recipe whose data.kind is 'classes'")
        files = {"folder": str(folder), "train_file": "train.jsonl", "test_file": ""}
        return recipe | {"data": recipe["data"] | files}

    def predict(self, texts: Sequence[str]) -> list[object]:
        """Predict the class of each text, as one of the labels given to ``fit``."""
        predictions = classify_texts(self.trained_checkpoint, texts)
        label_of_name = {str(label): label for label in self.classes_}
        return [label_of_name[prediction.label] for prediction in predictions]

    def predict_proba(self, texts: Sequence[str]) -> torch.Tensor:
        """Predict the class probabilities of each text, in the order of ``classes_``."""
        predictions = [dict(prediction.ranked) for prediction in classify_texts(self.trained_checkpoint, texts)]
        rows = [[prediction[str(label)] for label in self.classes_] for prediction in predictions]
        return torch.tensor(rows).view(-1, len(self.classes_))

    def score(self, texts: Sequence[str], labels: Sequence[object]) -> float:
        """Return the accuracy on texts and their labels."""
        check_labels(texts, labels)
        return sum(prediction == label for prediction, label in zip(self.predict(texts), labels)) / max(len(labels), 1)

    @property
    def trained_checkpoint(self) -> Checkpoint:
        """The checkpoint of ``fit``; an error if it was not called."""
        if self.checkpoint is None:
            raise ValueError("this classifier is not trained yet: call fit(texts, labels)")
        return self.checkpoint
