"""Streams: every sequence once an epoch, the same from any position on, in bounded memory."""

import json
import random
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic.data.corpora import (
    FORMATS,
    Corpus,
    CorpusError,
    Dealt,
    Document,
    Example,
    Maker,
    Place,
    Position,
    Stream,
    TokenDocument,
    Tokens,
    assemble,
    collate,
    cut,
    only,
    tokenised,
)
from mnemic.data.corpora.formats import Plan, Stretch
from mnemic.data.corpora.stream import in_blocks
from mnemic.network import IGNORE
from mnemic.recipe import ConfigError, build
from mnemic.text import TRAINERS, Subwords

COUNT = 23
WORDS = ("ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen")


def corpus_in(folder: Path) -> Corpus:
    dice = random.Random(0)
    for name, numbers in [("a.jsonl", range(14)), ("b.jsonl", range(14, COUNT))]:
        rows = []
        for number in numbers:
            said = [" ".join(dice.choices(WORDS, k=4)) + "." for _ in range(dice.randint(1, 5))]
            rows.append(json.dumps({"text": f"Text {number}. " + " ".join(said)}))
        (folder / name).write_text("\n".join(rows), encoding="utf-8")
    return Corpus.of([folder])


def letters(documents: list[Document], dice: random.Random) -> list[str]:
    """Two sequences a document, one of which hangs on the dice."""
    texts = [document.text for document in documents]
    return [made for text in texts for made in (text, f"{text} rolled {dice.random()}")]


def tokens_of(corpus: Corpus, tokenizer: Subwords) -> Callable[[Place], Iterator[TokenDocument]]:
    return lambda place: tokenised(corpus.read(place), tokenizer)


def stream_of(corpus: Corpus, **options: int) -> Stream[Document, str]:
    return Stream(read=corpus.read, make=letters, documents=5, ahead=False, **options)


def epoch_of(stream: Stream[Document, str], number: int) -> list[Dealt[str]]:
    return list(islice(stream.from_position(), number * 2 * COUNT, (number + 1) * 2 * COUNT))


def test_an_epoch_deals_every_sequence_once(tmp_path: Path) -> None:
    corpus = corpus_in(tmp_path)
    first, second = (epoch_of(stream_of(corpus), number) for number in (0, 1))
    plain = sorted(document.text for document in corpus.read())
    for dealt in (first, second):
        assert sorted(one.item for one in dealt if "rolled" not in one.item) == plain
    assert first[-1].after.epoch == 0
    assert second[-1].after.epoch == 1
    assert [one.item for one in first] != [one.item for one in second]
    assert len({one.key for one in first + second}) == 4 * COUNT


def test_blocks_are_shuffled_within() -> None:
    documents = [Document(str(n), Path("x"), 1, Place(number=n + 1)) for n in range(100)]
    stream = Stream(
        read=lambda place: iter(documents[place.number :]),
        make=lambda own, _: [d.text for d in own],
        documents=50,
    )
    items = [int(one.item) for one in islice(stream.from_position(), 100)]
    assert sorted(items[:50]) == list(range(50))
    assert items[:50] != list(range(50))
    assert sorted(items[50:]) == list(range(50, 100))


@pytest.mark.parametrize("copies", [0, 2])
@pytest.mark.parametrize("ahead", [False, True])
def test_a_stream_goes_on_exactly_behind_any_sequence(
    tmp_path: Path, copies: int, ahead: bool
) -> None:
    stream = Stream(
        read=corpus_in(tmp_path).read, make=letters, documents=4, copies=copies, ahead=ahead
    )
    whole = list(islice(stream.from_position(), 5 * COUNT))
    for number, one in enumerate(whole[:-1]):
        saved = Position.of(torch.tensor(one.after.numbers()).tolist())
        assert saved == one.after
        rest = stream.from_position(saved)
        assert list(islice(rest, 5 * COUNT - number - 1)) == whole[number + 1 :]
        rest.close()  # type: ignore[attr-defined]


def test_copies_come_round_and_others_do_not(tmp_path: Path) -> None:
    """Static: the sequences of epoch 0 and their keys come back in epoch 2, in another order."""
    corpus = corpus_in(tmp_path)
    static = [epoch_of(stream_of(corpus, copies=2), number) for number in range(3)]
    made = [{(one.item, one.key) for one in dealt} for dealt in static]
    assert made[0] == made[2]
    assert not made[0] & made[1]
    assert [one.key for one in static[0]] != [one.key for one in static[2]]
    fresh = [{one.key for one in epoch_of(stream_of(corpus), number)} for number in range(3)]
    assert not fresh[0] & fresh[1]
    assert not fresh[0] & fresh[2]


def test_seeds_decide(tmp_path: Path) -> None:
    corpus = corpus_in(tmp_path)
    assert epoch_of(stream_of(corpus, seed=1), 0) == epoch_of(stream_of(corpus, seed=1), 0)
    assert epoch_of(stream_of(corpus, seed=1), 0) != epoch_of(stream_of(corpus, seed=2), 0)


@given(st.lists(st.integers(0, 30), max_size=30), st.integers(1, 5), st.integers(1, 40))
def test_blocks_are_bounded(sizes: list[int], most: int, room: int) -> None:
    documents = [Document("x" * size, Path("x"), 1, Place()) for size in sizes]
    blocks = list(in_blocks(documents, most, room))
    assert [one for block in blocks for one in block] == documents
    for block in blocks:
        assert 1 <= len(block) <= most
        assert sum(len(document.text) for document in block[:-1]) < room


def test_a_stream_without_anything_says_so(tmp_path: Path) -> None:
    corpus = corpus_in(tmp_path)
    nothing = Stream(read=corpus.read, make=lambda texts, dice: [])
    with pytest.raises(CorpusError, match="nothing to learn from"):
        next(nothing.from_position())
    held = Stream(read=lambda place: only(corpus.read(place), "test"), make=letters)
    with pytest.raises(CorpusError, match="nothing to learn from"):
        next(held.from_position())
    with pytest.raises(ConfigError, match="at least 1 document"):
        Stream(read=corpus.read, make=letters, documents=0)


@pytest.mark.parametrize("kind", FORMATS)
def test_batches_of_real_tokens(tmp_path: Path, kind: str) -> None:
    """From files to tensors: nothing but the texts, framed; a stream goes on behind any batch."""
    corpus = corpus_in(tmp_path)
    texts = [document.text for document in corpus.read()]
    tokenizer = TRAINERS["wordpiece"](texts, vocab=60)
    maker = Maker(tokenizer=tokenizer, format=build(FORMATS, {"kind": kind}), most=24)
    stream = Stream(read=tokens_of(corpus, tokenizer), make=maker, documents=8)
    batches = list(islice(cut(stream.from_position(), tokens=100), 12))
    again = list(islice(cut(stream.from_position(batches[4][-1].after), tokens=100), 7))
    for dealt, same in zip(batches[5:], again):
        for one, other in zip(collate(dealt, tokenizer), collate(same, tokenizer)):
            assert torch.equal(one, other)
    for dealt in batches:
        batch = collate(dealt, tokenizer)
        assert batch.tokens.numel() <= 100
        assert (batch.tokens[:, 0] == tokenizer.cls).all()
        special = torch.isin(batch.tokens, torch.tensor(sorted(tokenizer.specials)))
        assert torch.equal(batch.fixed, special)
        assert torch.equal(batch.mask, batch.tokens != tokenizer.pad)
        assert batch.starts[batch.fixed].all()
        assert not set(batch.ordinary.tolist()) & tokenizer.specials
        assert len(batch.ordinary) == len(tokenizer) - len(tokenizer.specials)
        assert batch.hidden == tokenizer.mask
        pairs = "pair" in kind
        assert bool((batch.follows != IGNORE).all()) == pairs
        assert bool(batch.segments.any()) == pairs
        assert not batch.segments[~batch.mask].any()
        for row, size in zip(batch.tokens.tolist(), batch.mask.sum(1).tolist()):
            assert row[size - 1] == tokenizer.sep
            assert size <= 24


def test_a_sequence_longer_than_a_batch_has_one_of_its_own(tmp_path: Path) -> None:
    corpus = corpus_in(tmp_path)
    tokenizer = TRAINERS["wordpiece"]([document.text for document in corpus.read()], vocab=60)
    maker = Maker(tokenizer=tokenizer, format=build(FORMATS, {"kind": "doc-sentences"}), most=24)
    stream = Stream(read=tokens_of(corpus, tokenizer), make=maker)
    assert all(len(one) == 1 for one in islice(cut(stream.from_position(), tokens=1), 5))
    with pytest.raises(ConfigError, match="at least 1 token, not 0"):
        next(cut(stream.from_position(), tokens=0))


def of_length(number: int, size: int) -> Dealt[Example]:
    flags = np.zeros(size, dtype=bool)
    item = Example(np.full(size, 7, dtype=np.int32), flags.astype(np.int8), flags, flags, IGNORE)
    return Dealt(item, number, Position(taken=number + 1))


@given(st.lists(st.integers(1, 20), max_size=30), st.integers(1, 60))
@settings(deadline=None)
def test_batches_are_as_full_as_can_be(sizes: list[int], tokens: int) -> None:
    """A batch ends only where one more sequence, padded, would be too many tokens."""
    dealt = [of_length(number, size) for number, size in enumerate(sizes)]
    batches = [[len(one.item.ids) for one in batch] for batch in cut(dealt, tokens)]
    assert [size for batch in batches for size in batch] == sizes
    for batch, following in pairwise([*batches, [100]]):
        assert len(batch) == 1 or max(batch) * len(batch) <= tokens
        assert max(*batch, following[0]) * (len(batch) + 1) > tokens


def test_a_plan_is_assembled_as_it_says() -> None:
    """Types go to the [SEP] of their stretch; a stretch cut within a word begins one."""
    document = Tokens(np.arange(10, 20, dtype=np.int32), np.arange(10) % 3 == 0, [5, 10])
    plan = Plan((Stretch(0, 0, 4), Stretch(0, 4, 7)), (0, 1), 1)
    example = assemble(plan, [document], cls=2, sep=3)
    assert example.ids.tolist() == [2, 10, 11, 12, 13, 3, 14, 15, 16, 3]
    assert example.segments.tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]
    assert example.starts.tolist() == [bool(int(one)) for one in "1100111011"]
    assert example.fixed.tolist() == [bool(int(one)) for one in "1000010001"]
    assert example.follows == 1


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**31))
def test_the_length_of_blocks_loses_no_tokens(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    corpus = corpus_in(tmp_path_factory.mktemp("corpus"))
    texts = [document.text for document in corpus.read()]
    tokenizer = TRAINERS["wordpiece"](texts, vocab=60)
    whole = sum(len(tokenizer.encode(text, special=False).ids) for text in texts)
    maker = Maker(tokenizer=tokenizer, format=build(FORMATS, {"kind": "full-sentences"}), most=16)
    for documents in (1, 7, 100):
        read = tokens_of(corpus, tokenizer)
        stream = Stream(read=read, make=maker, documents=documents, seed=seed, ahead=False)
        count = 0
        for one in stream.from_position():
            count += int((~one.item.fixed).sum())
            if count >= whole:
                break
        assert count == whole
        assert one.after.place.number == COUNT
