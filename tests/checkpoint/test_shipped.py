"""The networks in the package are complete, small, described, and give answers."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from app_runs import model, run
from safetensors.torch import load_file

from mnemic.checkpoint import shared_weights, shipped
from mnemic.checkpoint.atomic_files import CheckpointError, write_json
from mnemic.checkpoint.folder import weights_of
from mnemic.cli.main import main
from mnemic.data import DATASETS
from mnemic.evaluate.error_rate import compute_task_errors
from mnemic.files import read_json
from mnemic.predict import ask_story
from mnemic.predict.model import load
from mnemic.recipe import ConfigError, build, load_recipe
from mnemic.recipe.migrate import migrate_recipe
from mnemic.reproduce import publish as ship_module
from mnemic.reproduce.publish import publish_checkpoint
from mnemic.train.initialize import initialize_network, start_recipe_from
from mnemic.train.run import fit, load_data

STORY = (
    "Mary moved to the bathroom.",
    "John went to the hallway.",
    "Mary travelled to the office.",
    "Daniel journeyed to the garden.",
)
NAMES = shipped.list_networks()
SOURCES = ["training data: generated stories (tasks 1 to 3) (Apache-2.0)"]
STORIES = [name for name in NAMES if "tasks" in shipped.read_card(name)["data"]]
MUSEUM = (
    "The museum of Harlow was founded in 1897 by Edith Marlowe, a chemist.",
    "It stands on the north bank of the river.",
    "Its first building burned down in 1931.",
    "The director at that time, Samuel Pike, saved most of the paintings.",
    "Today the museum holds 4,200 paintings.",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_card_names_license_and_sources_in_todays_words(name: str) -> None:
    card = json.loads((shipped.WEIGHTS / name / "card.json").read_text("utf-8"))
    assert card["license"] == "Apache-2.0"
    assert card["sources"]
    assert all(source["name"] and source["role"] and source["license"] for source in card["sources"])
    recipe = json.loads((shipped.WEIGHTS / name / "recipe.json").read_text("utf-8"))["recipe"]
    assert migrate_recipe(recipe) == recipe
    assert migrate_recipe({"data": card["data"]})["data"] == card["data"]
    assert card.get("memory") == recipe["model"].get("memory", {}).get("kind")


def test_something_is_shipped_and_all_of_it_is_small() -> None:
    assert "entnet-babi" in NAMES
    assert {path.name for path in shipped.WEIGHTS.iterdir()} == set(NAMES)
    assert shipped.size_in_bytes(shipped.WEIGHTS) < shipped.MAX_TOTAL_BYTES == 52_000_000
    sizes = [shipped.size_in_bytes(shipped.WEIGHTS / name) for name in NAMES]
    assert max(sizes) < shipped.MAX_NETWORK_BYTES == 34_500_000


@pytest.mark.parametrize("name", STORIES)
def test_a_shipped_network_loads_says_what_it_is_and_answers(name: str) -> None:
    card, checkpoint = shipped.read_card(name), load(name)
    assert card["name"] == name
    assert card["seed"] == checkpoint.seed
    assert card["data"] == checkpoint.recipe["data"]
    assert card["command"].startswith(("mnemic train ", "mnemic table "))
    assert {int(task) for task in card["per_task"]} == set(card["data"]["tasks"])
    assert checkpoint.progress.done
    assert checkpoint.checkpoint.state == {}  # nothing that only training needs
    assert "card.json" in read_json(shipped.WEIGHTS / name / "manifest.json")["files"]
    if 1 in card["data"]["tasks"]:
        answer = ask_story(checkpoint, STORY, "Where is Mary?")
        assert answer.text == "office"
        assert STORY[2] in [evidence.text for evidence in answer.best_evidence(2)]
        assert card["evidence"]["1"]["supporting"] > 90


@pytest.mark.parametrize("name", STORIES)
def test_the_errors_on_a_card_are_those_on_new_stories(name: str) -> None:
    """On generated stories, since the files of the card are not available."""
    card, checkpoint = shipped.read_card(name), load(name)
    count = 150
    spec = {"kind": "generated-babi", "tasks": card["data"]["tasks"], "count": count}
    dataset = build(DATASETS, spec).dataset("test", checkpoint.tokenizer)
    assert not dataset.num_unknown
    for task, error in compute_task_errors(checkpoint.network, dataset).items():
        card_error = card["per_task"][str(task)]
        tolerance = 3 * (card_error * (100 - card_error) / count) ** 0.5  # three deviations
        assert error == pytest.approx(card_error, abs=2 + tolerance), task


def test_the_shipped_memory_reads_a_text_of_any_length_and_finds_what_is_asked() -> None:
    card, checkpoint = shipped.read_card("bert-mass"), load("bert-mass")
    assert shipped.size_in_bytes(shipped.WEIGHTS / "bert-mass") < 2_000_000  # the encoder is the reader's
    assert shipped.summarize_card(card) == f"selective, long-articles: {card['mean_error']:.1f} % error"
    filler = "On a day like any other the clock of the town hall struck twelve. "
    text = " ".join(MUSEUM) + " " + filler * 60
    state = checkpoint.remember(text)
    assert state.seen == state.total > 512
    exact, rounded = (checkpoint.remember(text, precision=precision_name) for precision_name in ("float32", "bfloat16"))
    assert exact == checkpoint.remember(text, precision="float32") != rounded
    torch.testing.assert_close(exact.worth, rounded.worth, atol=0.02, rtol=0)
    with pytest.raises(ValueError, match="precision is auto, float32 or bfloat16, not 'half'"):
        checkpoint.remember(text, precision="half")
    with pytest.raises(ValueError, match=r"has 1000 tokens, .* at most 510; ask a shorter one"):
        checkpoint.ask(state, "who " * 1000)
    for question, sentence_index in [("Who founded the museum?", 0), ("When was the fire?", 2)]:
        best = checkpoint.ask(state, question).evidence[0]
        assert text[best.start : best.end].strip() == MUSEUM[sentence_index]


def test_a_name_is_enough_to_ask(tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text("\n".join(STORY), encoding="utf-8")
    question_command = ("story", "ask", "--model", "entnet-babi", "--story", tmp_path / "story.txt", "Where is Mary?")
    assert run(*question_command, "--json").json["answer"] == "office"
    assert "entnet-babi" in " ".join(run("story", "ask", "--help").out.split())
    wrong = run("story", "ask", "--model", "entnet-bab", "--sentence", STORY[0], "Where is Mary?")
    assert wrong.code == 2
    assert f"came with mnemic: {', '.join(NAMES)}" in wrong.err


def test_a_folder_of_the_same_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "entnet-babi").symlink_to(model())
    assert load("entnet-babi").recipe["model"]["memory"]["kind"] == "memn2n"


def test_what_is_shipped_is_listed() -> None:
    cards = run("inspect", "--json").json["shipped"]
    assert [card["name"] for card in cards] == NAMES
    list_output = run("inspect").out
    assert "entnet-babi" in list_output
    assert shipped.summarize_card(cards[NAMES.index("entnet-babi")]) in list_output
    card_output = run("inspect", "entnet-babi").out
    assert "trained by   mnemic train entnet" in card_output
    assert "tested" in card_output


@pytest.mark.parametrize("name", NAMES)
def test_all_of_them_can_be_inspected(name: str) -> None:
    output = run("inspect", name).out
    assert shipped.read_card(name)["command"].split(";")[0] in " ".join(output.split())


def test_numbers_in_a_row_are_told_by_their_ends() -> None:
    assert shipped.format_ranges([1, 6, 7, 8, 9, 12]) == "1, 6-9, 12"
    assert shipped.format_ranges([3]) == "3"


# Making one ------------------------------------------------------------------------------------


def test_shipping_keeps_what_answering_needs_at_half_the_size(tmp_path: Path) -> None:
    card = publish_checkpoint(model(), "small", command="mnemic train memn2n", sources=SOURCES, into=tmp_path)
    folder = tmp_path / "small"
    assert read_json(folder / "card.json") == card
    weights = load_file(folder / "weights.safetensors")
    assert {weight.dtype for weight in weights.values()} == {torch.float16}
    before, after = load(model()), load(folder)
    for (name, old), new in zip(before.network.named_parameters(), after.network.parameters(), strict=True):
        assert new.dtype == torch.float32, name
        torch.testing.assert_close(new, old, atol=1e-3, rtol=1e-3)
    total_seconds = sum(row["seconds"] for row in before.progress.history)
    assert [row["seconds"] for row in after.progress.history] == [pytest.approx(total_seconds, abs=0.01)]
    exact = publish_checkpoint(model(), "exact", command="…", sources=SOURCES, into=tmp_path, precision="float32")
    assert exact["precision"] == "float32"
    errors = compute_task_errors(before.network, load_data(before.recipe).test)
    assert exact["per_task"] == {"1": errors[1]}
    assert set(exact["evidence"]["1"]) == {"supporting", "most_read", "other"}


def test_a_changed_card_is_noticed(tmp_path: Path) -> None:
    publish_checkpoint(model(), "small", command="…", sources=SOURCES, into=tmp_path)
    write_json(tmp_path / "small" / "card.json", {"mean_error": 0.0})
    with pytest.raises(CheckpointError, match=r"card\.json was changed"):
        load(tmp_path / "small")


def test_what_would_be_too_much_is_not_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The network that was there before stays."""
    old = publish_checkpoint(model(), "small", command="first", sources=SOURCES, into=tmp_path)
    monkeypatch.setattr(ship_module, "MAX_TOTAL_BYTES", shipped.size_in_bytes(tmp_path) + 100)
    assert publish_checkpoint(model(), "small", command="again", sources=SOURCES, into=tmp_path) != old  # in its place
    with pytest.raises(ConfigError, match="bytes, over"):
        publish_checkpoint(model(), "other", command="…", sources=SOURCES, into=tmp_path)
    assert read_json(tmp_path / "small" / "card.json")["command"] == "again"
    assert [path.name for path in tmp_path.iterdir()] == ["small"]
    with pytest.raises(ConfigError, match="a word such as entnet-babi"):
        publish_checkpoint(model(), "../small", command="…", sources=SOURCES, into=tmp_path)


def test_what_is_shared_with_another_network_is_stored_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network with the layers of the small reader, whose word vectors are shared, too."""
    monkeypatch.setattr("mnemic.reproduce.publish.measure_stories", lambda *_: {})  # other tests are about cards
    sets = [
        "data.tasks=[4]", "data.count=20", "data.segments=1", "data.length=64",
        "train.batch=2", 'train.fixed=["encode"]', "phases=[{train={segments=1, steps=1}}]",
    ]  # fmt: skip
    set_start = partial(start_recipe_from, folder=Path("reader-small"))
    list(fit(load_recipe("bert-mass-selective", sets, change=set_start), tmp_path / "run", device="cpu"))
    kwargs: Any = {"command": "mnemic train keeps", "sources": SOURCES, "precision": "int8", "into": tmp_path / "all"}
    publish_checkpoint(tmp_path / "run", "kept", shares="reader-small", **kwargs)
    stored = load_file(tmp_path / "all" / "kept" / "weights.safetensors")
    assert not [name for name in stored if name.startswith("encode.")]
    shared = read_json(tmp_path / "all" / "kept" / "recipe.json")["shared"]
    frozen = {f"encode.{name}": weight for name, weight in weights_of(load("reader-small").network.encode).items()}
    assert shared["tensors"] == shared_weights.hash_tensors(frozen)
    assert shipped.size_in_bytes(tmp_path / "all") < 6_000_000
    before, after = load(tmp_path / "run"), load(tmp_path / "all" / "kept")
    after_weights, before_weights = (weights_of(checkpoint.network.encode) for checkpoint in (after, before))
    assert all(torch.equal(after_weights[name], before_weights[name]) for name in before_weights)
    torch.testing.assert_close(after.network.memory.time.weight, before.network.memory.time.weight, atol=1e-3, rtol=0)
    set_start = partial(start_recipe_from, folder=tmp_path / "all" / "kept")
    again = load_recipe("bert-mass-selective", sets, change=set_start)
    third = initialize_network(again["model"], after.sizes, 1)
    assert torch.equal(third.encode.embeddings.tokens, before_weights["embeddings.tokens"])
    with pytest.raises(ConfigError, match="no weight equals the shipped network's"):
        publish_checkpoint(model(), "other", shares="reader", **kwargs)
    with pytest.raises(ConfigError, match="no network 'readers' came with mnemic"):
        publish_checkpoint(tmp_path / "run", "other", shares="readers", **kwargs)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ({"network": "reader", "weights": "0"}, "was trained with other weights of 'reader'"),
        ({"network": "gone", "weights": "0"}, "needs the network 'gone'"),
        ("reader", "not by a network and its SHA-256"),
    ],
)
def test_shared_weights_that_are_not_there_are_noticed(reference: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=message):
        shared_weights.find_shared_weights(reference, tmp_path, "weights.safetensors")


def test_the_step_from_a_run_to_the_package(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["ship", str(model()), "small", "--command", "mnemic train memn2n", "--source", *SOURCES]
    assert main([*argv, "--into", str(tmp_path)]) == 0
    card = json.loads(capsys.readouterr().out)
    assert card == read_json(tmp_path / "small" / "card.json")
    source = {"name": "generated stories (tasks 1 to 3)", "role": "training data", "license": "Apache-2.0"}
    assert (card["license"], card["sources"]) == ("Apache-2.0", [source])
    for sources, message in (([], "says what it was made from"), (["stories"], "a source is ROLE: NAME")):
        with pytest.raises(ConfigError, match=message):
            publish_checkpoint(model(), "small", command="…", sources=sources, into=tmp_path)
