"""Held-out sentences of SST-2 share no phrase of their own with training."""

from mnemic.data.text_tasks.whole_sentences import split_whole_sentences

SENTENCES = [f"the {letter} of film {number} is {letter}" for number, letter in enumerate("abcdefghij")]


def read_lines(raw: bytes) -> list[str]:
    header, *lines = raw.decode("utf-8").splitlines()
    assert header == "sentence\tlabel"
    return lines


def test_phrases_of_held_sentences_are_not_trained_on() -> None:
    phrases = [f"{sentence.split(' is ')[0]} \t1" for sentence in SENTENCES] + ["the \t0", "film \t0"]
    lines = [*phrases, *(f"{sentence} \t0" for sentence in SENTENCES)]
    train_lines, validation_lines = map(
        read_lines, split_whole_sentences("\n".join(["sentence\tlabel", *lines, ""]).encode(), 0.3)
    )
    assert len(validation_lines) == 3
    assert {line.partition(" \t")[0] for line in validation_lines} <= set(SENTENCES)
    held_out_phrases = {f"{line.split(' is ')[0]} \t1" for line in validation_lines}
    assert not held_out_phrases & set(train_lines)
    assert {"the \t0", "film \t0"} <= set(train_lines)  # others say that, too
    assert train_lines == [line for line in lines if line not in held_out_phrases | set(validation_lines)]
