"""A text classifier that is a scikit-learn estimator; scikit-learn itself is not needed.

With it installed, ``clone``, ``cross_val_score``, ``make_pipeline`` and ``GridSearchCV`` take it.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from mnemic.checkpoint.folder import Checkpoint, load_checkpoint, save_checkpoint
from mnemic.data import DATASETS
from mnemic.data.text_tasks.tables import is_unicode
from mnemic.files import write_text
from mnemic.predict.text_tasks import classify_texts
from mnemic.recipe import ConfigError, Recipe, did_you_mean, join_words, kind_of, load_recipe, override, parameters_of
from mnemic.recipe.load import SECTIONS, check_sections, parse_assignment
from mnemic.recipe.migrate import migrate_override
from mnemic.train.initialize import start_recipe_from
from mnemic.train.run import fit


class TextClassifier:
    """Train a text classifier and predict classes.

    ``recipe`` is a name, a path or a recipe whose data is of kind ``classes``; ``sets`` are
    overrides such as ``"train.epochs=3"``; ``start`` is a folder with a BERT to start from, as in
    ``mnemic train --start``. The run is written to ``folder``, or to a temporary folder.

    >>> texts, labels = ["a lovely film", "a dull film"] * 20, ["good", "bad"] * 20
    >>> classifier = mnemic.TextClassifier(sets=["train.epochs=2"], start="reader", device="cpu")
    >>> classifier.fit(texts, labels).predict(["a lovely day", "a dull day"]).tolist()
    ['good', 'bad']
    >>> classifier.save("runs/films")
    >>> mnemic.load("runs/films").classify(["what a lovely evening"])[0].label
    'good'
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

    def __repr__(self) -> str:
        defaults = parameters_of(type(self))
        changed = {name: value for name, value in self.get_params().items() if value != defaults[name].default}
        return f"TextClassifier({join_words(f'{name}={value!r}' for name, value in changed.items())})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments by name, as scikit-learn's ``clone`` needs them."""
        return {name: getattr(self, name) for name in parameters_of(type(self))}

    def set_params(self, **params: Any) -> "TextClassifier":
        """Set some of the constructor's arguments; it must be trained again after that."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                hint = did_you_mean(name, known)
                raise ValueError(f"a TextClassifier has no parameter {name!r}{hint}; it has {join_words(known)}")
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that this is a classifier of texts; only scikit-learn calls it."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        inputs = InputTags(one_d_array=True, two_d_array=False, string=True)
        targets = TargetTags(required=True, one_d_labels=True)
        return Tags("classifier", targets, classifier_tags=ClassifierTags(), input_tags=inputs)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether ``fit`` was called, for scikit-learn's ``check_is_fitted``."""
        return self.checkpoint is not None

    def fit(self, texts: Sequence[str], labels: Sequence[object]) -> "TextClassifier":
        """Train on texts and their labels; some of them become the validation set."""
        texts, names = check_examples(texts, labels)
        classes = sorted(names, key=str)
        self.classes_ = np.array(classes, dtype=None if len({type(label) for label in classes}) == 1 else object)
        with TemporaryDirectory() as temporary:
            folder = Path(temporary if self.folder is None else self.folder)
            folder.mkdir(parents=True, exist_ok=True)
            rows = [{"text": text, "label": names[label]} for text, label in zip(texts, to_list(labels))]
            write_text(folder / "train.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
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
        for assignment in self.sets:
            recipe = override(recipe, *migrate_override(*parse_assignment(assignment)))
        check_sections(recipe, "a text classifier's recipe", SECTIONS)
        data_kind = kind_of(DATASETS, recipe["data"])
        if data_kind.response != "classes" or data_kind.paired:
            raise ConfigError("a text classifier needs a recipe whose data.kind is 'classes'")
        files = {"folder": str(folder), "train_file": "train.jsonl", "test_file": ""}
        return recipe | {"data": recipe["data"] | files}

    def predict(self, texts: Sequence[str]) -> np.ndarray:
        """Predict the class of each text, as one of the labels given to ``fit``."""
        probabilities = self.predict_proba(texts)  # which raises if this is not trained
        return self.classes_[probabilities.argmax(1)]

    def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
        """Predict the class probabilities of each text, in the order of ``classes_``."""
        predictions = [dict(row.ranked) for row in classify_texts(self.trained_checkpoint, to_list(texts))]
        labels = [str(label) for label in self.classes_.tolist()]
        return np.array([[row[label] for label in labels] for row in predictions]).reshape(-1, len(labels))

    def score(self, texts: Sequence[str], labels: Sequence[object]) -> float:
        """Return the accuracy on texts and their labels."""
        check_lengths(texts, labels)
        correct = [label == right for label, right in zip(self.predict(texts).tolist(), to_list(labels))]
        return sum(correct) / max(len(correct), 1)

    def save(self, folder: str | Path) -> None:
        """Save the trained network as a checkpoint, which ``mnemic.load`` and the commands take."""
        save_checkpoint(Path(folder), self.trained_checkpoint)

    @property
    def trained_checkpoint(self) -> Checkpoint:
        """The checkpoint of ``fit``; an error if it was not called."""
        if self.checkpoint is None:
            raise ValueError("this classifier is not trained yet: call fit(texts, labels)")
        return self.checkpoint


def to_list(values: Any) -> list[Any]:
    """Convert a sequence, array or pandas column to a list of Python values."""
    return np.asarray(values, dtype=object).tolist() if not isinstance(values, list | tuple) else list(values)


def check_lengths(texts: Sequence[str], labels: Sequence[object]) -> None:
    """Raise an error if there is not one label per text."""
    if isinstance(texts, str) or len(texts) != len(labels):
        count = "one string" if isinstance(texts, str) else f"{len(texts)} texts"
        raise ValueError(f"a label for every text, not {count} and {len(labels)} labels")


def check_examples(texts: Sequence[str], labels: Sequence[object]) -> tuple[list[str], dict[object, str]]:
    """Return the texts and the name of each label; raise an error otherwise."""
    check_lengths(texts, labels)
    if not len(texts):
        raise ValueError("there is no text to train on")
    for number, (text, label) in enumerate(zip(texts, labels)):
        if not isinstance(text, str) or not is_unicode(text):
            raise ValueError(f"text {number} is no unicode text: {str(text)[:40]!r}")
        if label is None:
            raise ValueError(f"text {number} has no label: it is None")
    names = {label: str(label) for label in to_list(labels)}
    if len(set(names.values())) < len(names):
        raise ValueError(f"different labels have the same text: {sorted(names, key=str)}")
    return to_list(texts), names
