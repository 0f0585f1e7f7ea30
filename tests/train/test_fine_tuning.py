"""Fine-tuning compared with ``transformers``, batches of one shape, a smaller rate."""

from pathlib import Path
from typing import Any

import pytest
import torch
from text_runs import files, run_of, tiny, trained
from torch import nn

from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.checkpoint.folder import load_checkpoint
from mnemic.data import DATASETS
from mnemic.encode import Pretrained, save_encoder
from mnemic.encode.huggingface.read import load_encoder
from mnemic.models import build_model
from mnemic.objectives import OBJECTIVES
from mnemic.recipe import ConfigError, build, load_recipe
from mnemic.train.initialize import initialize_network, start_recipe_from
from mnemic.train.loop import build_optimizer
from mnemic.train.phases import read_phases, train_phase
from mnemic.train.run import fit, load_data
from mnemic.train.sampler import BatchSampler
from mnemic.train.sklearn import TextClassifier

KINDS = ("classes", "pairs", "numbers", "spans", "tags")


# The same steps as transformers ----------------------------------------------------------------


def save_random_bert(folder: Path) -> Path:
    """Save a small random BERT with the pairs' vocabulary as a Hugging Face folder."""
    recipe = tiny("pairs", folder, "model.encode.stack.norm=post", "train.epochs=0")
    list(fit(recipe, folder / "first", device="cpu"))
    first = load_checkpoint(folder / "first")
    save_encoder(folder / "theirs", Pretrained(first.network.encode, first.tokenizer))
    return folder / "theirs"


def test_fine_tuning_takes_the_steps_that_transformers_takes(tmp_path: Path) -> None:
    """Segments, pooling, loss, clipping, warm-up and decay give the same losses."""
    transformers = pytest.importorskip("transformers")
    start = save_random_bert(files("pairs", tmp_path))
    sets = ("train.batch=8", "train.buckets=1", "train.steps=12", "model.respond.dropout=0.0")
    plain = ("model.encode.embeddings.dropout=0.0", "model.encode.stack.dropout=0.0")
    recipe = start_recipe_from(tiny("pairs", tmp_path, *sets), start)
    recipe = load_recipe_with(recipe, *plain, "model.encode.stack.attention.dropout=0.0")
    data, (phase,) = load_data(recipe), read_phases(recipe)
    network = initialize_network(recipe["model"], data.sizes, 0)
    model = transformers.AutoModel.from_pretrained(start)
    tokenizer = transformers.AutoTokenizer.from_pretrained(start)
    head = nn.ModuleList([nn.Linear(32, 32), nn.Linear(32, 2)])
    with torch.no_grad():
        for layer, mnemic_layer in zip(head, (network.respond.inner, network.respond.out)):
            layer.load_state_dict(mnemic_layer.state_dict())
    sampler = BatchSampler(pools=[torch.arange(len(data.train))], seeds=[0], batch_size=8)
    expected = train_with_transformers(model, tokenizer, head, data, sampler, phase.settings)
    steps = train_phase(phase, network, data.train, sampler, optimizer=build_optimizer(network, phase.settings))
    losses = [float(step.loss) for step in steps]
    assert len(losses) == 12
    assert losses == pytest.approx(expected, abs=2e-4)
    assert losses[-1] != pytest.approx(losses[0], abs=1e-3)


def load_recipe_with(recipe: dict[str, Any], *sets: str) -> dict[str, Any]:
    from mnemic.recipe import override, parse_assignment

    for text in sets:
        recipe = override(recipe, *parse_assignment(text))
    return recipe


def train_with_transformers(
    model: Any, tokenizer: Any, head: Any, data: Any, sampler: BatchSampler, settings: Any
) -> list[float]:
    """Train with a plain loop: AdamW without decay of biases, and a linear schedule."""
    parameters = [*model.parameters(), *head.parameters()]
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.01},
        {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=settings.rate)
    losses, total = [], settings.steps
    for number, indices in zip(range(total), sampler.iterate_from(0)):
        rate_factor = 1 / 2 if number == 0 else (total - number) / (total - 1)  # one step of warm-up
        for group in optimizer.param_groups:
            group["lr"] = settings.rate * rate_factor
        examples = [data.train.examples[row] for row in indices.rows.tolist()]
        encoding = tokenizer(
            [example.text for example in examples],
            [example.pair for example in examples],
            padding=True,
            return_tensors="pt",
        )
        states = model(**encoding).last_hidden_state
        assert encoding["token_type_ids"].any()
        frame = [tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id]
        special = torch.isin(encoding["input_ids"], torch.tensor(frame))
        token_mask = (~special).unsqueeze(-1)
        pooled = (states * token_mask).sum(1) / token_mask.sum(1)
        logits = head[1](head[0](pooled).tanh())
        targets = torch.tensor([data.labels.index(example.label) for example in examples])
        loss = nn.functional.cross_entropy(logits, targets)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([p for p in parameters if p.grad is not None], 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


# Batches of one shape --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_with_room_for_its_bucket_has_the_same_loss(kind: str) -> None:
    """Padding does not change the loss, and all batches of a bucket have one shape."""
    model = trained(kind)
    texts = build(DATASETS, model.recipe["data"]).dataset("train", model.tokenizer, model.labels)
    objective = build(OBJECTIVES, model.recipe["objective"])
    max_length = int(texts.lengths.median())
    short = (texts.lengths <= max_length).nonzero().flatten()
    shapes = set()
    for rows in (short[:7], short[-7:], torch.arange(7)):
        bound = max_length if int(texts.lengths[rows].max()) <= max_length else None
        batches = [texts.batch(rows), texts.batch(rows, compact=False, max_length=bound)]
        with torch.no_grad():
            small, large = (objective(model.network, batch, None) for batch in batches)
        torch.testing.assert_close(large.total, small.total, rtol=1e-4, atol=1e-4)
        assert large.num_targets == small.num_targets
        if bound:
            shapes.add(batches[1].inputs.tokens.shape)
    assert len(shapes) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_on_a_gpu_waits_for_no_number(kind: str) -> None:
    """The meta device has no values: reading one would raise an error."""
    model = trained(kind)
    texts = build(DATASETS, model.recipe["data"]).dataset("train", model.tokenizer, model.labels)
    meta_texts = texts.to("meta")
    vars(meta_texts)["max_shape"] = texts.max_shape  # computed once, on the host
    objective = build(OBJECTIVES, model.recipe["objective"])
    network = build_model(model.recipe["model"], model.sizes).to("meta")
    loss = objective(network, meta_texts.batch(torch.arange(5, device="meta"), compact=False), None)
    loss.total.backward()
    assert loss.total.device.type == "meta"
    with pytest.raises((RuntimeError, NotImplementedError)):
        meta_texts.batch(torch.arange(5, device="meta"))


# Starting from trained weights -----------------------------------------------------------------


def test_weights_that_are_there_are_trained_with_a_smaller_rate(tmp_path: Path) -> None:
    """``[started]`` applies only to a run with a start; --set overrides it."""
    start = run_of("classes")
    plain = load_recipe("bert-pairs")
    assert plain["train"]["rate"] == 0.0005
    started = load_recipe("bert-pairs", change=lambda recipe: start_recipe_from(recipe, start))
    assert (started["train"]["rate"], started["train"]["epochs"]) == (0.00005, 4)
    assert started["train"]["batch"] == plain["train"]["batch"]
    assert "started" not in started
    overridden = load_recipe("bert-pairs", ["train.rate=0.2"], change=lambda recipe: start_recipe_from(recipe, start))
    assert overridden["train"]["rate"] == 0.2
    (tmp_path / "a.toml").write_text("[started]\ndata = { folder = 'x' }\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="pretrained has no section 'data'"):
        load_recipe(tmp_path / "a.toml")


def test_a_classifier_can_begin_with_a_folder() -> None:
    texts, labels = ["a lovely house", "an awful house"] * 20, ["yes", "no"] * 20
    sets = ["train.epochs=6", "train.batch=8", "data.length=24", "data.overlap=4", "train.rate=0.003"]
    classifier = TextClassifier(sets=sets, start=run_of("classes"), device="cpu").fit(texts, labels)
    assert classifier.predict(["the lovely old train"]).tolist() == ["yes"]
    assert classifier.trained_checkpoint.sizes["vocab"] == trained("classes").sizes["vocab"]


def test_a_start_that_is_none(tmp_path: Path) -> None:
    recipe = load_recipe("bert-classes")
    with pytest.raises(CheckpointError, match=r"which is no folder.* nor the config\.json of"):
        start_recipe_from(recipe, tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="which has neither the checkpoint of a run nor"):
        start_recipe_from(recipe, tmp_path)
    with pytest.raises(ConfigError, match=r"encoder is of kind '.*', which reads the sentences"):
        start_recipe_from(recipe, Path("entnet-babi"))


def test_segments_reach_factorised_embeddings_too(tmp_path: Path) -> None:
    """As in ALBERT, where they belong to the narrow embeddings."""
    narrow = {"kind": "sum", "segments": 2}
    encode = {"kind": "transformer", "stack": {"kind": "encoder", "depth": 1},
              "embeddings": {"kind": "factorised", "embedding_width": 8, "embeddings": narrow}}  # fmt: skip
    model = {"width": 16, "encode": encode, "respond": {"kind": "classes"}}
    network = build_model(model, {"vocab": 30, "classes": 2, "max_length": 12}).eval()
    source = build(DATASETS, trained("pairs").recipe["data"])
    texts = source.dataset("test", trained("pairs").tokenizer, trained("pairs").labels)
    inputs = texts.batch(torch.arange(3)).inputs
    inputs = inputs._replace(tokens=inputs.tokens % 30)
    swapped = inputs._replace(segment_ids=1 - inputs.segment_ids)
    assert not torch.allclose(network(inputs).logits, network(swapped).logits)
    save_encoder(tmp_path / "albert", Pretrained(network.encode, None, "electra"))
    assert load_encoder(tmp_path / "albert").encoder.segments == 2
    recipe = start_recipe_from(recipe_with_folder(tmp_path), tmp_path / "albert")
    started_network = build_model(recipe["model"], {"vocab": 30, "classes": 2, "max_length": 12})
    assert started_network.encode.segments == 2


def recipe_with_folder(folder: Path) -> dict[str, Any]:
    model = trained("pairs")
    return model.recipe | {"data": model.recipe["data"] | {"folder": str(folder)}}
