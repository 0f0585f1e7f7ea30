"""``mnemic export`` writes a folder for Hugging Face, or a one-line error."""

import json
import re
from pathlib import Path
from typing import Any

import torch
from app_runs import model, run
from huggingface_models import quiet
from learn_runs import finish
from text_runs import run_of, tiny

from mnemic.checkpoint.folder import Checkpoint, TrainingProgress, load_checkpoint, save_checkpoint
from mnemic.checkpoint.huggingface import load_classifier
from mnemic.encode import Pretrained, TransformerEncoder, load_encoder, save_encoder
from mnemic.encode.huggingface.shape import EncoderShape, build_encoder
from mnemic.models import WindowBatch, build_model
from mnemic.predict.model import load
from mnemic.recipe import load_recipe
from mnemic.text import TRAINERS, WordTokenizer

__all__ = ["quiet"]  # a fixture

PASSAGES = (
    "The lighthouse on Skarn Island was finished in 1874 by the engineer Ada Lindqvist. It stands "
    "forty metres tall and was lit by whale oil until 1902, when an electric lamp took over.",
    "Otters of the Veldra river feed on crayfish in summer and on trout in winter. A grown otter "
    "eats about one and a half kilograms a day 🦦, and sleeps in dens called holts.",
)
QUESTIONS = ("Who built the lighthouse on Skarn Island?", "What do Veldra otters eat in winter?", "Who is it?")
SHAPE = EncoderShape(
    vocab=60, width=16, depth=2, heads=2, inner=24, length=12, segments=2, activation="gelu",
    epsilon=1e-12, dropout=0.0, attention_dropout=0.0,
)  # fmt: skip
TEXT = "a small text to learn a few pieces from"


def have_equal_outputs(first: TransformerEncoder, second: TransformerEncoder) -> bool:
    ids = torch.tensor([[1, 2, 3, 4]])
    return torch.equal(first.eval()(ids, ids > 0), second.eval()(ids, ids > 0))


def test_a_hugging_face_folder_is_written_anew(tmp_path: Path) -> None:
    encoder, tokenizer = build_encoder(SHAPE), TRAINERS["wordpiece"]([TEXT], vocab=60)
    heads = {"cls.predictions.bias": torch.ones(60)}
    save_encoder(tmp_path / "old", Pretrained(encoder, tokenizer, unused=heads))  # type: ignore[arg-type]
    done = run("export", tmp_path / "old", tmp_path / "new", "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json["family"] == "bert"
    assert done.json["heads"] == ["cls.predictions.bias"]
    assert set(done.json["files"]) == {
        "README.md", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
    }  # fmt: skip
    loaded = load_encoder(tmp_path / "new")
    assert have_equal_outputs(loaded.encoder, encoder)
    assert loaded.tokenizer == tokenizer
    output = run("export", tmp_path / "old", tmp_path / "shown").out
    assert f'AutoModel.from_pretrained("{tmp_path / "shown"}") loads it' in output.replace("\n", "")


def test_another_family(tmp_path: Path) -> None:
    encoder = build_encoder(SHAPE)
    save_encoder(tmp_path / "old", Pretrained(encoder))
    done = run("export", tmp_path / "old", tmp_path / "new", "--family", "roberta", "--json")
    assert done.code == 0
    assert "no subword tokenizer to write" in done.err
    config = json.loads((tmp_path / "new" / "config.json").read_text(encoding="utf-8"))
    assert (config["model_type"], config["max_position_embeddings"]) == ("roberta", 14)
    assert have_equal_outputs(load_encoder(tmp_path / "new").encoder, encoder)
    wrong = run("export", tmp_path / "old", tmp_path / "other", "--family", "albert")
    assert wrong.code == 2
    assert wrong.err.startswith("error: albert has no embeddings of the full width")


def test_the_encoder_of_a_checkpoint(tmp_path: Path) -> None:
    """Export only the Transformer that encodes a network's questions."""
    recipe = load_recipe("memn2n")
    recipe["model"]["ask"] = {"kind": "transformer"}
    tokenizer = WordTokenizer.from_texts([TEXT])
    sizes = {"vocab": len(tokenizer)}
    network = build_model(recipe["model"], sizes)
    save_checkpoint(
        tmp_path / "run",
        Checkpoint(
            recipe=recipe, seed=0, sizes=sizes, tokenizer=tokenizer, network=network,
            progress=TrainingProgress(), state={},
        ),
    )  # fmt: skip
    done = run("export", tmp_path / "run", tmp_path / "new", "--json")
    assert done.code == 0, done.err
    loaded = load_encoder(tmp_path / "new")
    assert isinstance(network.ask, TransformerEncoder)
    num_dropped = sum(weight.numel() for weight in network.parameters())
    num_dropped -= sum(weight.numel() for weight in network.ask.parameters())
    assert f"{num_dropped:,} weights of memory and response stay behind" in done.err
    assert have_equal_outputs(loaded.encoder, network.ask)
    assert loaded.tokenizer is None


def test_a_network_without_a_transformer(tmp_path: Path) -> None:
    done = run("export", model(), tmp_path / "new", "--json")
    assert done.code == 2
    assert "has 0 Transformer encoders; expected one" in done.json["error"]
    missing = run("export", tmp_path / "nothing", tmp_path / "new")
    assert missing.code == 2
    assert "no checkpoint in" in missing.err
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    huggingface = run("evaluate", tmp_path)
    assert "(a Hugging Face folder); `mnemic train RECIPE --start" in huggingface.err


def test_norms_before_the_layers_have_no_place_there(tmp_path: Path) -> None:
    done = run("export", run_of("classes"), tmp_path / "new")
    assert done.code == 2
    assert "one to export is trained with model.encode.stack.norm=post" in done.err


def test_the_reader_answers_there_as_it_does_here(tmp_path: Path) -> None:
    """Run the code of the exported README, on passages with and without the answer."""
    done = run("export", "reader", tmp_path / "reader", "--json")
    assert (done.code, done.err) == (0, "")
    readme = (tmp_path / "reader" / "README.md").read_text(encoding="utf-8")
    assert "license: apache-2.0" in readme
    assert "SQuAD 1.1 (Rajpurkar et al. 2016), CC-BY-SA-4.0" in readme
    there: dict[str, Any] = {"folder": str(tmp_path / "reader")}
    for block in re.findall(r"```python\n(.*?)```", readme, re.DOTALL):
        exec(block, there)
    here, declined = load("reader"), set()
    for question in QUESTIONS:
        for passage in PASSAGES:
            expected, (text, no_answer) = here.answer(question, passage), there["answer"](question, passage)
            assert text == (expected.quote(passage) if expected.has_answer else "")
            assert abs(no_answer - expected.no_answer) < 1e-4
            declined.add(not text)
    assert declined == {True, False}
    assert (there["embed"](PASSAGES[0]) - here.embed([PASSAGES[0]]).vectors[0]).abs().max() < 1e-5
    again = run("export", tmp_path / "reader", tmp_path / "again", "--json")
    assert again.json["heads"] == ["classifier.bias", "classifier.weight", "qa_outputs.bias", "qa_outputs.weight"]
    assert "AutoModelForSequenceClassification" in (tmp_path / "again" / "README.md").read_text(encoding="utf-8")


def test_a_classifier_has_its_head_and_labels_there(tmp_path: Path) -> None:
    sets = ["model.encode.stack.norm=post", "model.respond.pool=first", "train.epochs=0", "train.keep=last"]
    positions = 'model.encode.embeddings.positions={kind="learned", length=24}'
    folder = run_of("classes").parent
    trained = finish(tiny("classes", folder, positions, *sets), tmp_path / "run", device="cpu")
    done = run("export", trained, tmp_path / "new", "--json")
    assert (done.code, done.err) == (0, "")
    assert "classifier.weight" in done.json["heads"]
    here, there = load_checkpoint(trained), load_classifier(tmp_path / "new")
    assert there.labels == here.labels == ("bad", "good")
    tokens = torch.tensor([[2, 11, 12, 13, 3]])
    inputs = WindowBatch(tokens, tokens > 0, torch.zeros_like(tokens), tokens > 0)
    with torch.no_grad():
        assert torch.equal(there.network(inputs).logits, here.network.eval()(inputs).logits)
    output = run("export", trained, tmp_path / "shown").out
    assert f'AutoModelForSequenceClassification.from_pretrained("{tmp_path / "shown"}")' in output.replace("\n", "")
