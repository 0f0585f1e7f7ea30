"""EntNet's keys tied to words: the recipe names words, the data has their ids."""

from pathlib import Path

import pytest
import torch
from app_runs import STORY, run, sets

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.memory.entnet import EntNet
from mnemic.recipe import ConfigError, Recipe, load_recipe
from mnemic.train.run import load_data
from mnemic.train.start.tied_words import resolve_tied_words

SMALL = ("data={kind='generated', tasks=[1], count=40}", "model.width=8", "train.epochs=1")
NAMED = "model.memory.tied=['Mary', 'john']"


def recipe_of(tied: str) -> Recipe:
    return load_recipe("entnet", [*SMALL, f"model.memory.tied={tied}"])


def test_a_recipe_names_words_and_the_run_keeps_their_ids(tmp_path: Path) -> None:
    """Train, ask and resume from the command line; the loaded keys are the same."""
    train = ("train", "entnet", *sets(*SMALL, NAMED), "--out", tmp_path / "run", "--device", "cpu")
    assert run(*train).code == 0
    checkpoint = load_checkpoint(tmp_path / "run")
    ids = [checkpoint.tokenizer.encode(name).ids[0] for name in ("mary", "john")]
    assert checkpoint.recipe["model"]["memory"]["tied"] == ["Mary", "john"]
    assert checkpoint.sizes["tied_words"] == ids
    network = checkpoint.network
    assert torch.equal(network.memory.slot_keys(), network.encode.words[ids])
    question_command = ("story", "ask", "--model", tmp_path / "run", "--story", "-", "Where is Mary?", "--json")
    assert run(*question_command, stdin=STORY).json["slots"]["names"] == ["mary", "john"]
    again = run(*train)
    assert again.code == 0, again.err


def test_words_and_ids_make_the_same_network() -> None:
    data = load_data(recipe_of("['mary', 'john']"))
    ids = data.sizes["tied_words"]
    assert load_data(recipe_of(str(ids))).sizes == {
        key: size for key, size in data.sizes.items() if key != "tied_words"
    }
    assert load_data(recipe_of(f"['mary', {ids[1]}]")).sizes == data.sizes


@pytest.mark.parametrize(
    ("tied", "message"),
    [
        ("['zelda']", "names 'zelda', which is not in the training data; it has back, bathroom"),
        ("[3, 500]", r"tied has the id 500; ids go from 1 to \d+; or name the words"),
        ("[0]", "tied has the id 0"),
    ],
)
def test_what_is_no_word_is_named(tied: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_data(recipe_of(tied))


def test_what_is_no_list_of_words_is_left_to_the_memory() -> None:
    data = load_data(recipe_of("[]"))
    for tied in ("mary", "['mary', true]"):
        assert resolve_tied_words(data, recipe_of(tied)) is data
    with pytest.raises(ValueError, match="only data knows the id of 'mary'"):
        EntNet(4, tied=["mary"])
