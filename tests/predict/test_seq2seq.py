"""Texts answered with texts: a decoder's cached steps, its speech, and dates that are learnt."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from app_runs import run, sets

from mnemic.checkpoint.folder import weights_of
from mnemic.data.seq2seq.batches import SequenceSet, sequence_set
from mnemic.data.seq2seq.dataset import GeneratedDates, SequenceFiles
from mnemic.data.text_tasks.examples import Labelled, TextError
from mnemic.evaluate.error_rate import look
from mnemic.models import IGNORE, Reader, assemble
from mnemic.predict.model import Model, load
from mnemic.recipe import ConfigError
from mnemic.recipe import load as load_recipe
from mnemic.respond.generate import greedy
from mnemic.train.run import fit

FEW = ("data.count=200", "data.held=20", "data.tested=20")
TINY = ("model.width=32", "model.encode.stack.depth=1", "model.respond.decoder.depth=1")


def network(**respond: Any) -> Reader:
    embeddings = {"kind": "sum", "positions": {"kind": "sinusoidal"}}
    encode = {"kind": "transformer", "embeddings": embeddings}
    model = {"width": 16, "encode": encode, "respond": {"kind": "sequence"} | respond}
    return assemble(model, {"vocab": 300, "longest": 64}).eval()


def dates(count: int = 6) -> SequenceSet:
    return (
        GeneratedDates(count=count, held=1, tested=1, tokenizer={"kind": "byte-bpe", "vocab": 300})
        .data()
        .train
    )


@torch.no_grad()
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("tied", [True, False])
def test_word_by_word_is_all_at_once(norm: str, tied: bool) -> None:
    """What a decoder says in cached steps has the scores that training sees."""
    own = network(tied=tied, decoder={"kind": "transformer", "norm": norm})
    inputs = dates().batch(torch.arange(6)).inputs
    whole = own(inputs).scores
    cache = own.respond.begin(own.encode(inputs.tokens, inputs.mask), inputs.mask)
    assert inputs.said is not None
    for place, words in enumerate(inputs.said.unbind(1)):
        scores, cache = own.respond.step(words, cache)
        torch.testing.assert_close(scores, whole[:, place])


@torch.no_grad()
def test_the_source_is_looked_at_and_its_padding_is_not() -> None:
    own, texts = network(), dates()
    together = own(texts.batch(torch.arange(6)).inputs).scores
    for row in range(6):
        alone = own(texts.batch(torch.tensor([row])).inputs).scores
        torch.testing.assert_close(together[row : row + 1, : alone.shape[1]], alone)
    inputs = texts.batch(torch.arange(2)).inputs
    swapped = inputs._replace(
        tokens=inputs.tokens.flip(0), mask=inputs.mask.flip(0), inside=inputs.inside.flip(0)
    )
    assert not torch.allclose(own(swapped).scores, own(inputs).scores)


def test_the_answer_stands_one_word_behind_what_is_asked() -> None:
    texts = dates()
    batch = texts.batch(torch.arange(6))
    assert batch.inputs.said is not None
    for row, own in enumerate(texts.examples):
        asked = batch.targets[row][batch.targets[row] != IGNORE]
        assert texts.tokenizer.decode(asked.tolist()) == own.label
        assert asked[-1] == texts.tokenizer.sep
        said = batch.inputs.said[row, : len(asked)]
        assert said.tolist() == [texts.tokenizer.cls, *asked[:-1].tolist()]
        assert texts.tokenizer.decode(batch.inputs.tokens[row].tolist()) == own.text


def test_shared_word_vectors_are_one_weight() -> None:
    tied, own = network(), network(tied=False)
    assert len(weights_of(own)) == len(weights_of(tied)) + 1
    assert tied.respond.embeddings.tokens is tied.encode.embeddings.tokens
    narrow = {"kind": "factorised", "narrow": 4}
    model = {"width": 16, "encode": {"kind": "transformer", "embeddings": narrow}}
    with pytest.raises(ConfigError, match=r"set model\.respond\.tied = false"):
        assemble(model | {"respond": {"kind": "sequence"}}, {"vocab": 9, "longest": 4})


def test_a_text_that_is_too_long_is_refused_not_cut() -> None:
    tokenizer = dates().tokenizer
    with pytest.raises(TextError, match=r"has 22 tokens with its two ends, more than data\.length"):
        sequence_set([Labelled("x" * 20, None, "")], tokenizer, 21)
    sequence_set([Labelled("x" * 20, None, "")], tokenizer, 22)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny network: one layer a side, three epochs of 6,000 dates, seconds on one core."""
    folder = tmp_path_factory.mktemp("dates") / "run"
    still = ("encode.stack", "encode.embeddings", "respond.decoder")
    changes = [*TINY, "model.width=48", *(f"model.{part}.dropout=0.0" for part in still)]
    changes += ["data.count=6000", "data.held=50", "data.tested=200", "objective.smooth=0.0"]
    changes += ["train.batch=32", "train.steps=375", "train.rate=0.005", "train.validate=9"]
    recipe = load_recipe("dates", changes)
    for _ in fit(recipe, folder, device="cpu"):
        pass
    return folder


@pytest.fixture(scope="module")
def quick_one(quick: Path) -> Model:
    return load(quick)


def test_a_tiny_network_learns_dates(quick_one: Model) -> None:
    """On days it has never seen; a beam is about as good as greed, or better."""
    own = GeneratedDates(tested=200).asked("test", quick_one.tokenizer)
    error, found = look(quick_one.network, own)
    assert found["exact"] >= 85
    assert error == 100 - found["exact"]
    assert found["exact, 4 beams"] >= found["exact"] - 1


def test_asking_from_python(quick_one: Model) -> None:
    texts = [
        "the third of march nineteen eighty four",
        "may the twenty first two thousand and seven",
    ]
    plain, beams = quick_one.say(texts), quick_one.say(texts, beams=3)
    for one, other in zip(plain, beams):
        assert one.seen == one.total > 5
        assert len(one.ranked) == 1
        assert len(other.ranked) == 3
        assert other.ranked[0] == (other.text, other.score)
        assert list(other.ranked) == sorted(other.ranked, key=lambda own: -own[1])
        assert other.score >= one.score - 1e-4
    assert quick_one.say([]) == []
    with pytest.raises(ConfigError, match="cannot go on: its response is of kind 'sequence'"):
        quick_one.go_on(["a"])
    with pytest.raises(ConfigError, match="cannot classify; it can say"):
        quick_one.classify(["a"])


def test_greedy_speech_is_what_the_whole_pass_would_say(quick_one: Model) -> None:
    """The slow twin: read everything anew for each word."""
    own = GeneratedDates(tested=5).asked("test", quick_one.tokenizer)
    reader, inputs = quick_one.network, own.inputs(torch.arange(5))
    said = torch.full((5, 1), own.tokenizer.cls)
    with torch.no_grad():
        for _ in range(12):
            scores = reader(inputs._replace(said=said)).scores[:, -1]
            said = torch.cat([said, scores.argmax(-1, keepdim=True)], 1)
        states = reader.encode(inputs.tokens, inputs.mask)
    begun = reader.respond.begin(states, inputs.mask)
    fast = greedy(reader.respond.step, begun, said[:, 0], end=own.tokenizer.sep, most=12)
    for row in range(5):
        length = int(fast.lengths[row, 0])
        assert fast.words[row, 0, :length].tolist() == said[row, 1 : length + 1].tolist()


def test_reading_and_testing_from_the_command_line(quick: Path) -> None:
    done = run("read", "--model", quick, "--beams", 2, stdin="june the first nineteen ten\n\n")
    assert done.code == 0, done.err
    assert set(done.json) == {"file", "line", "text", "score", "ranked", "seen", "total"}
    tested = run("evaluate", "--model", quick, "--json").json
    assert set(tested["figures"]) == {"exact", "exact, 4 beams"}
    assert tested["texts"] == 200
    assert tested["seen"] == tested["total"] > 2000
    for words, said in (
        ("--words 3", "is for language models"),
        ("--overlap 3", "reads each text whole"),
    ):
        wrong = run("read", "--model", quick, *words.split(), stdin="a\n")
        assert (wrong.code, said in wrong.err) == (2, True)


def test_a_stopped_run_ends_with_the_same_bits(tmp_path: Path) -> None:
    recipe = load_recipe("dates", [*TINY, *FEW, "train.batch=32", "train.epochs=2"])
    total = len(list(fit(recipe, tmp_path / "whole", device="cpu")))
    steps: Any = fit(recipe, tmp_path / "parts", device="cpu")
    assert len(list(islice(steps, 8))) == 8
    steps.close()
    assert 8 + len(list(fit(recipe, tmp_path / "parts", device="cpu"))) == total
    both = [weights_of(load(tmp_path / name).network) for name in ("whole", "parts")]
    assert all(torch.equal(both[0][name], both[1][name]) for name in both[0])


def test_answers_from_files(tmp_path: Path) -> None:
    """Any texts with answers, in a table or in JSON lines, with columns of any name."""
    rows = [f"{word}\t{word[::-1]}" for word in ("abc", "bcd", "cda", "dab") * 10]
    for name in ("train", "test"):
        (tmp_path / f"{name}.tsv").write_text("\n".join(["from\tto", *rows]), "utf-8")
    columns = {"text": "from", "label": "to"}
    data = SequenceFiles(
        folder=str(tmp_path), columns=columns, tokenizer={"kind": "byte-bpe", "vocab": 270}
    ).data()
    assert (len(data.train), len(data.validation)) == (36, 4)
    changes = [
        *TINY,
        f'data={{kind="sequences", folder="{tmp_path}", columns={{text="from", label="to"}}}}',
    ]
    recipe = load_recipe(
        "dates", [*changes, "train.batch=12", "train.epochs=25", "train.rate=0.01"]
    )
    for _ in fit(recipe, tmp_path / "run", device="cpu"):
        pass
    assert [own.text for own in load(tmp_path / "run").say(["bcd", "dab"])] == ["dcb", "bad"]
    words = ('data.tokenizer={kind="words"}', "data.kind=sequences", f"data.folder={tmp_path}")
    wrong = run(
        "train",
        "dates",
        *sets(*words, "data.columns={text='from', label='to'}"),
        "--out",
        tmp_path / "x",
    )
    assert wrong.code == 2
    assert "cannot be said in a vocabulary of kind 'words'" in wrong.err


@pytest.mark.slow
def test_the_recipe_learns_dates_to_the_full(tmp_path: Path) -> None:
    """Minutes on one core: at least 99 % of unseen days, greedy and with four beams."""
    for _ in fit(load_recipe("dates"), tmp_path / "run", device="cpu"):
        pass
    own = load(tmp_path / "run")
    _, found = look(own.network, GeneratedDates().asked("test", own.tokenizer))
    assert min(found.values()) >= 99
