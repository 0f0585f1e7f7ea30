"""Runs of contrastive learning: what is learned, saved, resumed, embedded and mined."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import text_files
import torch
from learn_runs import TINY_READER, finish, stop_after, weights_in
from safetensors.torch import load_file
from shared_folders import make_temporary_folder
from torch import nn

from mnemic.checkpoint.folder import weights_of
from mnemic.cli.main import main
from mnemic.data import DATASETS
from mnemic.data.text_tasks.examples import AnsweredPair
from mnemic.data.views.groups import number_texts
from mnemic.evaluate.intervals import wilson_interval
from mnemic.evaluate.text_metrics import compute_metrics, compute_report
from mnemic.evaluate.view_metrics import compute_uniformity, rank_partners
from mnemic.predict.mine_negatives import has_answer, mine_hard_negatives
from mnemic.predict.model import Model, load
from mnemic.recipe import ConfigError, Recipe, build, load_recipe
from mnemic.train.initialize import initialize_network
from mnemic.train.loop import OptimizerStep
from mnemic.train.run import load_data

TINY = [
    "model.width=32",
    "model.encode.stack.depth=1",
    "train.rate=0.005",
    'data.tokenizer={kind="wordpiece", vocab=400}',
    "data.length=24",
    "data.overlap=6",
    "train.batch=32",
    "train.validate=0",
    "train.keep=last",
]


def tiny(name: str, folder: Path, *sets: str) -> Recipe:
    return load_recipe(name, [*TINY, f"data.folder={folder}", *sets])


@cache
def run() -> Path:
    """Train on questions and answers that share no word."""
    folder = make_temporary_folder()
    sets = ("train.epochs=14", "data.test_file=test", "model.respond.projection=16")
    return finish(tiny("dpr", text_files.matches(folder), *sets), folder / "run", device="cpu")


@cache
def trained() -> Model:
    return load(run())


def recall(network: nn.Module, recipe: Recipe) -> float:
    dataset = build(DATASETS, recipe["data"]).dataset("test", trained().tokenizer)
    return compute_metrics(network, dataset)["recall@1"]


def test_a_tiny_network_learns_from_pairs() -> None:
    """Without training it finds one of 60 answers, or hardly more."""
    recipe = trained().recipe
    untrained = initialize_network(recipe["model"], load_data(recipe).sizes, 0)
    assert recall(untrained, recipe) < 15
    assert recall(trained().network, recipe) > 75


def test_it_embeds_without_its_projection() -> None:
    """The projection is for the loss; a vector is the mean of a text's states."""
    model, texts = trained(), ["what of bab and bad ?", "the old babox badox"]
    vectors = model.embed(texts).vectors
    assert model.methods == ("embed",)
    assert vectors.shape == (2, 32)
    data = build(DATASETS, model.recipe["data"])
    batch: Any = data.load().train.batch(torch.arange(3))
    network = model.network
    assert network.train()(batch.inputs).logits.shape == (6, 16)
    states = network.eval()(batch.inputs)
    mask = batch.inputs.answer_mask.unsqueeze(-1)
    torch.testing.assert_close(states.logits, (states.states * mask).sum(1) / mask.sum(1))
    pair = data.read_split("train")[0]
    expected = nn.functional.normalize(states.logits[[0, 3]], dim=1)
    torch.testing.assert_close(model.embed(list(pair)).vectors, expected.detach(), atol=1e-5, rtol=1e-4)


def test_the_first_state_can_be_the_vector(tmp_path: Path) -> None:
    recipe = tiny("dpr", run().parent, "train.epochs=0", "model.respond.pool=first")
    model = load(finish(recipe, tmp_path / "run", device="cpu"))
    texts = ["the old babox badox", " ".join(["the old babox badox"] * 9), ""]
    vectors = model.embed(texts).vectors
    ids = torch.tensor([model.tokenizer.encode(texts[0]).ids])
    states = model.network.eval().encode(ids, torch.ones_like(ids, dtype=torch.bool))
    torch.testing.assert_close(vectors[0], nn.functional.normalize(states[0, 0], dim=0).detach(), atol=1e-5, rtol=1e-4)
    assert vectors.norm(dim=1).tolist() == pytest.approx([1, 1, 0], abs=1e-5)
    with_sentences = model.embed(texts, sentences=True)
    torch.testing.assert_close(with_sentences.vectors, vectors)


def test_a_queue_learns_too(tmp_path: Path) -> None:
    objective = 'objective={kind="moco", queue=128, momentum=0.98}'
    recipe = tiny("dpr", run().parent, objective, "train.epochs=20", "data.test_file=test")
    model = load(finish(recipe, tmp_path / "run", device="cpu"))
    assert recall(model.network, recipe) > 40
    assert {name.partition(".")[0] for name in weights_of(model.network)} == {"encode"}


@pytest.mark.parametrize("stop", [3, 7])
def test_a_stopped_run_with_a_queue_ends_with_the_same_bits(tmp_path: Path, stop: int) -> None:
    """Queue and momentum weights are in the checkpoint of a stopped run, not in a finished one."""
    objective = 'objective={kind="moco", queue=96, momentum=0.9}'
    recipe = tiny("dpr", run().parent, objective, "train.steps=12", "train.save=5")
    uninterrupted = finish(recipe, tmp_path / "whole", device="cpu")
    stop_after(stop, recipe, tmp_path / "stopped", device="cpu")
    stored = load_file(tmp_path / "stopped" / "checkpoint" / "progress.safetensors")
    assert int(stored["carried.queue_next"]) == stop * 32 % 96
    assert (stored["carried.queue_ids"] >= 0).sum() == min(stop * 32, 96)
    assert sum(name.startswith("carried.momentum.encode.") for name in stored) > 10
    finish(recipe, tmp_path / "stopped", device="cpu")
    assert weights_in(tmp_path / "stopped") == weights_in(uninterrupted)
    finished = [load_file(path) for path in (tmp_path / "stopped" / "checkpoint").glob("*.safetensors")]
    assert not any("momentum" in name or "queue" in name for tensors in finished for name in tensors)


def test_accumulation_contrasts_the_whole_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With shards the loss of each step is that of the whole batch, and so are the weights."""
    losses: dict[str, list[float]] = {}
    take_step = OptimizerStep.__call__
    for shards in (1, 4):
        recorded = losses.setdefault(str(shards), [])

        def record(self: OptimizerStep, *args: Any, recorded: list[float] = recorded) -> Any:
            step = take_step(self, *args)
            recorded.append(float(step.loss))
            return step

        monkeypatch.setattr(OptimizerStep, "__call__", record)
        dropouts = ("model.encode.embeddings.dropout=0.0", "model.encode.stack.dropout=0.0")
        dropouts += ('train.optimizer={kind="sgd"}',)
        recipe = tiny("dpr", run().parent, f"train.accumulate={shards}", "train.steps=5", *dropouts)
        finish(recipe, tmp_path / str(shards), device="cpu")
    assert losses["4"] == pytest.approx(losses["1"], rel=1e-4)
    whole, sharded = (weights_of(load(tmp_path / shards).network) for shards in ("1", "4"))
    for name, weight in whole.items():
        torch.testing.assert_close(sharded[name], weight, atol=1e-5, rtol=1e-4)


def test_a_queue_that_does_not_fit_is_refused_before_training(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"objective.queue = 100 does not hold whole batches of 32"):
        finish(tiny("moco", tmp_path, "objective.queue=100"), tmp_path / "run", device="cpu")
    text_files.views(tmp_path, 40)
    with pytest.raises(ConfigError, match=r"data of kind 'views' needs 'contrast' or 'moco'"):
        finish(tiny("simcse", tmp_path, 'objective={kind="classes"}'), tmp_path / "run", device="cpu")


def test_dropout_alone_spreads_texts_out(tmp_path: Path) -> None:
    """SimCSE: at the end texts are farther from each other than at the start."""
    recipe = tiny("simcse", text_files.views(tmp_path, 60), "train.steps=30", "data.validation=0.3")
    data = load_data(recipe)
    before = compute_metrics(initialize_network(recipe["model"], data.sizes, 0), data.validation)
    model = load(finish(recipe, tmp_path / "run", device="cpu"))
    after = compute_metrics(model.network, data.validation)
    assert after["uniformity"] < before["uniformity"] - 0.5
    assert compute_report(model.network, data.validation).intervals == {
        f"recall@{top_k}": pytest.approx(
            [100 * end for end in wilson_interval(after[f"recall@{top_k}"] / 100, len(data.validation))]
        )
        for top_k in (1, 5)
    }
    assert list(after) == ["recall@1", "recall@5", "MRR", "nDCG@10", "alignment", "uniformity"]
    assert after["recall@1"] <= after["nDCG@10"] <= 100
    assert after["recall@1"] <= after["MRR"] <= 100


def test_a_tiny_network_learns_from_inverse_cloze(tmp_path: Path) -> None:
    sets = ("data.unit=documents", "data.length=40", "data.views.kind=inverse-cloze", "data.validation=0.2")
    recipe = tiny("simcse", text_files.views(tmp_path), *sets, "train.batch=16", "train.epochs=8")
    data = load_data(recipe)
    before = compute_metrics(initialize_network(recipe["model"], data.sizes, 0), data.validation)["recall@1"]
    model = load(finish(recipe, tmp_path / "run", device="cpu"))
    assert compute_metrics(model.network, data.validation)["recall@1"] > before + 20


# Metrics ---------------------------------------------------------------------------------------


def test_a_rank_counts_nearer_texts_of_other_groups() -> None:
    second = torch.eye(4)
    first = torch.tensor([[0.5, 0.9, 0.1, 0.6], [0.0, 1.0, 0.0, 0.0], [0.5, 0.5, 0.5, 0.5]])
    ranks = rank_partners(first, second, torch.tensor([0, 1, 2]), torch.tensor([5, 6, 7, 5]))
    assert ranks.tolist() == [1, 0, 3]  # text 3 is as right as text 0; ties are no finds


def test_uniformity_by_hand() -> None:
    """Two opposite vectors have the squared distance 4, two right angles 2 each."""
    vectors = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    potentials = torch.tensor([-8.0, -4.0, -4.0]).exp()
    assert compute_uniformity(vectors) == pytest.approx(float(potentials.mean().log()))
    assert compute_uniformity(vectors[:1]) == 0


def test_embeddings_rate_pairs_by_their_cosine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As for STS-B: the kind of data is replaced on the command line."""
    rows = ["sentence1\tsentence2\tscore"]
    texts = [("bab", "babox", 5), ("bab", "baf", 1), ("kid", "kidox", 4.5), ("kid", "babox", 0)]
    rows += [f"what of {a} and {a} ?\tthe old {b} {b}\t{score}" for a, b, score in texts]
    text_files.write(tmp_path / "dev.tsv", rows)
    data = f'data={{kind="pairs", folder="{tmp_path}", labels="numbers", metric="spearman", test_file="dev"}}'
    assert main(["evaluate", str(run()), "--set", data, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    model = trained()
    first, second = (model.embed([row.split("\t")[side] for row in rows[1:]]).vectors for side in (0, 1))
    cosines = (first * second).sum(1)
    scores = torch.tensor([float(row[2]) for row in texts])
    expected = torch.corrcoef(torch.stack([cosines.argsort().argsort().double(), scores.argsort().argsort().double()]))
    assert report["figures"]["spearman"] == pytest.approx(100 * float(expected[0, 1]), abs=1e-3)


# Hard negatives --------------------------------------------------------------------------------


def test_mined_texts_are_the_nearest_wrong_ones() -> None:
    """Compare with a sort of all answers; those that hold the answer are dropped."""
    model = trained()
    rows = build(DATASETS, model.recipe["data"]).read_split("train")[:30]
    pairs = [AnsweredPair(*row, answers=(row.second.split()[0],)) for row in rows]
    mined = list(mine_hard_negatives(model.checkpoint, pairs, top_k=4))
    vectors, groups = model.embed([row.second for row in rows]).vectors, number_texts(rows)
    assert sum(map(len, mined)) > 60
    for row, texts in zip(rows, mined):
        scores = vectors @ model.embed([row.first]).vectors[0]
        ranked = [rows[index].second for index in scores.argsort(descending=True).tolist()]
        nearest = [text for text in dict.fromkeys(ranked) if groups[text] != groups[row.second]][:4]
        assert texts == [text for text in nearest if row.second.split()[0] not in text.split()]


def test_an_answer_is_found_as_whole_words() -> None:
    assert has_answer("In  ROME, long ago", ["rome"])
    assert has_answer("About 5% of it", ["5%"])
    assert not has_answer("In 1500", ["5", "15"])
    assert not has_answer("In Rome", [])


def test_negatives_are_mined_and_trained_with_by_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mined.jsonl"
    assert main(["data", "negatives", str(run()), "--out", str(file), "--top", "3", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert report["pairs"] == len(rows)
    assert report["negatives"] == sum(len(row["negatives"]) for row in rows) > 2 * len(rows)
    recipe = tiny("dpr", run().parent, f"data.negatives_file={file}", "data.hard_negatives=2", "train.steps=2")
    data: Any = load_data(recipe).train
    assert len(data.batch(torch.arange(8), torch.rand(8, data.num_uniforms)).inputs.tokens) == 8 + 8 + 16
    finish(recipe, tmp_path / "run", device="cpu")
    assert (
        main(["data", "negatives", str(run()), "--out", str(file), "--set", 'data={kind="classes", folder="a"}']) == 2
    )
    assert "data of kind 'classes' has no pairs of texts" in capsys.readouterr().err


def test_a_reader_has_mined_texts_in_its_batch(tmp_path: Path) -> None:
    """They are texts of the dataset that belong to none of the batch's questions but their own."""
    text_files.retrieval(tmp_path, 80)
    sets = [*TINY_READER, f"data.folder={tmp_path}", "train.steps=2"]
    plain = load_recipe("reader", sets)
    pairs = build(DATASETS, plain["data"]).list_answered_pairs()
    texts = list(dict.fromkeys(pair.second for pair in pairs))
    lines = [
        json.dumps({"first": pair.first, "second": pair.second, "negatives": [texts[texts.index(pair.second) - 1]]})
        for pair in pairs
    ]
    text_files.write(tmp_path / "mined", lines)
    recipe = load_recipe("reader", [*sets, f"data.negatives_file={tmp_path / 'mined'}"])
    train: Any = load_data(recipe).train
    batch = train.batch(torch.arange(8), torch.rand(8, train.num_uniforms, generator=torch.Generator().manual_seed(0)))
    assert len(batch.gold_texts) == 4
    gold = batch.text_ids[batch.gold_texts]
    numbers = {text: index for index, text in enumerate(texts)}
    assert batch.text_ids.tolist()[4:] == [(number - 1) % len(numbers) for number in gold.tolist()]
    assert len(batch.spans.spans_per_text) == 8
    finish(recipe, tmp_path / "run", device="cpu")
    text_files.write(tmp_path / "mined", [lines[0].replace(json.dumps(texts[-1]), '"a text of nowhere"')])
    with pytest.raises(ValueError, match=r"mined has the text 'a text of nowhere', not a training text"):
        load_data(recipe)
