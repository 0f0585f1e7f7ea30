"""A trained network and somebody's texts: right, or a clear error; offsets quote the string."""

import math

import pytest
import torch
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
    assert sum(chance for _, chance in good.ranked) == pytest.approx(1)
    assert [label for label, _ in good.ranked] == ["good", "bad"]
    assert (good.seen, good.total) == (4, 4)


@pytest.mark.parametrize("name", ODD)
def test_odd_texts_have_a_class_and_a_vector(name: str) -> None:
    own = trained("classes")
    (found,) = own.classify([ODD[name]])
    assert found.label in own.labels
    assert math.isfinite(found.probability)
    assert found.seen == found.total == len(own.tokenizer.encode(ODD[name], special=False).ids)
    if "lovely" in ODD[name]:
        assert found.label == "good"
    vector = own.embed([ODD[name]]).vectors
    length = 1.0 if found.total else 0.0
    assert float(vector.norm()) == pytest.approx(length, abs=1e-5)


def test_a_long_text_is_read_to_its_end() -> None:
    """The telling word is the last of three hundred; by its first window alone it is not seen."""
    own, text = trained("classes"), "the old train ran past " * 60 + "lovely"
    (whole,) = own.classify([text])
    assert (whole.seen, whole.total) == (301, 301)
    (start,) = own.classify([text], truncation="first")
    assert (start.seen, start.total) == (22, 301)
    sad = text.replace("lovely", "awful")
    assert dict(whole.ranked)["good"] > dict(own.classify([sad])[0].ranked)["good"]
    assert own.classify([sad], truncation="first")[0].ranked == start.ranked
    with pytest.raises(WindowError, match="a text has 301 tokens; a window of 24 has room for 22"):
        own.classify([text], truncation="error")
    (other,) = own.classify([text], overlap=0)
    assert other.probability != whole.probability
    with pytest.raises(WindowError, match="must be more than the overlap of 22"):
        own.classify([text], overlap=22)


def test_the_company_a_text_is_in_changes_nothing() -> None:
    own = trained("classes")
    texts = ["lovely", "the old train " * 30, "", "an awful house"]
    together = own.classify(texts)
    for text, found in zip(texts, together):
        (alone,) = own.classify([text])
        assert alone.label == found.label
        assert alone.probability == pytest.approx(found.probability, abs=1e-5)
    assert own.classify([]) == []
    assert own.embed([]).vectors.shape == (0, 32)


def test_pairs_and_numbers() -> None:
    own = trained("pairs")
    yes, no = own.classify(
        [("the old train lovely", "is it lovely"), ("the old train lovely", "is it awful")]
    )
    assert (yes.label, no.label) == ("1", "0")
    with pytest.raises(ValueError, match="compares two texts: give pairs, not 'one'"):
        own.classify(["one"])
    high, low = trained("numbers").rate(
        [("the old train ran lovely", "is it awful"), ("a grey house awful", "is it awful")]
    )
    assert high.number > 3 > 2 > low.number
    with pytest.raises(ConfigError, match="gives numbers, not classes; use rate"):
        trained("numbers").classify([("a", "b")])
    with pytest.raises(ConfigError, match="gives classes, not numbers; use classify"):
        trained("classes").rate(["a"])


# Entities --------------------------------------------------------------------------------------


def test_entities_quote_the_text() -> None:
    own, text = trained("tags"), "  the old train, Ann ran past Quito City. a small house"
    (found,) = own.tag([text])
    assert [(one.kind, one.quote(text)) for one in found.entities] == [
        ("person", "Ann"),
        ("place", "Quito City"),
    ]
    assert all(0.5 < one.probability <= 1 for one in found.entities)


def test_entities_of_a_long_text_stand_where_they_are() -> None:
    """Names in every window, also across its border; each is found once, at its own place."""
    own, part = trained("tags"), "the old train Ann ran past a house today Quito City "
    text = part * 20
    (found,) = own.tag([text])
    assert found.seen == found.total == len(own.tokenizer.encode(text, special=False).ids)
    names = [one.start for one in found.entities if one.kind == "person"]
    right = [n for n in range(len(text)) if text.startswith("Ann", n)]
    assert len({*names} & {*right}) >= 18
    assert len(names) == len({*names})


@pytest.mark.parametrize("name", ODD)
def test_odd_texts_have_entities_or_none(name: str) -> None:
    text = ODD[name]
    (found,) = trained("tags").tag([text])
    assert all(text[one.start : one.end].strip() for one in found.entities)
    assert all(0 <= one.start < one.end <= len(text) for one in found.entities)


@given(st.text(alphabet="Ann Quito🙂北é\u0301\n,.", max_size=60))
@settings(max_examples=40, deadline=None)
def test_offsets_point_into_the_string(text: str) -> None:
    """Entities are whole words of the string; an answer is a stretch of it."""
    for one in trained("tags").tag([text])[0].entities:
        assert one.quote(text) == one.quote(text).strip() != ""
    found = trained("spans").answer("where was it ?", text)
    assert 0 <= found.start <= found.end <= len(text)
    assert found.quote(text).strip() or found.no_answer == 1


# Answers ---------------------------------------------------------------------------------------


def test_an_answer_is_a_stretch_of_the_text() -> None:
    own, text = trained("spans"), "the old train ran in Lima past a small house"
    found = own.answer("where was it ?", text)
    assert found.quote(text) == "Lima"
    assert found.found
    assert found.score > 0.5
    assert found.no_answer < 0.1
    nothing = own.answer("where was it ?", "the old train ran past a small house")
    assert not nothing.found
    assert nothing.no_answer > 0.9


@pytest.mark.parametrize("place", [0, 100, 199])
def test_an_answer_anywhere_in_a_long_text_is_found(place: int) -> None:
    parts = ["the old train ran past a small grey house"] * 200
    parts[place] = "the old train ran in Cairo past a small house"
    text = " ".join(parts)
    found = trained("spans").answer("where was it ?", text)
    assert found.quote(text) == "Cairo"
    assert found.start == text.index("Cairo")
    assert found.seen == found.total > 1500
    assert found.found


@pytest.mark.parametrize("name", ODD)
def test_odd_texts_are_asked(name: str) -> None:
    found = trained("spans").answer("where was it ?", ODD[name])
    assert 0 <= found.start <= found.end <= len(ODD[name])
    assert found.no_answer > 0.5
    if name in ("empty", "blank"):
        assert (found.start, found.end, found.no_answer) == (0, 0, 1.0)


@pytest.mark.parametrize("way", ["classify", "tag", "answer", "embed"])
def test_a_hundred_thousand_tokens_are_all_seen(way: str) -> None:
    """And what stands at the far end is found there."""
    own = trained({"tag": "tags", "answer": "spans"}.get(way, "classes"))
    end = {"tag": "past Ann", "answer": "ran in Cairo past a small house"}.get(way, "lovely")
    text = "the old train " * 33_333 + end
    if way == "answer":
        (found,) = [own.answer("where was it ?", text, overlap=2)]
        assert found.quote(text) == "Cairo"
    elif way == "tag":
        (found,) = own.tag([text], overlap=2)
        assert [one.quote(text) for one in found.entities if one.start > 466_000] == ["Ann"]
    elif way == "classify":
        (found,) = own.classify([text], overlap=2)
    else:
        found = own.embed([text], overlap=2)
        assert float(found.vectors.norm()) == pytest.approx(1, abs=1e-4)
        assert found.seen == found.total
        assert found.total[0] >= 99_999
        return
    assert found.seen == found.total >= 99_999


LONE = "an old \udc80 house"


@pytest.mark.parametrize("way", ["classify", "tag", "answer", "ask", "embed", "rate"])
def test_half_a_character_is_an_error_wherever_it_stands(way: str) -> None:
    asked = {
        "classify": lambda: trained("classes").classify(["fine", LONE]),
        "tag": lambda: trained("tags").tag(["fine", LONE]),
        "answer": lambda: trained("spans").answer("where was it ?", LONE),
        "ask": lambda: trained("spans").answer(LONE, "in Lima"),
        "embed": lambda: trained("classes").embed([LONE]),
        "rate": lambda: trained("numbers").rate([("fine", LONE)]),
    }
    with pytest.raises(ValueError, match="is no unicode text: a lone surrogate"):
        asked[way]()


@given(st.binary(max_size=80))
@settings(max_examples=30, deadline=None)
def test_bytes_that_were_read_as_text_are_only_odd_characters(raw: bytes) -> None:
    text = raw.decode("latin-1")
    (found,) = trained("classes").classify([text])
    assert math.isfinite(found.probability)
    for one in trained("tags").tag([text])[0].entities:
        assert one.quote(text) == text[one.start : one.end] != ""
    said = trained("spans").answer("where was it ?", text)
    assert 0 <= said.start <= said.end <= len(text)


# Mistakes --------------------------------------------------------------------------------------


def test_mistakes_are_said_clearly() -> None:
    own = trained("classes")
    with pytest.raises(ValueError, match="texts are several strings, not 3"):
        own.classify(3)  # type: ignore[arg-type]
    with pytest.raises(WindowError, match=r"whole numbers, not .* and 1.5"):
        own.classify(["a"], overlap=1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"texts is one string; expected several: \[text\]"):
        own.classify("text")
    with pytest.raises(ValueError, match="a text is a string, not 3"):
        own.classify(["a", 3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"'bad .ud800' is no unicode text: a lone surrogate"):
        own.classify(["bad \ud800"])
    with pytest.raises(ConfigError, match="this network cannot tag; it can classify and embed"):
        own.tag(["a"])
    with pytest.raises(ConfigError, match="this network cannot tag; it can rate and embed"):
        trained("numbers").tag(["a"])
    with pytest.raises(ConfigError, match="the question is empty; ask for example"):
        trained("spans").answer(" ", "text")
    with pytest.raises(WindowError, match="a window of 24 has room for 0 of them"):
        trained("spans").answer("where was it " * 20, "text")


def test_networks_of_stories_say_what_they_are() -> None:
    import mnemic

    with pytest.raises(ConfigError, match="questions about stories: use `mnemic ask`"):
        mnemic.load("entnet-babi").classify(["a"])
    with pytest.raises(ConfigError, match=r"about what it has read: use `mnemic read --state`"):
        mnemic.load("bert-mass").embed(["a"])
    with pytest.raises(ValueError, match="reads texts: use `mnemic read`, or its classify, tag"):
        ask_story(trained("classes"), ["a b."], "c?")


# As scikit-learn has it ------------------------------------------------------------------------


def test_fit_and_predict() -> None:
    """Labels come back as they were given; nothing is left on the disk."""
    texts = ["a lovely house", "an awful house", "lovely train", "the awful old train"] * 30
    labels = [1, 0, 1, 0] * 30
    sets = ["model.width=16", "model.encode.stack.depth=1", "train.epochs=12", "train.rate=0.01"]
    sets += ["train.batch=8", 'data.tokenizer={kind="words"}', "data.length=16", "data.overlap=4"]
    own = TextClassifier(sets=sets, device="cpu")
    with pytest.raises(ValueError, match="has learnt nothing yet: call fit"):
        own.predict(["a"])
    with pytest.raises(ValueError, match="a label for every text, not 2 texts and 1 labels"):
        own.fit(["a", "b"], [1])
    for bad, said in [([], "no text"), (["a", "\ud800"], "text 1 is no unicode"), ([5], "text 0")]:
        with pytest.raises(ValueError, match=said):
            own.fit(bad, [1] * len(bad))
    with pytest.raises(ValueError, match="text 1 has no label"):
        own.fit(["a", "b"], [1, None])
    assert own.fit(texts, labels) is own
    assert own.classes_ == [0, 1]
    assert own.predict(["lovely", "awful"]) == [1, 0]
    assert own.score(texts, labels) > 0.95
    chance = own.predict_proba(["lovely", "awful"])
    assert chance.shape == (2, 2)
    torch.testing.assert_close(chance.sum(1), torch.ones(2))
    assert chance[0, 1] > 0.5 > chance[1, 1]
    assert own.predict_proba([""]).isfinite().all()  # words have no special tokens: no token at all
    assert own.predict_proba(["", "lovely"]).isfinite().all()
    assert own.predict_proba([]).shape == (0, 2)
    with pytest.raises(ValueError, match="a label for every text, not 2 texts and 1 labels"):
        own.score(["lovely", "awful"], [1])
    with pytest.raises(ConfigError, match="sets are several"):
        TextClassifier(sets="train.epochs=1")
