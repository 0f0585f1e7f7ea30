"""Kept tokens: what was written is read, from any place on, and nothing else is taken for it."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from mnemic.data.corpora import (
    FORMATS,
    CorpusError,
    Kept,
    Maker,
    Place,
    Stream,
    TokenDocument,
    keep,
    tokenise,
)
from mnemic.recipe import build
from mnemic.text import TRAINERS

TEXTS = [f"The {n} dogs jumped. Did they? " * (n % 4) + "我爱北京。" * (n % 3) for n in range(12)]
TOKENIZER = TRAINERS["wordpiece"](TEXTS, vocab=80)


def documents(place: Place = Place()) -> Iterator[TokenDocument]:  # noqa: B008
    """Some of them without a token."""
    for number, text in enumerate(TEXTS[place.number :], start=place.number):
        yield TokenDocument(tokenise(text, TOKENIZER), Place(number=number + 1))


def plain(found: Iterator[TokenDocument]) -> list[tuple[list[int], list[bool], list[int], Place]]:
    return [(t.ids.tolist(), t.starts.tolist(), list(t.ends), after) for t, after in found]


def test_what_is_kept_is_what_was_given(tmp_path: Path) -> None:
    kept = keep(documents(), tmp_path / "kept", "these")
    assert len(kept) == len(TEXTS)
    assert plain(kept.read()) == plain(documents())
    assert isinstance(kept.arrays["ids"], np.memmap)
    for number in range(len(TEXTS) + 1):
        place = Place(number=number)
        assert plain(kept.read(place)) == plain(documents(place))
    assert not list(tmp_path.glob("*.new"))


def test_it_is_written_once(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    keep(documents(), folder, "these")
    again = keep(iter(()), folder, "these")
    assert plain(again.read()) == plain(documents())
    with pytest.raises(CorpusError, match=r"kept of something else \('these', not 'those'\)"):
        keep(documents(), folder, "those")


def test_what_was_left_half_written_is_written_anew(tmp_path: Path) -> None:
    def broken() -> Iterator[TokenDocument]:
        yield from islice(documents(), 3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        keep(broken(), tmp_path / "kept", "these")
    assert not (tmp_path / "kept").exists()
    kept = keep(documents(), tmp_path / "kept", "these")
    assert plain(kept.read()) == plain(documents())


def test_damage_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    keep(documents(), folder, "these")
    content = (folder / "ids.bin").read_bytes()
    (folder / "ids.bin").write_bytes(content[:-4])
    with pytest.raises(CorpusError, match="not as long as they were"):
        Kept.load(folder, "these")
    (folder / "ids.bin").unlink()
    with pytest.raises(CorpusError, match=r"ids.bin is missing"):
        Kept.load(folder, "these")
    (folder / "kept.json").write_text("{", encoding="utf-8")
    with pytest.raises(CorpusError, match="holds no kept tokens"):
        Kept.load(folder, "these")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(CorpusError, match="holds no kept tokens"):
        keep(documents(), empty, "these")


def test_nothing_can_be_kept_too(tmp_path: Path) -> None:
    kept = keep(iter(()), tmp_path / "kept", "nothing")
    assert len(kept) == 0
    assert list(kept.read()) == []
    assert json.loads((tmp_path / "kept" / "kept.json").read_text("utf-8"))["about"] == "nothing"


def test_a_stream_reads_kept_tokens_as_it_reads_a_corpus(tmp_path: Path) -> None:
    kept = keep(documents(), tmp_path / "kept", "these")
    maker = Maker(tokenizer=TOKENIZER, format=build(FORMATS, {"kind": "sentence-pair"}), most=20)
    sides = [Stream(read=read, make=maker, documents=5) for read in (documents, kept.read)]
    one, other = (list(islice(side.from_position(), 60)) for side in sides)
    for a, b in zip(one, other):
        assert (a.key, a.after, a.item.follows) == (b.key, b.after, b.item.follows)
        assert all(np.array_equal(x, y) for x, y in zip(a.item[:4], b.item[:4]))
