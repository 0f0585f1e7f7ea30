"""What is held back of SST-2 shares no phrase of its own with what is trained on."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from fine_tuning_tasks import split_whole_sentences

SENTENCES = [f"the {thing} of film {number} is {thing}" for number, thing in enumerate("abcdefghij")]


def lines(raw: bytes) -> list[str]:
    header, *own = raw.decode("utf-8").splitlines()
    assert header == "sentence\tlabel"
    return own


def test_phrases_of_held_sentences_are_not_trained_on() -> None:
    phrases = [f"{one.split(' is ')[0]} \t1" for one in SENTENCES] + ["the \t0", "film \t0"]
    told = [*phrases, *(f"{one} \t0" for one in SENTENCES)]
    trained, held = map(lines, split_whole_sentences("\n".join(["sentence\tlabel", *told, ""]).encode(), 0.3))
    assert len(held) == 3
    assert {own.partition(" \t")[0] for own in held} <= set(SENTENCES)
    parts = {f"{own.split(' is ')[0]} \t1" for own in held}
    assert not parts & set(trained)
    assert {"the \t0", "film \t0"} <= set(trained)  # others say that, too
    assert trained == [own for own in told if own not in parts | set(held)]
