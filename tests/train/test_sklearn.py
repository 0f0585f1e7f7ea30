"""The text classifier as a scikit-learn estimator: cloning, search, pipelines."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

import mnemic
from mnemic.recipe import ConfigError
from mnemic.train.sklearn import TextClassifier

TEXTS = ["a lovely house", "an awful house", "lovely train", "the awful old train"] * 12
LABELS = ["good", "bad"] * 24
SETS = ["model.width=16", "model.encode.stack.depth=1", "train.epochs=12", "train.rate=0.01", "train.batch=8"]
SETS += ['data.tokenizer={kind="words"}', "data.length=16", "data.overlap=4"]


def test_a_clone_has_the_same_parameters_and_no_network() -> None:
    classifier = TextClassifier(sets=SETS, device="cpu", seed=3).fit(TEXTS, LABELS)
    check_is_fitted(classifier)
    again = clone(classifier)
    assert again.get_params() == classifier.get_params()
    assert again.checkpoint is None
    assert is_classifier(again)
    assert repr(again) == f"TextClassifier(sets={SETS!r}, seed=3, device='cpu')"
    assert again.set_params(seed=4) is again
    assert again.seed == 4
    with pytest.raises(ValueError, match=r"no parameter 'sed' \(did you mean 'seed'\?\); it has recipe, sets"):
        again.set_params(sed=4)


def test_folds_searches_and_pipelines_train_it() -> None:
    classifier = TextClassifier(sets=SETS, device="cpu")
    scores = cross_val_score(classifier, TEXTS, LABELS, cv=2)
    assert scores.shape == (2,)
    assert scores.min() > 0.9
    search = GridSearchCV(classifier, {"seed": [0, 1]}, cv=2).fit(np.array(TEXTS), np.array(LABELS))
    assert search.best_params_["seed"] in (0, 1)
    assert search.predict(["lovely"]).tolist() == ["good"]
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    pipeline = make_pipeline(lower, classifier).fit([text.upper() for text in TEXTS], LABELS)
    assert pipeline.predict(["LOVELY", "AWFUL"]).tolist() == ["good", "bad"]
    assert pipeline.predict_proba(["LOVELY"]).shape == (1, 2)


def test_it_is_saved_as_a_network_that_commands_take(tmp_path: Path) -> None:
    classifier = TextClassifier(sets=SETS, device="cpu").fit(TEXTS, LABELS)
    classifier.save(tmp_path / "own")
    (film,) = mnemic.load(tmp_path / "own").classify(["lovely"])
    assert film.label == classifier.predict(["lovely"])[0]


@pytest.mark.parametrize(
    ("override", "message"),
    [("epochs=1", "no section 'epochs'"), ("train.epoch=1", "did you mean 'epochs'"), ("trian.epochs=1", "'trian'")],
)
def test_an_override_that_nothing_knows_is_refused(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TextClassifier(sets=[*SETS, override], device="cpu").fit(TEXTS, LABELS)
