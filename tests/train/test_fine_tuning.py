"""Fine-tuning: the same steps as ``transformers`` takes, batches of one shape, a smaller rate."""

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


# The same steps as others take -----------------------------------------------------------------


def theirs(folder: Path) -> Path:
    """A small BERT with dice for weights and the words of the pairs, as a Hugging Face folder."""
    recipe = tiny("pairs", folder, "model.encode.stack.norm=post", "train.epochs=0")
    list(fit(recipe, folder / "first", device="cpu"))
    first = load_checkpoint(folder / "first")
    save_encoder(folder / "theirs", Pretrained(first.network.encode, first.tokenizer))
    return folder / "theirs"


def test_fine_tuning_takes_the_steps_that_transformers_takes(tmp_path: Path) -> None:
    """Pairs, their segments, pooling, loss, clipping, warm-up and decay: loss by loss the same."""
    transformers = pytest.importorskip("transformers")
    start = theirs(files("pairs", tmp_path))
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
        for own, our in zip(head, (network.respond.inner, network.respond.out)):
            own.load_state_dict(our.state_dict())
    draws = BatchSampler(pools=[torch.arange(len(data.train))], seeds=[0], batch_size=8)
    expected = their_losses(model, tokenizer, head, data, draws, phase.settings)
    steps = train_phase(phase, network, data.train, draws, optimizer=build_optimizer(network, phase.settings))
    found = [float(step.loss) for step in steps]
    assert len(found) == 12
    assert found == pytest.approx(expected, abs=2e-4)
    assert found[-1] != pytest.approx(found[0], abs=1e-3)


def load_recipe_with(recipe: dict[str, Any], *sets: str) -> dict[str, Any]:
    from mnemic.recipe import override, parse_assignment

    for text in sets:
        recipe = override(recipe, *parse_assignment(text))
    return recipe


def their_losses(model: Any, tokenizer: Any, head: Any, data: Any, draws: BatchSampler, settings: Any) -> list[float]:
    """The obvious loop: AdamW without decay of biases and gains, a straight line up and down."""
    parameters = [*model.parameters(), *head.parameters()]
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.01},
        {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=settings.rate)
    losses, total = [], settings.steps
    for number, draw in zip(range(total), draws.iterate_from(0)):
        share = 1 / 2 if number == 0 else (total - number) / (total - 1)  # one step of warm-up
        for group in optimiser.param_groups:
            group["lr"] = settings.rate * share
        examples = [data.train.examples[row] for row in draw.rows.tolist()]
        words = tokenizer(
            [own.text for own in examples], [own.pair for own in examples], padding=True, return_tensors="pt"
        )
        states = model(**words).last_hidden_state
        assert words["token_type_ids"].any()
        frame = [tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id]
        special = torch.isin(words["input_ids"], torch.tensor(frame))
        told = (~special).unsqueeze(-1)
        pooled = (states * told).sum(1) / told.sum(1)
        scores = head[1](head[0](pooled).tanh())
        targets = torch.tensor([data.labels.index(own.label) for own in examples])
        loss = nn.functional.cross_entropy(scores, targets)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([p for p in parameters if p.grad is not None], 1.0)
        optimiser.step()
        losses.append(loss.item())
    return losses


# Batches of one shape --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_with_room_for_its_bucket_has_the_same_loss(kind: str) -> None:
    """Padding, of whole windows too, changes nothing; and every batch of a bucket has one shape."""
    own = trained(kind)
    texts = build(DATASETS, own.recipe["data"]).dataset("train", own.tokenizer, own.labels)
    objective = build(OBJECTIVES, own.recipe["objective"])
    most = int(texts.lengths.median())
    short = (texts.lengths <= most).nonzero().flatten()
    shapes = set()
    for rows in (short[:7], short[-7:], torch.arange(7)):
        bound = most if int(texts.lengths[rows].max()) <= most else None
        batches = [texts.batch(rows), texts.batch(rows, compact=False, max_length=bound)]
        with torch.no_grad():
            small, large = (objective(own.network, batch, None) for batch in batches)
        torch.testing.assert_close(large.total, small.total, rtol=1e-4, atol=1e-4)
        assert large.num_targets == small.num_targets
        if bound:
            shapes.add(batches[1].inputs.tokens.shape)
    assert len(shapes) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_on_a_gpu_waits_for_no_number(kind: str) -> None:
    """On the meta device there are no numbers: whatever asked for one would stop."""
    own = trained(kind)
    texts = build(DATASETS, own.recipe["data"]).dataset("train", own.tokenizer, own.labels)
    far = texts.to("meta")
    vars(far)["max_shape"] = texts.max_shape  # told by the host, once
    objective = build(OBJECTIVES, own.recipe["objective"])
    network = build_model(own.recipe["model"], own.sizes).to("meta")
    loss = objective(network, far.batch(torch.arange(5, device="meta"), compact=False), None)
    loss.total.backward()
    assert loss.total.device.type == "meta"
    with pytest.raises((RuntimeError, NotImplementedError)):
        far.batch(torch.arange(5, device="meta"))


# Where weights are already there ---------------------------------------------------------------


def test_weights_that_are_there_are_trained_with_a_smaller_rate(tmp_path: Path) -> None:
    """What ``[started]`` says holds with a start alone, and --set has the last word."""
    start = run_of("classes")
    plain = load_recipe("bert-pairs")
    assert plain["train"]["rate"] == 0.0005
    given = load_recipe("bert-pairs", change=lambda own: start_recipe_from(own, start))
    assert (given["train"]["rate"], given["train"]["epochs"]) == (0.00005, 4)
    assert given["train"]["batch"] == plain["train"]["batch"]
    assert "started" not in given
    told = load_recipe("bert-pairs", ["train.rate=0.2"], change=lambda o: start_recipe_from(o, start))
    assert told["train"]["rate"] == 0.2
    (tmp_path / "a.toml").write_text("[started]\ndata = { folder = 'x' }\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="pretrained has no section 'data'"):
        load_recipe(tmp_path / "a.toml")


def test_a_classifier_can_begin_with_a_folder() -> None:
    texts, labels = ["a lovely house", "an awful house"] * 20, ["yes", "no"] * 20
    sets = ["train.epochs=6", "train.batch=8", "data.length=24", "data.overlap=4", "train.rate=0.003"]
    own = TextClassifier(sets=sets, start=run_of("classes"), device="cpu").fit(texts, labels)
    assert own.predict(["the lovely old train"]).tolist() == ["yes"]
    assert own.trained_checkpoint.sizes["vocab"] == trained("classes").sizes["vocab"]


def test_a_start_that_is_none(tmp_path: Path) -> None:
    recipe = load_recipe("bert-classes")
    with pytest.raises(CheckpointError, match=r"which is no folder.* nor the config\.json of"):
        start_recipe_from(recipe, tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="which has neither the checkpoint of a run nor"):
        start_recipe_from(recipe, tmp_path)
    with pytest.raises(ConfigError, match=r"encoder is of kind '.*', which reads the sentences"):
        start_recipe_from(recipe, Path("entnet-babi"))


def test_segments_reach_factorised_embeddings_too(tmp_path: Path) -> None:
    """As in ALBERT, which has them one table further in."""
    narrow = {"kind": "sum", "segments": 2}
    encode = {"kind": "transformer", "stack": {"kind": "encoder", "depth": 1},
              "embeddings": {"kind": "factorised", "embedding_width": 8, "embeddings": narrow}}  # fmt: skip
    model = {"width": 16, "encode": encode, "respond": {"kind": "classes"}}
    network = build_model(model, {"vocab": 30, "classes": 2, "max_length": 12}).eval()
    batch = build(DATASETS, trained("pairs").recipe["data"])
    texts = batch.dataset("test", trained("pairs").tokenizer, trained("pairs").labels)
    inputs = texts.batch(torch.arange(3)).inputs
    inputs = inputs._replace(tokens=inputs.tokens % 30)
    other = inputs._replace(segment_ids=1 - inputs.segment_ids)
    assert not torch.allclose(network(inputs).logits, network(other).logits)
    save_encoder(tmp_path / "albert", Pretrained(network.encode, None, "electra"))
    assert load_encoder(tmp_path / "albert").encoder.segments == 2
    whole = start_recipe_from(replaced(tmp_path), tmp_path / "albert")
    begun_with = build_model(whole["model"], {"vocab": 30, "classes": 2, "max_length": 12})
    assert begun_with.encode.segments == 2


def replaced(folder: Path) -> dict[str, Any]:
    own = trained("pairs")
    return own.recipe | {"data": own.recipe["data"] | {"folder": str(folder)}}
