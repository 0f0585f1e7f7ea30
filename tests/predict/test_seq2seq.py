"""Texts answered with texts: a decoder's cached steps, its speech, and dates that are learnt."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from app_runs import run, sets

from mnemic.checkpoint.folder import weights_of
from mnemic.data.seq2seq.batches import Seq2SeqDataset, make_seq2seq_dataset
from mnemic.data.seq2seq.dataset import GeneratedDates, Seq2SeqFiles
from mnemic.data.text_tasks.examples import LabeledExample, TextError
from mnemic.evaluate.error_rate import evaluate_network
from mnemic.models import IGNORE, TextModel, build_model
from mnemic.predict.model import Model, load
from mnemic.recipe import ConfigError, load_recipe
from mnemic.respond.generate import greedy_search
from mnemic.train.run import fit

FEW = ("data.count=200", "data.validation_size=20", "data.test_size=20")
TINY = ("model.width=32", "model.encode.stack.depth=1", "model.respond.decoder.depth=1")


def network(**respond: Any) -> TextModel:
    embeddings = {"kind": "sum", "positions": {"kind": "sinusoidal"}}
    encode = {"kind": "transformer", "embeddings": embeddings}
    model = {"width": 16, "encode": encode, "respond": {"kind": "seq2seq"} | respond}
    return build_model(model, {"vocab": 300, "max_length": 64}).eval()


def dates(count: int = 6) -> Seq2SeqDataset:
    return (
        GeneratedDates(count=count, validation_size=1, test_size=1, tokenizer={"kind": "byte-bpe", "vocab": 300})
        .load()
        .train
    )


@torch.no_grad()
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("tied", [True, False])
def test_word_by_word_is_all_at_once(norm: str, tied: bool) -> None:
    """What a decoder says in cached steps has the scores that training sees."""
    model = network(tied=tied, decoder={"kind": "transformer", "norm": norm})
    inputs = dates().batch(torch.arange(6)).inputs
    logits = model(inputs).logits
    cache = model.respond.start_decoding(model.encode(inputs.tokens, inputs.mask), inputs.mask)
    assert inputs.decoder_tokens is not None
    for position, tokens in enumerate(inputs.decoder_tokens.unbind(1)):
        step_logits, cache = model.respond.step(tokens, cache)
        torch.testing.assert_close(step_logits, logits[:, position])


@torch.no_grad()
def test_the_source_is_looked_at_and_its_padding_is_not() -> None:
    model, texts = network(), dates()
    together = model(texts.batch(torch.arange(6)).inputs).logits
    for row in range(6):
        alone = model(texts.batch(torch.tensor([row])).inputs).logits
        torch.testing.assert_close(together[row : row + 1, : alone.shape[1]], alone)
    inputs = texts.batch(torch.arange(2)).inputs
    swapped = inputs._replace(
        tokens=inputs.tokens.flip(0), mask=inputs.mask.flip(0), answer_mask=inputs.answer_mask.flip(0)
    )
    assert not torch.allclose(model(swapped).logits, model(inputs).logits)


def test_the_answer_stands_one_word_behind_what_is_asked() -> None:
    texts = dates()
    batch = texts.batch(torch.arange(6))
    assert batch.inputs.decoder_tokens is not None
    for row, example in enumerate(texts.examples):
        targets = batch.targets[row][batch.targets[row] != IGNORE]
        assert texts.tokenizer.decode(targets.tolist()) == example.label
        assert targets[-1] == texts.tokenizer.sep
        decoder_tokens = batch.inputs.decoder_tokens[row, : len(targets)]
        assert decoder_tokens.tolist() == [texts.tokenizer.cls, *targets[:-1].tolist()]
        assert texts.tokenizer.decode(batch.inputs.tokens[row].tolist()) == example.text


def test_shared_word_vectors_are_one_weight() -> None:
    tied, untied = network(), network(tied=False)
    assert len(weights_of(untied)) == len(weights_of(tied)) + 1
    assert tied.respond.embeddings.tokens is tied.encode.embeddings.tokens
    narrow = {"kind": "factorised", "embedding_width": 4}
    model = {"width": 16, "encode": {"kind": "transformer", "embeddings": narrow}}
    with pytest.raises(ConfigError, match=r"set model\.respond\.tied = false"):
        build_model(model | {"respond": {"kind": "seq2seq"}}, {"vocab": 9, "max_length": 4})


def test_a_text_that_is_too_long_is_refused_not_cut() -> None:
    tokenizer = dates().tokenizer
    with pytest.raises(TextError, match=r"has 22 tokens with its two ends, more than data\.length"):
        make_seq2seq_dataset([LabeledExample("x" * 20, None, "")], tokenizer, 21)
    make_seq2seq_dataset([LabeledExample("x" * 20, None, "")], tokenizer, 22)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny network: one layer a side, three epochs of 6,000 dates, seconds on one core."""
    folder = tmp_path_factory.mktemp("dates") / "run"
    still = ("encode.stack", "encode.embeddings", "respond.decoder")
    changes = [*TINY, "model.width=48", *(f"model.{module}.dropout=0.0" for module in still)]
    changes += ["data.count=6000", "data.validation_size=50", "data.test_size=200", "objective.smooth=0.0"]
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
    dataset = GeneratedDates(test_size=200).dataset("test", quick_one.tokenizer)
    error, metrics = evaluate_network(quick_one.network, dataset)
    assert metrics["exact"] >= 85
    assert error == 100 - metrics["exact"]
    assert metrics["exact, 4 beams"] >= metrics["exact"] - 1


def test_asking_from_python(quick_one: Model) -> None:
    texts = ["the third of march nineteen eighty four", "may the twenty first two thousand and seven"]
    plain, beams = quick_one.generate(texts), quick_one.generate(texts, num_beams=3)
    for greedy, beam in zip(plain, beams):
        assert greedy.seen == greedy.total > 5
        assert len(greedy.ranked) == 1
        assert len(beam.ranked) == 3
        assert beam.ranked[0] == (beam.text, beam.score)
        assert list(beam.ranked) == sorted(beam.ranked, key=lambda candidate: -candidate[1])
        assert beam.score >= greedy.score - 1e-4
    assert quick_one.generate([]) == []
    with pytest.raises(ConfigError, match="cannot complete; it can generate"):
        quick_one.complete(["a"])
    with pytest.raises(ConfigError, match="cannot classify; it can generate"):
        quick_one.classify(["a"])


def test_how_words_are_chosen(quick_one: Model) -> None:
    """Bounds, repetition and chance, from Python; samples are of the seed, text by text."""
    texts = ["the third of march nineteen eighty four", "may the twenty first two thousand and seven"]
    short = quick_one.generate(texts, max_tokens=3, num_beams=2)
    assert all(len(quick_one.tokenizer.encode(answer.text, special=False).ids) <= 3 for answer in short)
    long = quick_one.generate(texts, min_tokens=20, max_tokens=20, no_repeat_ngrams=1)
    ids = quick_one.tokenizer.encode(long[0].text, special=False).ids
    assert len(long[0].text) > len(quick_one.generate(texts)[0].text)
    assert len(set(ids)) > 10
    samples = [quick_one.generate(texts, temperature=2.0, top_p=0.95, seed=seed) for seed in (0, 0, 1)]
    assert samples[0] == samples[1] != samples[2]
    assert quick_one.generate(texts[1:], temperature=2.0, top_p=0.95) == samples[0][1:]
    assert [answer.text for answer in quick_one.generate(texts, top_k=1)] == [
        answer.text for answer in quick_one.generate(texts)
    ]
    with pytest.raises(ConfigError, match="sampling draws one text"):
        quick_one.generate(texts, num_beams=2, top_k=3)
    with pytest.raises(ConfigError, match="max_tokens is from 1 to 64"):
        quick_one.generate(texts, max_tokens=65)


def test_greedy_speech_is_what_the_whole_pass_would_say(quick_one: Model) -> None:
    """The slow twin: read everything anew for each word."""
    dataset = GeneratedDates(test_size=5).dataset("test", quick_one.tokenizer)
    reader, inputs = quick_one.network, dataset.source_inputs(torch.arange(5))
    tokens = torch.full((5, 1), dataset.tokenizer.cls)
    with torch.no_grad():
        for _ in range(12):
            logits = reader(inputs._replace(decoder_tokens=tokens)).logits[:, -1]
            tokens = torch.cat([tokens, logits.argmax(-1, keepdim=True)], 1)
        states = reader.encode(inputs.tokens, inputs.mask)
    state = reader.respond.start_decoding(states, inputs.mask)
    fast = greedy_search(reader.respond.step, state, tokens[:, 0], end_id=dataset.tokenizer.sep, max_tokens=12)
    for row in range(5):
        length = int(fast.lengths[row, 0])
        assert fast.tokens[row, 0, :length].tolist() == tokens[row, 1 : length + 1].tolist()


def test_reading_and_testing_from_the_command_line(quick: Path) -> None:
    done = run("predict", "--model", quick, "--beams", 2, stdin="june the first nineteen ten\n\n")
    assert done.code == 0, done.err
    assert set(done.json) == {"file", "line", "text", "score", "ranked", "seen", "total"}
    report = run("evaluate", quick, "--json").json
    assert set(report["figures"]) == {"exact", "exact, 4 beams", "perplexity"}
    assert report["texts"] == 200
    assert report["seen"] == report["total"] > 2000
    for words, message in (("--words 3", "does not continue texts"), ("--overlap 3", "reads each text whole")):
        wrong = run("predict", "--model", quick, *words.split(), stdin="a\n")
        assert (wrong.code, message in wrong.err) == (2, True)


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
    data = Seq2SeqFiles(folder=str(tmp_path), columns=columns, tokenizer={"kind": "byte-bpe", "vocab": 270}).load()
    assert (len(data.train), len(data.validation)) == (36, 4)
    changes = [*TINY, f'data={{kind="sequences", folder="{tmp_path}", columns={{text="from", label="to"}}}}']
    recipe = load_recipe("dates", [*changes, "train.batch=12", "train.epochs=25", "train.rate=0.01"])
    for _ in fit(recipe, tmp_path / "run", device="cpu"):
        pass
    assert [answer.text for answer in load(tmp_path / "run").generate(["bcd", "dab"])] == ["dcb", "bad"]
    words = ('data.tokenizer={kind="words"}', "data.kind=sequences", f"data.folder={tmp_path}")
    wrong = run("train", "dates", *sets(*words, "data.columns={text='from', label='to'}"), "--out", tmp_path / "x")
    assert wrong.code == 2
    assert "cannot be generated with a tokenizer of kind 'words'" in wrong.err


@pytest.mark.slow
def test_the_recipe_learns_dates_to_the_full(tmp_path: Path) -> None:
    """Minutes on one core: at least 99 % of unseen days, greedy and with four beams."""
    for _ in fit(load_recipe("dates"), tmp_path / "run", device="cpu"):
        pass
    model = load(tmp_path / "run")
    _, metrics = evaluate_network(model.network, GeneratedDates().dataset("test", model.tokenizer))
    assert min(metrics.values()) >= 99
