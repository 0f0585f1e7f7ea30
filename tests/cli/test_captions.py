"""Every kind of memory explains its evidence, on the screen and in a plot."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from matplotlib import image

from mnemic.checkpoint.folder import Checkpoint, TrainingProgress
from mnemic.cli.render.captions import build_story_rows, compute_unread_weights, format_column_titles
from mnemic.cli.render.console import get_stdout
from mnemic.cli.render.evidence_table import BLOCKS, evidence_table, format_blocks
from mnemic.cli.render.plot_story import plot_story
from mnemic.data.babi.batches import build_tokenizer
from mnemic.data.babi.format import StoryExample
from mnemic.memory import MEMORIES, Reading, Written
from mnemic.memory.contract import UPDATE_GATE_LABEL
from mnemic.models import ModelOutput
from mnemic.predict import SentenceEvidence, SlotActivity, StoryAnswer, ask_story
from mnemic.predict.story import count_hops
from mnemic.recipe import load_recipe, select_kinds
from mnemic.train.initialize import build_network

STORY = ("Mary went home.", "John went away.", "Mary took the milk.")
RECIPES = {
    "dmn": "dmn",
    "dmn-layers": "dmn",
    "dmn-plus": "dmn-plus",
    "dmn-sum": "dmn",
    "entnet": "entnet",
    "memn2n": "gated-memn2n",
    "memnn": "memnn-am-ng-nl",
    "wmn": "wmn",
}
OTHER_MEMORIES = {"key-value", "regions", "sampled-regions"}  # of facts and of pictures
STORY_MEMORIES = MEMORIES.keys() - select_kinds(MEMORIES, carries_segments=True) - OTHER_MEMORIES
RECIPES |= {kind: kind for kind in sorted(STORY_MEMORIES - RECIPES.keys())}  # a recipe has its memory's name


def make_untrained_checkpoint(name: str, *sets: str) -> Checkpoint:
    """Make an untrained checkpoint of a recipe with the story's vocabulary."""
    recipe = load_recipe(name, ["model.width=8", *sets])
    tokenizer = build_tokenizer([StoryExample(STORY, "Where is Mary?", "home", (), 1)])
    sizes = {"vocab": len(tokenizer), "max_length": 6}
    network = build_network(recipe["model"], sizes, 0)
    return Checkpoint(recipe=recipe, seed=0, sizes=sizes, tokenizer=tokenizer, network=network.eval(),
                      progress=TrainingProgress(done=True), state={})  # fmt: skip


def render_table(answer: StoryAnswer) -> str:
    screen = get_stdout()
    with screen.capture() as capture:
        screen.print(evidence_table(build_story_rows(answer, None), format_column_titles(answer), answer.item))
    return capture.get()


@pytest.mark.parametrize("kind", RECIPES)
def test_every_memory_is_shown_and_drawn(kind: str, tmp_path: Path) -> None:
    answer = ask_story(make_untrained_checkpoint(RECIPES[kind], f"model.memory.kind={kind}"), STORY, "Where is Mary?")
    assert answer.memory == kind
    assert [evidence.text for evidence in answer.evidence] == list(STORY)
    table = render_table(answer)
    assert all(text in table for text in (*STORY, *format_column_titles(answer)))
    assert plot_story(answer, "Where is Mary?", tmp_path / "read.svg") == []
    svg = (tmp_path / "read.svg").read_text(encoding="utf-8")
    assert all(text in svg for text in (*STORY, MEMORIES[kind].labels.caption))


@pytest.mark.parametrize("kind", RECIPES)
def test_a_column_adds_up_where_it_is_said_to(kind: str) -> None:
    answer = ask_story(make_untrained_checkpoint(RECIPES[kind], f"model.memory.kind={kind}"), STORY, "Where is Mary?")
    for hop, unread in enumerate(compute_unread_weights(answer)):
        total = sum(evidence.weights[hop] for evidence in answer.evidence) + unread
        if "adds up to 1" in MEMORIES[kind].labels.caption or MEMORIES[kind].labels.unread:
            assert total == pytest.approx(1, abs=1e-5)
            assert unread > -1e-5


def test_gates_that_stand_alone_leave_no_rest() -> None:
    """DMN's gates are independent: three of 0.2 leave no unread weight of 0.4."""
    evidence = tuple(SentenceEvidence(number, text, (0.2,)) for number, text in enumerate(STORY))
    answer = StoryAnswer("home", 1.0, (("home", 1.0),), evidence, 3, 3, (), memory="dmn")
    assert compute_unread_weights(answer) == [0.0]
    assert "pass 1" in render_table(answer)
    assert "nothing" not in render_table(answer)
    assert "nothing: free slots" in render_table(replace(answer, memory="memn2n"))


def test_a_gated_hop_says_how_much_it_took() -> None:
    checkpoint = make_untrained_checkpoint("gated-memn2n")
    with torch.no_grad():
        checkpoint.network.memory.update.biases.copy_(torch.tensor([-50.0, 0.0, 50.0])[:, None].expand(3, 8))
        checkpoint.network.memory.update.maps.zero_()
    answer = ask_story(checkpoint, STORY, "Where is Mary?")
    assert answer.taken == pytest.approx((0.0, 0.5, 1.0))
    assert UPDATE_GATE_LABEL in render_table(answer)
    plain = ask_story(make_untrained_checkpoint("memn2n"), STORY, "Where is Mary?")
    assert plain.taken == ()
    assert UPDATE_GATE_LABEL not in render_table(plain)


def test_a_reading_that_stopped_ends_with_the_hop_that_stopped_it() -> None:
    def output(*read: float, nothing: bool = True) -> ModelOutput:
        weights = torch.tensor(read)[None, :, None, None, None]
        none = torch.zeros(1, len(read), 1, 1) if nothing else None
        reading = Reading(torch.zeros(1), weights, weights, nothing=none)
        return ModelOutput(torch.zeros(0), reading, Written((), torch.ones(1, 1, 1)))

    assert count_hops(output(1, 1, 0, 0, 0)) == 3
    assert count_hops(output(0, 0, 0)) == 1
    assert count_hops(output(1, 1, 1)) == 3
    assert count_hops(output(1, 0, 0, nothing=False)) == 3  # it cannot stop: all its hops are shown


# EntNet's slots --------------------------------------------------------------------------------


def make_entnet_answer(**options: Any) -> StoryAnswer:
    gates = ((0.9, 0.0, 0.1), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
    slots = SlotActivity(("1", "2", "3"), gates, (0.7, 0.2, 0.1))
    evidence = tuple(SentenceEvidence(number, text, (0.3,)) for number, text in enumerate(STORY))
    answer = StoryAnswer("home", 1.0, (("home", 1.0),), evidence, 3, 3, (), memory="entnet", slots=slots)
    return replace(answer, **options)


def test_the_screen_has_a_block_a_slot_and_names_the_most_read() -> None:
    assert format_blocks((0.0, 0.5, 1.0)).plain == f"{BLOCKS[0]}{BLOCKS[4]}{BLOCKS[-1]}"
    table = render_table(make_entnet_answer())
    assert [line.split()[-2] for line in table.splitlines() if any(sentence in line for sentence in STORY)] == [
        "▇·▁",
        "·█·",
        "█··",
    ]
    assert "█▂▁" in table.splitlines()[-2]  # read of each slot, against the most read


def test_the_picture_frames_the_slot_that_was_read_most(tmp_path: Path) -> None:
    """The frame is at the most-read slot, one slot's width per slot."""
    positions = []
    for most_read in range(3):
        read = tuple(0.8 if slot == most_read else 0.1 for slot in range(3))
        slots = replace(make_entnet_answer().slots, read=read)  # type: ignore[type-var]
        path = tmp_path / f"{most_read}.png"
        assert plot_story(make_entnet_answer(slots=slots), "Where?", path) == []
        pixels = image.imread(path)[..., :3]
        assert (pixels[:, -8:] == 1).all()  # nothing is cut off
        frame = (pixels[..., 2] > 0.55) & (pixels[..., 0] < 0.25)  # its blue
        right = frame[len(frame) // 2 :, pixels.shape[1] // 2 :]
        positions.append(right.any(0).nonzero()[0].min())
    assert 0 < positions[1] - positions[0] == pytest.approx(positions[2] - positions[1], abs=1)


def test_tied_keys_are_called_by_their_words(tmp_path: Path) -> None:
    checkpoint = make_untrained_checkpoint("entnet")
    ids = [checkpoint.tokenizer.encode(word).ids[0] for word in ("Mary", "John")]
    tied = make_untrained_checkpoint("entnet", f"model.memory.tied={ids}")
    answer = ask_story(tied, STORY, "Where is Mary?")
    assert answer.slots is not None
    assert answer.slots.names == ("mary", "john")
    plot_story(answer, "Where is Mary?", tmp_path / "read.svg")
    assert ">john<" in (tmp_path / "read.svg").read_text(encoding="utf-8")


def test_what_a_memory_left_out_is_named(tmp_path: Path) -> None:
    """Say that the oldest were dropped, or list dropped sentences by number."""
    small = ("model.memory.slots=2", "model.memory.forget={kind='oldest'}")
    oldest = ask_story(make_untrained_checkpoint("memnn", *small), STORY, "Where is Mary?")
    assert oldest.missing_sentences == "the first 1 of 3 were left out"
    checkpoint = make_untrained_checkpoint("memnn", *small[:1], "model.memory.forget={kind='useless'}")
    candidates = checkpoint.network.encode.tables[2]
    with torch.no_grad():  # "john" alone is worth nothing
        candidates.zero_()
        candidates[checkpoint.tokenizer.encode("John").ids[0]] = -1.0
        checkpoint.network.memory.forget.vector.fill_(1.0)
    answer = ask_story(checkpoint, [*STORY[:2], "Zelda took the milk."], "Where is Mary?")
    assert [evidence.sentence for evidence in answer.evidence] == [0, 2]
    assert answer.missing_sentences == "1 of 3 were left out: number 2"
    assert "'zelda'" in answer.notes[0]  # of a sentence that was kept
    assert answer.notes[1] == f"the memory holds 2 sentences; {answer.missing_sentences}"
    plot_story(answer, "Where is Mary?", tmp_path / "read.svg")
    assert "full: 1 of 3 were left out: number 2." in (tmp_path / "read.svg").read_text("utf-8")


def test_a_memory_that_nothing_entered_is_not_drawn(tmp_path: Path) -> None:
    segmented = make_untrained_checkpoint("memnn", "model.segment={kind='bag'}")
    answer = ask_story(segmented, ["Xyz."], "Where is Mary?")
    assert answer.notes == (
        "the model knows no word of the story ('xyz'); this is a guess",
        "the memory holds 0 sentences; none of 1 could be kept",
    )
    with pytest.raises(ValueError, match="nothing to draw"):
        plot_story(answer, "Where is Mary?", tmp_path / "read.png")


def test_padding_is_never_an_answer() -> None:
    """Neither is "unknown"; one of the two has the highest logit here."""
    checkpoint = make_untrained_checkpoint("entnet")
    with torch.no_grad():
        checkpoint.network.respond.table[0] = 1000.0
        checkpoint.network.respond.table[1] = -1000.0
    answer = ask_story(checkpoint, STORY, "Where is Mary?")
    assert all(text and text != "<unk>" for text, _ in answer.ranked)


def test_a_story_longer_than_any_of_training_is_said_to_be() -> None:
    """EntNet accepts any number of sentences, but was not trained on so many."""
    checkpoint = make_untrained_checkpoint("entnet", "data.sentences=3")
    assert ask_story(checkpoint, STORY, "Where is Mary?").notes == ()
    (note,) = ask_story(checkpoint, [*STORY, STORY[0]], "Where is Mary?").notes
    assert note == "4 sentences are in memory, and training had at most 3; do not trust it"
