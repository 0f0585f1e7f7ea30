"""Classes, tags and spans of texts of any length: windows in turn, and a memory goes along."""

import atexit
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import far_files
import pytest
import torch
from app_runs import run
from torch import Tensor

from mnemic.data.text_tasks.batches import list_windows
from mnemic.data.text_tasks.encode_windows import encode_labeled, encode_questions, encode_tagged
from mnemic.data.text_tasks.examples import LabeledExample, QuestionExample, TaggedExample
from mnemic.evaluate.text_metrics import compute_metrics
from mnemic.models import WindowBatch, build_model
from mnemic.models.segment_text_model import SegmentTextModel, SegmentTextState
from mnemic.objectives import OBJECTIVES
from mnemic.predict import windows as read
from mnemic.predict.model import Model, load
from mnemic.predict.slot_evidence import SlotReadRecorder
from mnemic.recipe import ConfigError, Recipe, build, load_recipe
from mnemic.text import WindowOptions
from mnemic.train.run import fit, load_data

VOCAB, LENGTH = 30, 8
HEADS = pytest.mark.parametrize("head", ["classes", "tags", "spans"])
KINDS = pytest.mark.parametrize("kind", ["blended", "selective"])


def make(head: str, kind: str = "blended", **carry: Any) -> SegmentTextModel:
    torch.manual_seed(0)
    model: dict[str, Any] = {
        "width": 16,
        "encode": {"kind": "transformer", "stack": {"kind": "encoder", "depth": 1}},
        "memory": {"kind": kind, "slots": 12},
        "respond": {"kind": head, "dropout": 0.0},
        "segments": carry,
    }
    return build_model(model, {"vocab": VOCAB, "max_length": LENGTH, "classes": 3}).eval()


def texts(*counts: int, seed: int = 1) -> WindowBatch:
    """One text a number, of so many windows; [CLS] is 1, [SEP] 2; the last windows are short."""
    dice = torch.Generator().manual_seed(seed)
    tokens = torch.randint(5, VOCAB, (sum(counts), LENGTH), generator=dice)
    tokens[:, 0], tokens[:, -1] = 1, 2
    mask = torch.ones_like(tokens, dtype=torch.bool)
    mask[torch.tensor(counts).cumsum(0) - 1, 5:] = False
    inside = mask & (tokens > 2)
    documents = list_windows(torch.tensor(counts))
    return WindowBatch(tokens * mask, mask, torch.zeros_like(tokens), inside, document_windows=documents)


def some(inputs: WindowBatch, rows: Tensor, *counts: int) -> WindowBatch:
    parts = (part[rows] for part in inputs[:4])
    return WindowBatch(*parts, document_windows=list_windows(torch.tensor(counts)))  # type: ignore[arg-type]


@HEADS
@KINDS
def test_a_text_is_read_alike_in_any_batch(head: str, kind: str) -> None:
    network, inputs = make(head, kind), texts(3, 1, 2)
    together = network(inputs)
    first = 0
    for row, count in enumerate((3, 1, 2)):
        own = torch.arange(first, first + count)
        alone = network(some(inputs, own, count))
        torch.testing.assert_close(together.logits[own], alone.logits)
        torch.testing.assert_close(together.state.last_mean[row], alone.state.last_mean[0])
        torch.testing.assert_close(together.slot_reads.weights[own], alone.slot_reads.weights)
        first += count


@HEADS
@KINDS
def test_stretch_by_stretch_is_at_once(head: str, kind: str) -> None:
    """So that a text of any length needs room for a few windows; one that ended stays as it is."""
    network, inputs = make(head, kind), texts(4, 1)
    whole = network(inputs)
    begun = network(some(inputs, torch.tensor([0, 1, 4]), 2, 1))
    rest = network(some(inputs, torch.tensor([2, 3]), 2, 0), begun.state)
    assert isinstance(rest.state, SegmentTextState)
    torch.testing.assert_close(rest.logits, whole.logits[2:4])
    if head != "classes":
        torch.testing.assert_close(begun.logits, whole.logits[[0, 1, 4]])
    torch.testing.assert_close(rest.state.last_mean, whole.state.last_mean)


def changed(inputs: WindowBatch, window: int) -> WindowBatch:
    tokens = inputs.tokens.clone()
    tokens[window, 2] = 5 if int(tokens[window, 2]) != 5 else 6
    return inputs._replace(tokens=tokens)


@pytest.mark.parametrize("head", ["tags", "spans"])
@KINDS
def test_tokens_know_what_stood_before_their_window(head: str, kind: str) -> None:
    network, inputs = make(head, kind), texts(3)
    before = network(inputs).logits
    for window, reached in ((0, [True, True, True]), (1, [False, True, True])):
        after = network(changed(inputs, window)).logits
        assert [bool((a != b).any()) for a, b in zip(before, after)] == reached
    alone = make(head, kind, carry_memory=False)
    after = alone(changed(inputs, 0)).logits
    assert torch.equal(after[1:], alone(inputs).logits[1:])


@KINDS
def test_a_class_knows_every_window_and_without_memory_the_last(kind: str) -> None:
    inputs = texts(3)
    for lasts, reached in ((True, [True] * 3), (False, [False, False, True])):
        network = make("classes", kind, carry_memory=lasts)
        before = network(inputs).logits
        assert (before == before[0]).all()  # every window says what the text is
        after = [network(changed(inputs, window)).logits for window in range(3)]
        assert [bool((own != before).any()) for own in after] == reached


@HEADS
def test_the_gradient_reaches_the_first_window_unless_it_is_cut(head: str) -> None:
    for truncate, reaches in ((0, True), (1, False)):
        network, inputs = make(head, truncate=truncate).train(), texts(3)
        states: list[Tensor] = []
        hook = network.encode.register_forward_hook(
            lambda _, __, out, kept=states: kept.append(out.detach().requires_grad_()) or kept[-1]
        )
        network(inputs).logits[2].clamp(min=-1e3).square().sum().backward()
        hook.remove()
        assert states[0].grad is not None
        assert bool((states[0].grad[0] != 0).any()) == reaches


@HEADS
def test_room_for_longer_texts_changes_nothing(head: str, tmp_path: Path) -> None:
    """On a GPU batches have one shape: windows that are of no text stand behind the others."""
    recipe = tiny(head, getattr(far_files, head)(tmp_path, 40))
    data: Any = load_data(recipe)
    torch.manual_seed(0)
    network = build_model(recipe["model"], data.sizes).eval()
    rows, loss = torch.arange(3), build(OBJECTIVES, recipe["objective"])
    tight, wide = (loss(network, data.train.batch(rows, compact=own)) for own in (True, False))
    torch.testing.assert_close(wide.total, tight.total)
    assert len(data.train.batch(rows, compact=False).inputs.tokens) > len(data.train.batch(rows).inputs.tokens)


# Learning ------------------------------------------------------------------------------------

TINY = [
    "model.width=32", "model.encode.stack.depth=1", "data.length=16", "train.rate=0.005",
    'data.tokenizer={kind="wordpiece", vocab=300}', "train.buckets=1", "train.batch=16",
    'train.schedule={kind="constant"}', "train.validate=0", 'train.keep="last"',
    "model.encode.embeddings.dropout=0.0", "model.encode.stack.dropout=0.0",
    "model.respond.dropout=0.0", "model.memory.slots=16", "model.memory.hops=1",
    "model.memory.heads=1",
]  # fmt: skip
MORE = {"classes": ["train.epochs=5"], "tags": ["train.epochs=5"], "spans": ["train.epochs=4", "data.length=20"]}


def tiny(head: str, folder: Path, *sets: str) -> Recipe:
    return load_recipe(f"bert-mass-{head}", [*TINY, *MORE[head], f"data.folder={folder}", *sets])


@cache
def run_of(head: str) -> Path:
    folder = Path(mkdtemp(prefix="mnemic-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    getattr(far_files, head)(folder)
    for _ in fit(tiny(head, folder), folder / "run", device="cpu"):
        pass
    return folder / "run"


def trained(head: str) -> Model:
    return load(run_of(head))


@HEADS
def test_what_the_first_window_says_decides_and_without_memory_nothing_does(head: str) -> None:
    checkpoint = trained(head)
    held: Any = load_data(checkpoint.recipe).validation
    assert (held.first_window.diff() > 1).all()  # no text fits one window
    right = next(iter(compute_metrics(checkpoint.network, held).values()))
    checkpoint.network.carry_memory = False
    without = next(iter(compute_metrics(checkpoint.network, held).values()))
    assert right >= 95 > 75 > without


FAR = "lovely " + "the old train ran past a small grey house today " * 5


def first_word(slots: Any) -> float:
    """How much was read of the first word, through all slots."""
    each = [own.weight * one.weight for own in slots for one in own.sources if one.start == 0]
    return sum(each)


def test_answers_say_which_slots_they_read_and_what_was_written_there() -> None:
    (sort,) = trained("classes").classify([FAR])
    (tagged,) = trained("tags").tag([FAR + "Ann today"])
    span = trained("spans").answer("what ?", FAR + "Ann Oslo")
    assert sort.label == "good"
    assert [own.kind for own in tagged.entities] == ["person"]
    assert span.quote(FAR + "Ann Oslo") == "Ann"
    for slots, result in ((sort.slots, sort), (tagged.entities[0].slots, tagged), (span.slots, span)):
        assert result.seen == result.total > 50  # every token, in more windows than one
        assert first_word(slots) > 0.2
        for slot in slots:
            for one in slot.sources:
                assert FAR[one.start : one.end].strip() == FAR[one.start : one.end] != ""


def test_what_a_memory_was_told_is_every_token_of_the_text_in_its_place() -> None:
    """Also where a question stands before each window, and where words are unknown."""
    words, text = trained("spans").tokenizer, FAR + "Ann 🜁 Oslo"
    room = WindowOptions(20, 0)
    asked = encode_questions([QuestionExample("what ?", text, (), -1, "")], words, room)
    for own in (asked, encode_tagged([TaggedExample(text, (), ())], words, room, labels=["O"])):
        assert SlotReadRecorder(own).find_written_spans(0) == words.encode(text, special=False).offsets
    alone = encode_labeled([LabeledExample(text, None, "")], words, room, labels=())
    known = [place for place in SlotReadRecorder(alone).find_written_spans(0) if text[slice(*place)] != "🜁"]
    assert known == [p for p in asked.token_offsets(0) if text[slice(*p)] != "🜁"]


@HEADS
def test_all_of_a_text_is_seen_however_it_is_batched(head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for two windows or for all: the same answers, and tokens seen are tokens there are."""
    checkpoint, found = trained(head), []
    with torch.no_grad():
        for weight in checkpoint.network.respond.parameters():
            weight.mul_(0.1)  # so that probabilities are none of 0 and 1
    for at_once in (16_384, 40):
        monkeypatch.setattr(read, "TOKENS_PER_BATCH", at_once)
        if head == "spans":
            found.append([checkpoint.answer("what ?", FAR * 3 + "Ann Oslo")])
        elif head == "tags":
            found.append(checkpoint.tag([FAR * 3 + "Ann today", "Ann", ""]))
        else:
            found.append(checkpoint.classify([f"{FAR * 3} awful small", "awful today", ""]))
    assert all(own.seen == own.total for own in found[0])
    for one, other in zip(*found):
        torch.testing.assert_close(chance(one), chance(other), rtol=0, atol=1e-4)


def chance(own: Any) -> list[float]:
    if hasattr(own, "entities"):
        return [one.probability for one in own.entities]
    return [own.score if hasattr(own, "score") else own.probability]


def test_the_command_line_tells_of_slots() -> None:
    told = run("predict", "--model", run_of("classes"), "--device", "cpu", stdin=FAR + "\n").json
    assert told["label"] == "good"
    assert told["seen"] == told["total"]
    assert {"number", "weight", "sources"} == told["slots"][0].keys()
    assert {"start", "end", "weight"} == told["slots"][0]["sources"][0].keys()
    judged = run("evaluate", run_of("classes"), "--device", "cpu", "--json").json
    assert judged["figures"]["accuracy"] >= 95
    assert judged["seen"] == judged["total"]
    cut = run("predict", "--model", run_of("classes"), "--truncation", "first", stdin=FAR)
    assert cut.code == 2
    assert "reads all of a text" in cut.err
    story = run("story", "ask", "--model", run_of("classes"), "--sentence", "a", "who ?")
    assert "reads texts: use `mnemic predict`" in story.err


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (["data.overlap=4"], "segments that do not overlap, all of it"),
        (['data.truncation="first"'], "segments that do not overlap, all of it"),
        (['data.kind="pairs"'], "model.segments reads in segments: data.kind is"),
        (["model.mass={}"], "takes no model.mass"),
        (['model.segments.unit="sentences"'], "segments does not take 'unit'"),
    ],
)
def test_recipes_that_do_not_fit_say_so(sets: list[str], said: str, tmp_path: Path) -> None:
    recipe = tiny("classes", far_files.classes(tmp_path, 20), *sets)
    with pytest.raises(ConfigError, match=said):
        list(fit(recipe, tmp_path / "run", device="cpu"))
