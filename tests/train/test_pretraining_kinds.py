"""Pre-training beyond BERT's: objectives learn, resume to the bit, and are where others start."""

import json
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
import text_files
import torch
from app_runs import run as command
from learn_runs import finish as train_to_end
from pretraining_runs import make_texts
from shared_folders import make_temporary_folder
from torch import Tensor

import mnemic
from mnemic.checkpoint.folder import weights_of
from mnemic.data.corpora import CorpusFiles
from mnemic.data.corpora.batches import CorpusDataset
from mnemic.encode import transformer
from mnemic.evaluate.error_rate import evaluate_network
from mnemic.models import WindowBatch, build_model
from mnemic.objectives.pretraining.masked import PretrainingLoss
from mnemic.objectives.pretraining.replaced import ReplacedTokenLoss
from mnemic.objectives.unigram import count_targets, unigram_loss
from mnemic.predict.fill_masks import load_masked_model
from mnemic.predict.model import load
from mnemic.recipe import ConfigError, Recipe, load_recipe
from mnemic.train.initialize import start_recipe_from
from mnemic.train.run import fit

TINY = ["model.width=32", "model.encode.stack.depth=2", "model.encode.stack.attention.heads=4"]
TINY += ['data.tokenizer={kind="wordpiece", vocab=200}', "data.length=32", "data.validation=0.1"]
TINY += ["train.batch=16", "train.rate=0.004", "train.matmul=float32", "train.epochs=1000"]
NARROW = ["model.encode.embeddings.embedding_width=16"]
ELECTRA = [*NARROW, "model.encode.stack.inner=64", "model.generator.size=0.5"]
TWO_PHASES = [f"phases.{number}.train.{text}" for number in (0, 1) for text in ("epochs=1000", "steps=35")]
# By recipe: its settings, and the share of the unigram loss that it has to get below.
LEARNING = {
    "span-pretrain": ([], 0.75),
    "sop-pretrain": ([], 0.75),
    "albert-pretrain": ([*NARROW, "train.rate=0.006"], 0.95),
    "ernie-pretrain": (TWO_PHASES, 0.75),
    "electra-pretrain": (ELECTRA, 0.95),
    "gpt-pretrain": ([], 0.75),
}
ELECTRA_STAGES = [
    {"objective": {"replaced": 0.0}, "train": {"steps": 5}},
    {"objective": {"mlm": 0.0}, "model": {"generator": {"starts_detector": True}}, "train": {"frozen": ["generator"]}},
]
STAGES = ("dawn", "noon", "dusk", "night")


@cache
def ordered_texts() -> Path:
    """Write documents whose sentences have one order: dawn, noon, dusk, night."""
    rng, rows = Random(0), []
    for _ in range(300):
        name = rng.choice(text_files.NAMES)
        sentences = [f"{name} {rng.choice(['ran', 'sat', 'ate'])} at {stage}." for stage in STAGES]
        rows.append(json.dumps({"text": " ".join(sentences)}))
    folder = make_temporary_folder() / "ordered"
    text_files.write(folder / "corpus.jsonl", rows)
    return folder


def tiny(name: str, *sets: str, folder: Path | None = None) -> Recipe:
    return load_recipe(name, [*TINY, f"data.folder={folder or make_texts()}", *sets])


def finish(recipe: Recipe, folder: Path) -> list[dict[str, Any]]:
    """Train to the end; return the rows of the log."""
    return [report.row for report in fit(recipe, folder, device="cpu") if report.row is not None]


def load_data(recipe: Recipe) -> Any:
    return CorpusFiles(**{key: value for key, value in recipe["data"].items() if key != "kind"}).load()


def unigram(recipe: Recipe) -> float:
    """Compute the unigram loss on held-out documents."""
    data, counts = load_data(recipe), []
    for dataset in (data.train, data.validation):
        batch = dataset.batch(torch.arange(len(dataset)))
        counts.append(count_targets(batch.tokens[~batch.unmaskable], len(data.tokenizer)))
    return unigram_loss(*counts)


@cache
def electra() -> Path:
    """Train an ELECTRA, once for all tests."""
    folder = make_temporary_folder() / "run"
    finish(tiny("electra-pretrain", *ELECTRA, "train.steps=70", "train.log=70", "train.rate=0.006"), folder)
    return folder


@pytest.mark.parametrize("name", LEARNING)
def test_every_objective_learns_more_than_frequencies(name: str, tmp_path: Path) -> None:
    sets, share = LEARNING[name]
    recipe = tiny(name, "train.steps=70", "train.log=70", *sets)
    folder = tmp_path / "run"
    figures = (load(electra()).progress.history if "electra" in name else finish(recipe, folder))[-1]["figures"]
    assert figures["loss"] < share * unigram(recipe)
    if name == "electra-pretrain":
        assert figures["auc"] > 60
    if name == "gpt-pretrain":
        assert figures["perplexity"] == pytest.approx(torch.tensor(figures["loss"]).exp().item())


def test_order_is_learnt_from_swapped_segments_alone(tmp_path: Path) -> None:
    """A network that learned which documents belong together cannot tell their order."""
    accuracies = {}
    sets = ["train.log=110", "train.steps=110", "data.copies=0"]
    order = tiny("sop-pretrain", *sets, folder=ordered_texts())
    validation: CorpusDataset = load_data(order).validation
    for name in ("sop-pretrain", "bert-pretrain-pairs"):
        finish(tiny(name, *sets, folder=ordered_texts()), tmp_path / name)
        accuracies[name] = evaluate_network(load(tmp_path / name).network, validation)[1]["follows"]
    assert accuracies["sop-pretrain"] > 95
    assert accuracies["bert-pretrain-pairs"] < 70


@pytest.mark.parametrize(
    ("name", "sets"),
    [
        ("span-pretrain", ["model.encode.stack.dropout=0.1"]),
        ("albert-pretrain", NARROW),
        ("electra-pretrain", [*ELECTRA, "model.generator.baseline=true", "objective.adversarial=0.1"]),
        ("gpt-pretrain", []),
    ],
)
def test_a_stopped_run_ends_with_the_same_bits(name: str, sets: list[str], tmp_path: Path) -> None:
    recipe = tiny(name, *sets, "train.steps=8", "train.log=4", "train.save=3", "train.validate=0")
    assert_resumes(recipe, tmp_path, stop_after=5)


def assert_resumes(recipe: Recipe, folder: Path, *, stop_after: int) -> dict[str, Tensor]:
    """Stop a run and resume it; return the weights, which are those of a run without a stop."""
    finish(recipe, folder / "whole")
    steps = fit(recipe, folder / "stopped", device="cpu")
    for _ in range(stop_after):
        next(steps)
    steps.close()  # type: ignore[attr-defined]
    finish(recipe, folder / "stopped")
    expected, weights = (weights_of(load(folder / run).network) for run in ("whole", "stopped"))
    assert expected.keys() == weights.keys()
    assert all(torch.equal(expected[key], weights[key]) for key in expected)
    return weights


def test_two_stages_of_electra(tmp_path: Path) -> None:
    """The generator learns first, then it is frozen, and the discriminator begins with its weights.

    Stopped in the second stage, the run goes on with what the discriminator has learned.
    """
    sets = [*ELECTRA, "model.generator.size=1.0", "model.generator.share=none", "train.steps=4", "train.validate=0"]
    recipe = tiny("electra-pretrain", *sets) | {"phases": ELECTRA_STAGES}
    weights = assert_resumes(recipe, tmp_path, stop_after=7)
    first_stage = fit(recipe, tmp_path / "first", device="cpu")
    for _ in range(6):  # the first step of the second stage has been taken
        next(first_stage)
    first_stage.close()  # type: ignore[attr-defined]
    after_six = weights_of(load(tmp_path / "first").network)
    generator = {name: weight for name, weight in weights.items() if name.startswith("generator.")}
    assert all(torch.equal(weight, after_six[name]) for name, weight in generator.items())
    table = "encode.embeddings.narrow.tokens"
    start, later = generator[f"generator.{table}"], weights[table]
    assert 0 < (later - start).abs().max() < 0.1  # one begins where the other ended
    assert not torch.equal(after_six[table], later)


def tune(start: Path, folder: Path, recipe: str = "bert-classes") -> Any:
    """Take a step of fine-tuning that changes nothing; return the network."""
    files = text_files.classes(folder / "files", 60)
    short = ["train.steps=1", "train.batch=8", "train.rate=1e-9", "data.overlap=8"]
    options = [option for text in short for option in ("--set", text)]
    arguments = ("train", recipe, "--data", files, "--start", start, "--out", folder / "tuned", "--json")
    result = command(*arguments, "--device", "cpu", *options)
    assert result.code == 0, result.err
    return load(folder / "tuned")


def test_only_the_discriminator_is_where_fine_tuning_starts(tmp_path: Path) -> None:
    tuned, pretrained = tune(electra(), tmp_path), load(electra())
    assert tuned.tokenizer == pretrained.tokenizer
    assert not [name for name in weights_of(tuned.network) if "generator" in name]
    for name, weight in pretrained.network.encode.named_parameters():
        torch.testing.assert_close(tuned.network.encode.get_parameter(name), weight)


def test_an_electra_is_read_by_transformers(tmp_path: Path) -> None:
    """ElectraForPreTraining scores the tokens as our discriminator does."""
    from transformers import AutoModelForPreTraining, AutoTokenizer

    result = command("export", electra(), tmp_path / "electra", "--json")
    assert (result.code, result.err) == (0, "")
    assert (result.json["family"], len(result.json["heads"])) == ("electra", 4)
    encoding = AutoTokenizer.from_pretrained(tmp_path / "electra")("The ant in Rome eats honey.", return_tensors="pt")
    ids = encoding["input_ids"]
    mask = torch.ones_like(ids, dtype=torch.bool)
    theirs = AutoModelForPreTraining.from_pretrained(tmp_path / "electra").eval()
    assert type(theirs).__name__ == "ElectraForPreTraining"
    with torch.no_grad():
        logits = load(electra()).network(WindowBatch(ids, mask, torch.zeros_like(ids), mask)).logits
        torch.testing.assert_close(logits, theirs(input_ids=ids).logits, atol=1e-4, rtol=0)


def test_an_albert_is_read_by_transformers(tmp_path: Path) -> None:
    """AlbertForPreTraining gives the same logits of masked words and of order."""
    from transformers import AlbertForPreTraining

    finish(tiny("albert-pretrain", *NARROW, "train.steps=2", "train.validate=0"), tmp_path / "run")
    result = command("export", tmp_path / "run", tmp_path / "albert", "--json")
    assert (result.code, result.err) == (0, "")
    assert (result.json["family"], result.json["pooler"], len(result.json["heads"])) == ("albert", True, 7)
    network = load(tmp_path / "run").network
    ids = torch.randint(5, 60, (2, 11), generator=torch.Generator().manual_seed(0))
    mask, segments = torch.ones_like(ids, dtype=torch.bool), (torch.arange(11) > 5).long().expand(2, 11)
    with torch.no_grad():
        ours = network(WindowBatch(ids, mask, segments, mask)).logits
        theirs = AlbertForPreTraining.from_pretrained(tmp_path / "albert").eval()(ids, token_type_ids=segments)
    torch.testing.assert_close(ours.masked_logits, theirs.prediction_logits.flatten(0, 1), atol=1e-4, rtol=0)
    torch.testing.assert_close(ours.nsp_logits, theirs.sop_logits, atol=1e-4, rtol=0)
    with torch.no_grad():  # and it is read back, with its head of masked words
        again = load_masked_model(tmp_path / "albert")[0].eval()(WindowBatch(ids, mask, segments, mask)).logits
    torch.testing.assert_close(again.masked_logits, ours.masked_logits, atol=1e-5, rtol=0)


def test_a_spanbert_is_read_by_transformers_and_back(tmp_path: Path) -> None:
    """Its masked words are those of BertForMaskedLM; a folder of theirs is where spans go on."""
    from transformers import AutoModelForMaskedLM, BertForMaskedLM

    finish(tiny("span-pretrain", "train.steps=2", "train.validate=0"), tmp_path / "run")
    result = command("export", tmp_path / "run", tmp_path / "spanbert", "--json")
    assert (result.code, result.json["family"], len(result.json["heads"])) == (0, "bert", 5)
    assert "the head of span boundaries stays behind" in result.err
    network: Any = load(tmp_path / "run").network
    ids = torch.randint(5, 60, (2, 11), generator=torch.Generator().manual_seed(0))
    mask, segments = torch.ones_like(ids, dtype=torch.bool), torch.zeros_like(ids)
    with torch.no_grad():
        ours = network(WindowBatch(ids, mask, segments, mask)).logits.masked_logits
        theirs: Any = AutoModelForMaskedLM.from_pretrained(tmp_path / "spanbert").eval()
        assert isinstance(theirs, BertForMaskedLM)
        torch.testing.assert_close(ours, theirs(ids, token_type_ids=segments).logits.flatten(0, 1), atol=1e-4, rtol=0)
        for weight in theirs.parameters():
            weight.add_(0.05 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)))
        theirs.save_pretrained(tmp_path / "spanbert")
        expected = theirs(ids, token_type_ids=segments).logits.flatten(0, 1)
        read_back = load_masked_model(tmp_path / "spanbert")[0].eval()(WindowBatch(ids, mask, segments, mask)).logits
    torch.testing.assert_close(read_back.masked_logits, expected, atol=1e-4, rtol=0)
    sets = [*TINY, f"data.folder={make_texts()}", "train.steps=1", "train.validate=0", "train.rate=1e-12"]
    change = partial(start_recipe_from, folder=tmp_path / "spanbert")
    finish(load_recipe("span-pretrain", [text for text in sets if "tokenizer" not in text], change=change),
           tmp_path / "again")  # fmt: skip
    again: Any = load(tmp_path / "again").network
    assert again.respond.boundary is not None
    with torch.no_grad():
        states = again.encode(ids, mask, segments=segments)
        expected_states = theirs.bert(ids, token_type_ids=segments).last_hidden_state
    torch.testing.assert_close(states, expected_states, atol=1e-4, rtol=0)


def test_a_generator_and_its_objective_need_each_other(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="need each other, as in recipe electra-pretrain"):
        finish(tiny("electra-pretrain", *ELECTRA, 'objective={kind="masked"}'), tmp_path / "run")
    with pytest.raises(ConfigError, match="need each other"):
        finish(tiny("bert-pretrain", 'objective={kind="replaced"}'), tmp_path / "run")
    with pytest.raises(ConfigError, match=r"model\.encode\.kind='transformer', not 'recurrent'"):
        finish(tiny("electra-pretrain", 'model.encode={kind="recurrent"}'), tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "sets", "objective"),
    [
        ("electra-pretrain", ELECTRA, ReplacedTokenLoss()),
        ("span-pretrain", [], PretrainingLoss(sbo=1.0, masking={"kind": "spans"})),
    ],
)
def test_a_step_of_a_gpu_is_one_graph(
    name: str, sets: list[str], objective: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packed to a fixed size, the network compiles as one graph with the same loss."""
    recipe = tiny(name, *sets, "model.encode.stack.dropout=0.0", "model.encode.stack.attention.dropout=0.0")
    data = load_data(recipe)
    network = build_model(recipe["model"], data.sizes).eval()
    batch = data.train.batch(torch.arange(16), compact=False)
    batch = batch._replace(max_tokens=int(batch.mask.sum()) + 5)
    expected = objective(network, batch._replace(max_tokens=0))
    monkeypatch.setattr(transformer, "has_varlen_kernel", lambda device, dropout: True)
    loss = objective(torch.compile(network, backend="eager", fullgraph=True, dynamic=False), batch)
    torch.testing.assert_close(loss.total, expected.total)
    assert loss.num_targets == expected.num_targets


def test_names_are_masked_whole(tmp_path: Path) -> None:
    """Of a corpus with ``words = "entities"`` a run of capitalized words is one unit."""
    rows = [json.dumps({"text": f"She met Mary Ann Smith in New York {number} times."}) for number in range(60)]
    text_files.write(tmp_path / "corpus.jsonl", rows)
    data = load_data(tiny("ernie-pretrain", folder=tmp_path))
    batch = data.train.batch(torch.arange(1))
    units = "".join("|" * bool(start) + data.tokenizer.pieces[token].removeprefix("##")
                    for token, start in zip(batch.tokens[0].tolist(), batch.word_starts[0].tolist()))  # fmt: skip
    assert units.startswith("|[CLS]|she|met|maryannsmith|in|newyork|")


def test_a_pretrained_electra_embeds() -> None:
    model = mnemic.load(electra())
    assert model.methods == ("embed",)
    assert model.embed(["The ant eats leaves."]).vectors.shape == (1, 32)


def test_a_pretrained_gpt_completes_texts(tmp_path: Path) -> None:
    sets = ["train.steps=150", "model.encode.stack.dropout=0.0", "model.encode.embeddings.dropout=0.0"]
    train_to_end(tiny("gpt-pretrain", "train.validate=0", *sets), tmp_path / "run", device="cpu")
    model = mnemic.load(tmp_path / "run")
    assert model.methods == ("complete", "embed")
    prompts = [f"The {animal} in Rome eats" for animal in text_files.FOODS]
    completions = model.complete(prompts, max_words=2, top_k=1)
    assert [completion.text for completion in completions] == [f"{food}." for food in text_files.FOODS.values()]
    evaluation = command("evaluate", tmp_path / "run", "--split", "validation", "--json").json
    assert set(evaluation["figures"]) == {"perplexity", "accuracy", "loss"}
    tuned = tune(tmp_path / "run", tmp_path, "gpt-classes")
    for name, weight in model.network.encode.named_parameters():
        torch.testing.assert_close(tuned.network.encode.get_parameter(name), weight)
