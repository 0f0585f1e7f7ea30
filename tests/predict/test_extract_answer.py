"""Words for a network that only finds: the shipped reader points at them in the text."""

import pytest

import mnemic
from mnemic.predict.extract_answer import MAX_PASSAGES, extract_answer, extract_answers, find_overlapping, load_reader
from mnemic.predict.long_text import can_generate
from mnemic.predict.model import Model

FIRST = "The harbour was built in 1874. Its lighthouse was designed by Anna Olsen. "
SECOND = "Gulls nest on the cliffs behind it. The mayor opened the gardens in May."
ASKED = "Who designed the lighthouse?"


def test_words_come_from_all_texts_that_were_read() -> None:
    model = mnemic.load("bert-mass")
    state = model.remember(SECOND, model.remember(FIRST))
    assert not can_generate(model)
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


FIRST_LINE = "The tower of Harlow was designed by Anna"
SECOND_LINE = "Berg, and it was opened in 1902."


def test_words_stand_in_one_sentence_and_never_run_over_a_seam() -> None:
    """Read as one text these two give words of both, which stand nowhere."""
    question = "Who designed the tower?"
    text = f"{FIRST_LINE} {SECOND_LINE}"
    span = Model(load_reader()).answer(question, text)
    assert find_overlapping([FIRST_LINE, SECOND_LINE], span.start, span.end) == [FIRST_LINE, SECOND_LINE]
    ((answer, no_answer),) = extract_answers(load_reader(), [(question, [FIRST_LINE, SECOND_LINE])])
    assert answer
    assert answer in FIRST_LINE or answer in SECOND_LINE
    assert no_answer == span.no_answer
    assert extract_answer(question, [(0, FIRST_LINE), (len(FIRST_LINE), SECOND_LINE)])[0] == answer


def test_which_sentences_a_stretch_touches() -> None:
    passages = ["ab", "cde", "f"]  # ab cde f
    assert find_overlapping(passages, 0, 2) == ["ab"]
    assert find_overlapping(passages, 1, 4) == ["ab", "cde"]
    assert find_overlapping(passages, 3, 6) == ["cde"]
    assert find_overlapping(passages, 5, 8) == ["cde", "f"]


def test_what_was_told_twice_takes_one_place() -> None:
    distractors = [(10 * n, f"The gull sat on rock number {n}.") for n in range(1, MAX_PASSAGES)]
    sentence = "The lighthouse was designed by Anna Olsen."
    twice = [distractors[0], (900, distractors[0][1]), *distractors[1:], (90, sentence)]
    assert extract_answer(ASKED, twice) == extract_answer(ASKED, [*distractors, (90, sentence)])
    assert extract_answer(ASKED, twice)[0] == "Anna Olsen"


def test_a_question_that_the_reader_has_no_room_for_is_said_to_be() -> None:
    model = mnemic.load("bert-mass")
    state = model.remember(FIRST)
    with pytest.raises(ValueError, match=r"the question has 400 tokens, too many for the reader"):
        model.ask(state, ASKED * 80, text=FIRST)
