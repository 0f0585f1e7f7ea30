"""Running text as streams: order, memory from step to step, resuming, and what it is worth."""

from itertools import islice, pairwise
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import text_files
import torch
from app_runs import run, sets
from learn_runs import finish, stop_after, weights_in

from mnemic.data import DATASETS
from mnemic.data.language_modeling.batches import END, TokenDataset, join_documents, make_token_dataset
from mnemic.models import IGNORE, build_model
from mnemic.objectives.next_token import NextTokenLoss
from mnemic.predict.model import load
from mnemic.predict.perplexity import compute_perplexity
from mnemic.recipe import ConfigError, build, load_recipe
from mnemic.text import WordTokenizer
from mnemic.train.loop import TrainSettings, build_optimizer, train
from mnemic.train.run import Run, fit
from mnemic.train.sampler import BatchSampler

# 300 training documents of about 60 words in 8 rows: more than 2 epochs in 60 steps.
TINY = [
    "model.width=16", "model.encode.stack.attention.heads=2", "model.encode.memory_length=10", "data.vocab=16",
    "data.length=8", "data.validation=0.1", "train.batch=8", "train.steps=60", "train.epochs=10", "train.rate=0.01",
    "train.validate=0", "train.matmul=float32", "train.save=1000",
]  # fmt: skip
WORDS = 12  # of the copied text, beside three special tokens
PERIOD, LENGTH = 6, 4  # a word comes back after a period, which is longer than a segment


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return text_files.language_modeling(tmp_path_factory.mktemp("stream"), 60)


def recipe_of(files: Path, *options: str) -> dict[str, Any]:
    return load_recipe("transformer-xl-words", [*TINY, f"data.folder={files}", *options])


@pytest.fixture(scope="module")
def trained(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finish(recipe_of(files), tmp_path_factory.mktemp("trained") / "run", device="cpu")


def make_words(*lengths: int, length: int = LENGTH) -> TokenDataset:
    """Make a stream of documents with random words."""
    tokenizer = make_tokenizer()
    generator = np.random.default_rng(0)
    documents = [generator.integers(2, 2 + WORDS, size).tolist() for size in lengths]
    ids = join_documents(documents, tokenizer.id_of(END))
    return make_token_dataset(ids, tokenizer, max_tokens=length, context=2, stream=True)


def make_tokenizer() -> WordTokenizer:
    return WordTokenizer(["<pad>", "<unk>", *(f"word{number}" for number in range(WORDS)), END])


def make_network(memory_length: int, *, depth: int = 1, length: int = LENGTH) -> Any:
    encode = {
        "kind": "causal",
        "embeddings": {"kind": "sum", "positions": {"kind": "none"}},
        "stack": {"kind": "transformer", "depth": depth, "attention": {"kind": "transformer-xl"}},
        "memory_length": memory_length,
    }
    model = {"width": 32, "encode": encode, "respond": {"kind": "next-token"}}
    torch.manual_seed(0)
    return build_model(model, {"vocab": WORDS + 3, "max_length": length})


# Order -----------------------------------------------------------------------------------------


def test_a_stream_asks_for_every_word_once_in_order() -> None:
    """Documents go on after their end mark; the last span is shorter."""
    dataset = make_words(5, 1, 16)
    batch = dataset.batch(torch.arange(len(dataset)))
    assert batch.inputs.tokens[batch.inputs.mask].tolist() == dataset.ids[:-1].tolist()
    assert batch.targets[batch.targets != IGNORE].tolist() == dataset.ids[1:].tolist()
    assert batch.inputs.stream_starts.tolist() == list(range(0, 25, LENGTH))
    assert dataset.num_targets == len(dataset.ids) - 1
    assert dataset.lengths.tolist() == [4, 4, 4, 4, 4, 4, 1]
    assert len(make_words()) == 0


def test_each_row_of_a_batch_goes_on_where_it_ended() -> None:
    """The parts of the text side by side, in every epoch; a new epoch starts anew."""
    dataset = make_words(300)
    sampler = BatchSampler(pools=[torch.arange(len(dataset))], seeds=[3], batch_size=5, in_order=True)
    assert sampler.steps_per_epoch == 15  # of 76 spans
    steps = list(islice(sampler.iterate_from(0), 31))
    batches = [dataset.batch(step.rows).inputs for step in steps]
    for number, (before, after) in enumerate(pairwise(batches), start=1):
        goes_on = before.stream_starts + LENGTH == after.stream_starts
        assert goes_on.tolist() == [number % 15 != 0] * 5
    assert torch.equal(torch.cat([step.rows for step in steps[:15]]).sort().values, torch.arange(75))
    assert torch.equal(steps[0].rows, torch.arange(0, 75, 15))
    assert torch.equal(steps[16].rows, steps[1].rows)
    assert torch.equal(next(sampler.iterate_from(7)).rows, steps[7].rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["data.stream=false"], r"set data\.stream=true"),
        (["train.replace=true"], "a stream is read in order"),
        (["train.buckets=2"], "a stream is read in order"),
        (["train.accumulate=2"], r"leave out train\.accumulate"),
        (["train.batch=4000"], "cannot be drawn from"),
    ],
)
def test_mistakes_are_explained(files: Path, tmp_path: Path, options: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        next(fit(recipe_of(files, *options), tmp_path / "run", device="cpu"))


# Memory from step to step ----------------------------------------------------------------------


def test_the_objective_carries_the_memory_and_a_new_epoch_empties_it() -> None:
    dataset, network = make_words(100), make_network(6)
    batches = [dataset.batch(torch.tensor(rows)) for rows in ([0, 10], [1, 11], [0, 12])]
    compute_loss = NextTokenLoss()
    first = compute_loss(network, batches[0])
    second = compute_loss(network, batches[1], first.carried)
    assert first.carried is not None
    assert second.carried is not None
    assert not torch.allclose(second.total, compute_loss(network, batches[1]).total)
    third = compute_loss(network, batches[2], second.carried)
    assert third.carried is not None
    assert third.carried["memory.mask"].sum(1).tolist() == [4, 6]  # the first row starts anew
    assert third.carried["memory.next_starts"].tolist() == [4, 52]
    assert all(not tensor.requires_grad for tensor in third.carried.values())
    assert compute_loss(make_network(0), batches[0]).carried is None


@pytest.mark.parametrize("steps", [5, 31])
def test_a_stopped_run_ends_with_the_same_bits(trained: Path, files: Path, tmp_path: Path, steps: int) -> None:
    """In the middle of an epoch, with dropout: the memory is saved."""
    stop_after(steps, recipe_of(files), tmp_path / "run", device="cpu")
    finish(recipe_of(files), tmp_path / "run", device="cpu")
    assert weights_in(tmp_path / "run") == weights_in(trained)


def test_a_memory_that_is_lost_would_be_seen(
    trained: Path, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_after(5, recipe_of(files), tmp_path / "run", device="cpu")
    restore_state = Run.restore_state

    def restore_without_memory(self: Run, *parts: Any) -> None:
        restore_state(self, *parts)
        self.carried = None

    monkeypatch.setattr(Run, "restore_state", restore_without_memory)
    finish(recipe_of(files), tmp_path / "run", device="cpu")
    assert weights_in(tmp_path / "run") != weights_in(trained)


def test_the_memory_alone_makes_the_difference(files: Path, tmp_path: Path, trained: Path) -> None:
    """Runs with and without it start from the same weights and read the same words."""
    finish(recipe_of(files, "model.encode.memory_length=0"), tmp_path / "run", device="cpu")
    assert weights_in(tmp_path / "run") != weights_in(trained)
    networks = [load(path).network for path in (trained, tmp_path / "run")]
    shapes = [{name: weight.shape for name, weight in network.named_parameters()} for network in networks]
    assert shapes[0] == shapes[1]


# Evaluation ------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 3])
def test_a_long_memory_gives_the_perplexity_of_one_long_pass(depth: int) -> None:
    dataset, network = make_words(13, 20), make_network(100, depth=depth).eval()
    tokens = dataset.ids[None, :-1].long()
    with torch.no_grad():
        states = network.encode(tokens, torch.ones_like(tokens, dtype=torch.bool))
        logits = network.respond(None, None, states, tokens)[0]
    expected = exp(float(torch.nn.functional.cross_entropy(logits, dataset.ids[1:].long())))
    assert compute_perplexity(network, dataset)["perplexity"] == pytest.approx(expected, rel=1e-5)
    network.encode.memory_length = 3
    assert compute_perplexity(network, dataset)["perplexity"] != pytest.approx(expected, rel=1e-5)


def test_commands_read_with_a_memory_of_any_length(trained: Path, files: Path) -> None:
    model = load(trained)
    dataset = make_stream(trained, files)
    for length in (0, 10, 40):
        model.network.encode.memory_length = length
        expected = compute_perplexity(model.network, dataset)["perplexity"]
        result = run("evaluate", trained, *sets(f"model.encode.memory_length={length}"), "--device", "cpu", "--json")
        assert result.json["figures"]["perplexity"] == pytest.approx(expected, rel=1e-5)
        assert result.json["memory"] == length
        cached = f" and {length} cached states per layer" if length else ""
        shown = run("evaluate", trained, *sets(f"model.encode.memory_length={length}"), "--device", "cpu")
        assert f"each from 8 words{cached} at most" in shown.out + shown.err
    other_segments = run("evaluate", trained, *sets("data.length=5"), "--device", "cpu", "--json").json
    assert other_segments["figures"]["perplexity"] != pytest.approx(expected, rel=1e-5)
    wrong = run("evaluate", trained, *sets("train.rate=1"), "--device", "cpu")
    assert (wrong.code, "cannot change here" in wrong.err) == (2, True)
    wrong = run("evaluate", trained, *sets("model.width=20"), "--device", "cpu")
    assert (wrong.code, "has shape" in wrong.err) == (2, True)


def make_stream(trained: Path, files: Path) -> TokenDataset:
    model = load(trained)
    return build(DATASETS, model.recipe["data"]).dataset("test", model.tokenizer)


def test_texts_longer_than_a_segment_are_read_to_the_end(trained: Path) -> None:
    """Perplexity and continuation, with the memory of all that came before."""
    model = load(trained)
    model.network.encode.memory_length = 200
    text = " ".join(["the old train ran past a small grey house"] * 4)
    mark, (ids,) = model.tokenizer.id_of(END), model.tokenizer.encode_batch([text])
    tokens = torch.tensor([[mark, *ids]])
    with torch.no_grad():
        states = model.network.encode(tokens, torch.ones_like(tokens, dtype=torch.bool))
        logits = model.network.respond(None, None, states, tokens)[0]
    loss = torch.nn.functional.cross_entropy(logits[:-1], tokens[0, 1:])
    assert model.perplexity([text])[0].perplexity == pytest.approx(exp(float(loss)), rel=1e-4)
    completion = model.complete([text], max_words=1, seed=1)[0]
    assert (completion.seen, completion.total) == (len(ids), len(ids))
    logits[:, [model.tokenizer.pad, model.tokenizer.unknown]] = float("-inf")  # never sampled
    next_id = model.tokenizer.encode_batch([completion.text])[0]
    log_probability = logits[-1].log_softmax(-1)[next_id[0] if next_id else mark]
    assert completion.score == pytest.approx(float(log_probability), abs=1e-3)
    with pytest.raises(ConfigError, match="max_words is from 1 to 7"):
        model.complete([text], max_words=8)


# What a memory is worth ------------------------------------------------------------------------


def make_copied_text(seed: int, count: int) -> TokenDataset:
    """Make a text in which five of six words are those of a period before."""
    generator = np.random.default_rng(seed)
    ids = generator.integers(2, 2 + WORDS, count)
    is_new = generator.random(count) < 1 / 6
    for position in range(PERIOD, count):
        if not is_new[position]:
            ids[position] = ids[position - PERIOD]
    tokenizer = make_tokenizer()
    text = join_documents([ids.tolist()], tokenizer.id_of(END))
    return make_token_dataset(text, tokenizer, max_tokens=LENGTH, stream=True)


@pytest.mark.parametrize("memory_length", [0, 6])
def test_a_memory_learns_what_no_segment_holds(memory_length: int) -> None:
    """The word to copy is five tokens back and a segment has four: it needs a memory."""
    network, dataset = make_network(memory_length), make_copied_text(0, 20_000)
    sampler = BatchSampler(pools=[torch.arange(len(dataset))], seeds=[0], batch_size=32, in_order=True)
    settings = TrainSettings(steps=300, epochs=3, rate=0.01, schedule={"kind": "linear", "warmup": 0.1})
    batches = (dataset.batch(step.rows) for step in sampler.iterate_from(0))
    steps = train(
        network, NextTokenLoss(), batches, settings,
        optimizer=build_optimizer(network, settings), steps_per_epoch=sampler.steps_per_epoch,
    )  # fmt: skip
    assert len(list(steps)) == 300
    perplexity = compute_perplexity(network, make_copied_text(1, 2000))["perplexity"]
    if memory_length:
        assert perplexity < 4
        network.encode.memory_length = 0
        assert compute_perplexity(network, make_copied_text(1, 2000))["perplexity"] > 8
    else:
        assert perplexity > exp(0.9 * log(WORDS))
