"""A trained network and somebody's texts: right, or a clear error; offsets quote the string."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from text_runs import trained

from mnemic import ask_story
from mnemic.recipe import ConfigError
from mnemic.text.windows import WindowError
from mnemic.train.sklearn import TextClassifier

ODD = {
    "empty": "",
    "blank": " \n\t ",
    "emoji": "👩‍👩‍👧 the old train 🙂🙂 lovely 🇳🇴",
    "mixed": "我在 Oslo 看到 the old train，很好。",
    "one word": "x" * 1_000_000,
    "control": "a\x00b\x07 lovely",
    "marks": "e\u0301 lovely \u200b\ufeff train",
}


# Classes and numbers ---------------------------------------------------------------------------


def test_classes_with_their_probabilities() -> None:
    good, bad = trained("classes").classify(["the old lovely house", "a small awful train ran"])
    assert (good.label, bad.label) == ("good", "bad")
    assert good.probability > 0.8
    assert sum(probability for _, probability in good.ranked) == pytest.approx(1)
    assert [label for label, _ in good.ranked] == ["good", "bad"]
    assert (good.seen, good.total) == (4, 4)


@pytest.mark.parametrize("name", ODD)
def test_odd_texts_have_a_class_and_a_vector(name: str) -> None:
    model = trained("classes")
    (prediction,) = model.classify([ODD[name]])
    assert prediction.label in model.labels
    assert math.isfinite(prediction.probability)
    assert prediction.seen == prediction.total == len(model.tokenizer.encode(ODD[name], special=False).ids)
    if "lovely" in ODD[name]:
        assert prediction.label == "good"
    vector = model.embed([ODD[name]]).vectors
    length = 1.0 if prediction.total else 0.0
    assert float(vector.norm()) == pytest.approx(length, abs=1e-5)


def test_a_long_text_is_read_to_its_end() -> None:
    """The telling word is the last of three hundred; by its first window alone it is not seen."""
    model, text = trained("classes"), "the old train ran past " * 60 + "lovely"
    (complete,) = model.classify([text])
    assert (complete.seen, complete.total) == (301, 301)
    (start,) = model.classify([text], truncation="first")
    assert (start.seen, start.total) == (22, 301)
    sad = text.replace("lovely", "awful")
    assert dict(complete.ranked)["good"] > dict(model.classify([sad])[0].ranked)["good"]
    assert model.classify([sad], truncation="first")[0].ranked == start.ranked
    with pytest.raises(WindowError, match="a text has 301 tokens; a window of 24 has room for 22"):
        model.classify([text], truncation="error")
    (without_overlap,) = model.classify([text], overlap=0)
    assert without_overlap.probability != complete.probability
    with pytest.raises(WindowError, match="must be more than the overlap of 22"):
        model.classify([text], overlap=22)


def test_the_company_a_text_is_in_changes_nothing() -> None:
    model = trained("classes")
    texts = ["lovely", "the old train " * 30, "", "an awful house"]
    together = model.classify(texts)
    for text, prediction in zip(texts, together):
        (alone,) = model.classify([text])
        assert alone.label == prediction.label
        assert alone.probability == pytest.approx(prediction.probability, abs=1e-5)
    assert model.classify([]) == []
    assert model.embed([]).vectors.shape == (0, 32)


def test_pairs_and_numbers() -> None:
    model = trained("pairs")
    yes, no = model.classify([("the old train lovely", "is it lovely"), ("the old train lovely", "is it awful")])
    assert (yes.label, no.label) == ("1", "0")
    with pytest.raises(ValueError, match="compares two texts: give pairs, not 'one'"):
        model.classify(["one"])
    high, low = trained("numbers").rate(
        [("the old train ran lovely", "is it awful"), ("a grey house awful", "is it awful")]
    )
    assert high.number > 3 > 2 > low.number
    with pytest.raises(ConfigError, match="cannot classify; it can rate, rerank, embed"):
        trained("numbers").classify([("a", "b")])
    with pytest.raises(ConfigError, match="cannot rate; it can classify, embed"):
        trained("classes").rate(["a"])


# Entities --------------------------------------------------------------------------------------


def test_entities_quote_the_text() -> None:
    model, text = trained("tags"), "  the old train, Ann ran past Quito City. a small house"
    (tagged,) = model.tag([text])
    assert [(entity.kind, entity.quote(text)) for entity in tagged.entities] == [
        ("person", "Ann"),
        ("place", "Quito City"),
    ]
    assert all(0.5 < entity.probability <= 1 for entity in tagged.entities)


def test_entities_of_a_long_text_stand_where_they_are() -> None:
    """Names in every window, also across its border; each is found once, at its own place."""
    model, sentence = trained("tags"), "the old train Ann ran past a house today Quito City "
    text = sentence * 20
    (tagged,) = model.tag([text])
    assert tagged.seen == tagged.total == len(model.tokenizer.encode(text, special=False).ids)
    names = [entity.start for entity in tagged.entities if entity.kind == "person"]
    right = [n for n in range(len(text)) if text.startswith("Ann", n)]
    assert len({*names} & {*right}) >= 18
    assert len(names) == len({*names})


@pytest.mark.parametrize("name", ODD)
def test_odd_texts_have_entities_or_none(name: str) -> None:
    text = ODD[name]
    (tagged,) = trained("tags").tag([text])
    assert all(text[entity.start : entity.end].strip() for entity in tagged.entities)
    assert all(0 <= entity.start < entity.end <= len(text) for entity in tagged.entities)


@given(st.text(alphabet="Ann Quito🙂北é\u0301\n,.", max_size=60))
@settings(max_examples=40, deadline=None)
def test_offsets_point_into_the_string(text: str) -> None:
    """Entities are whole words of the string; an answer is a stretch of it."""
    for entity in trained("tags").tag([text])[0].entities:
        assert entity.quote(text) == entity.quote(text).strip() != ""
    answer = trained("spans").answer("where was it ?", text)
    assert 0 <= answer.start <= answer.end <= len(text)
    assert answer.quote(text).strip() or answer.no_answer == 1


# Answers ---------------------------------------------------------------------------------------


def test_an_answer_is_a_stretch_of_the_text() -> None:
    model, text = trained("spans"), "the old train ran in Lima past a small house"
    answer = model.answer("where was it ?", text)
    assert answer.quote(text) == "Lima"
    assert answer.has_answer
    assert answer.score > 0.5
    assert answer.no_answer < 0.1
    nothing = model.answer("where was it ?", "the old train ran past a small house")
    assert not nothing.has_answer
    assert nothing.no_answer > 0.9


@pytest.mark.parametrize("position", [0, 100, 199])
def test_an_answer_anywhere_in_a_long_text_is_found(position: int) -> None:
    sentences = ["the old train ran past a small grey house"] * 200
    sentences[position] = "the old train ran in Cairo past a small house"
    text = " ".join(sentences)
    answer = trained("spans").answer("where was it ?", text)
    assert answer.quote(text) == "Cairo"
    assert answer.start == text.index("Cairo")
    assert answer.seen == answer.total > 1500
    assert answer.has_answer


@pytest.mark.parametrize("name", ODD)
def test_odd_texts_are_asked(name: str) -> None:
    answer = trained("spans").answer("where was it ?", ODD[name])
    assert 0 <= answer.start <= answer.end <= len(ODD[name])
    assert answer.no_answer > 0.5
    if name in ("empty", "blank"):
        assert (answer.start, answer.end, answer.no_answer) == (0, 0, 1.0)


@pytest.mark.parametrize("way", ["classify", "tag", "answer", "embed"])
def test_a_hundred_thousand_tokens_are_all_seen(way: str) -> None:
    """And what stands at the far end is found there."""
    model = trained({"tag": "tags", "answer": "spans"}.get(way, "classes"))
    end = {"tag": "past Ann", "answer": "ran in Cairo past a small house"}.get(way, "lovely")
    text = "the old train " * 33_333 + end
    if way == "answer":
        (result,) = [model.answer("where was it ?", text, overlap=2)]
        assert result.quote(text) == "Cairo"
    elif way == "tag":
        (result,) = model.tag([text], overlap=2)
        assert [entity.quote(text) for entity in result.entities if entity.start > 466_000] == ["Ann"]
    elif way == "classify":
        (result,) = model.classify([text], overlap=2)
    else:
        result = model.embed([text], overlap=2)
        assert float(result.vectors.norm()) == pytest.approx(1, abs=1e-4)
        assert result.seen == result.total
        assert result.total[0] >= 99_999
        return
    assert result.seen == result.total >= 99_999


LONE = "an old \udc80 house"


@pytest.mark.parametrize("way", ["classify", "tag", "answer", "ask", "embed", "rate"])
def test_half_a_character_is_an_error_wherever_it_stands(way: str) -> None:
    calls = {
        "classify": lambda: trained("classes").classify(["fine", LONE]),
        "tag": lambda: trained("tags").tag(["fine", LONE]),
        "answer": lambda: trained("spans").answer("where was it ?", LONE),
        "ask": lambda: trained("spans").answer(LONE, "in Lima"),
        "embed": lambda: trained("classes").embed([LONE]),
        "rate": lambda: trained("numbers").rate([("fine", LONE)]),
    }
    with pytest.raises(ValueError, match="is no unicode text: a lone surrogate"):
        calls[way]()


@given(st.binary(max_size=80))
@settings(max_examples=30, deadline=None)
def test_bytes_that_were_read_as_text_are_only_odd_characters(raw: bytes) -> None:
    text = raw.decode("latin-1")
    (prediction,) = trained("classes").classify([text])
    assert math.isfinite(prediction.probability)
    for entity in trained("tags").tag([text])[0].entities:
        assert entity.quote(text) == text[entity.start : entity.end] != ""
    answer = trained("spans").answer("where was it ?", text)
    assert 0 <= answer.start <= answer.end <= len(text)


# Mistakes --------------------------------------------------------------------------------------


def test_mistakes_are_said_clearly() -> None:
    model = trained("classes")
    with pytest.raises(ValueError, match="texts are several strings, not 3"):
        model.classify(3)  # type: ignore[arg-type]
    with pytest.raises(WindowError, match=r"whole numbers, not .* and 1.5"):
        model.classify(["a"], overlap=1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"texts is one string; expected several: \[text\]"):
        model.classify("text")
    with pytest.raises(ValueError, match="a text is a string, not 3"):
        model.classify(["a", 3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"'bad .ud800' is no unicode text: a lone surrogate"):
        model.classify(["bad \ud800"])
    with pytest.raises(ConfigError, match="this network cannot tag; it can classify, embed"):
        model.tag(["a"])
    with pytest.raises(ConfigError, match="this network cannot tag; it can rate, rerank, embed"):
        trained("numbers").tag(["a"])
    with pytest.raises(ConfigError, match="the question is empty; ask for example"):
        trained("spans").answer(" ", "text")
    with pytest.raises(WindowError, match="a window of 24 has room for 0 of them"):
        trained("spans").answer("where was it " * 20, "text")


def test_networks_of_stories_say_what_they_are() -> None:
    import mnemic

    with pytest.raises(ConfigError, match=r"questions about stories .`mnemic story ask`"):
        mnemic.load("entnet-babi").classify(["a"])
    with pytest.raises(ConfigError, match=r"about what it has read .`mnemic text read`"):
        mnemic.load("bert-mass").embed(["a"])
    with pytest.raises(ValueError, match="reads texts: use `mnemic predict`, or its classify, tag"):
        ask_story(trained("classes"), ["a b."], "c?")


# As scikit-learn has it ------------------------------------------------------------------------


def test_fit_and_predict() -> None:
    """Labels come back as they were given; nothing is left on the disk."""
    texts = ["a lovely house", "an awful house", "lovely train", "the awful old train"] * 30
    labels = [1, 0, 1, 0] * 30
    sets = ["model.width=16", "model.encode.stack.depth=1", "train.epochs=12", "train.rate=0.01"]
    sets += ["train.batch=8", 'data.tokenizer={kind="words"}', "data.length=16", "data.overlap=4"]
    classifier = TextClassifier(sets=sets, device="cpu")
    with pytest.raises(ValueError, match="is not trained yet: call fit"):
        classifier.predict(["a"])
    with pytest.raises(ValueError, match="a label for every text, not 2 texts and 1 labels"):
        classifier.fit(["a", "b"], [1])
    for bad, message in [([], "no text"), (["a", "\ud800"], "text 1 is no unicode"), ([5], "text 0")]:
        with pytest.raises(ValueError, match=message):
            classifier.fit(bad, [1] * len(bad))
    with pytest.raises(ValueError, match="text 1 has no label"):
        classifier.fit(["a", "b"], [1, None])
    assert classifier.fit(texts, labels) is classifier
    assert classifier.classes_.tolist() == [0, 1]
    assert classifier.predict(["lovely", "awful"]).tolist() == [1, 0]
    assert classifier.score(texts, labels) > 0.95
    probabilities = classifier.predict_proba(["lovely", "awful"])
    assert probabilities.shape == (2, 2)
    assert probabilities.sum(1) == pytest.approx([1, 1])
    assert probabilities[0, 1] > 0.5 > probabilities[1, 1]
    assert np.isfinite(classifier.predict_proba([""])).all()  # words have no special tokens: no token at all
    assert np.isfinite(classifier.predict_proba(["", "lovely"])).all()
    assert classifier.predict_proba([]).shape == (0, 2)
    with pytest.raises(ValueError, match="a label for every text, not 2 texts and 1 labels"):
        classifier.score(["lovely", "awful"], [1])
    with pytest.raises(ConfigError, match="sets are several"):
        TextClassifier(sets="train.epochs=1")
