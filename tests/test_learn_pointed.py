"""Words for a network that only finds: the shipped reader points at them in the text."""

import pytest

import mnemic
from mnemic.learn.recollect import speaks

FIRST = "The harbour was built in 1874. Its lighthouse was designed by Anna Olsen. "
SECOND = "Gulls nest on the cliffs behind it. The mayor opened the gardens in May."
ASKED = "Who designed the lighthouse?"


def test_words_come_from_all_texts_that_were_read() -> None:
    model = mnemic.load("bert-mass")
    state = model.remember(SECOND, model.remember(FIRST))
    assert not speaks(model)
    bare = model.ask(state, ASKED)
    answer = model.ask(state, ASKED, text=FIRST + SECOND)
    assert (bare.text, answer.text) == ("", "Anna Olsen")
    assert answer.probability > 0.5
    assert (answer.evidence, answer.slots) == (bare.evidence, bare.slots)
    silent = model.ask(state, "Who is the king of Sweden?", text=FIRST + SECOND)
    assert silent.text == ""
    assert silent.probability < 0.5
    assert silent.evidence


def test_another_text_is_refused() -> None:
    model = mnemic.load("bert-mass")
    state = model.remember(SECOND, model.remember(FIRST))
    with pytest.raises(ValueError, match=f"text has {len(SECOND)} characters, but"):
        model.ask(state, ASKED, text=SECOND)
    with pytest.raises(ValueError, match="text is not what was read"):
        model.ask(state, ASKED, text=SECOND + FIRST)
    with pytest.raises(ValueError, match="as a str, not list"):
        model.ask(state, ASKED, text=[FIRST, SECOND])
