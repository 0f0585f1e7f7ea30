"""Classes, tags and spans of long texts: windows in order, with a carried memory."""

from functools import cache
from pathlib import Path
from typing import Any

import far_files
import pytest
import torch
from app_runs import run
from shared_folders import make_temporary_folder
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


def make_model(head: str, kind: str = "blended", **segment_options: Any) -> SegmentTextModel:
    torch.manual_seed(0)
    model: dict[str, Any] = {
        "width": 16,
        "encode": {"kind": "transformer", "stack": {"kind": "encoder", "depth": 1}},
        "memory": {"kind": kind, "slots": 12},
        "respond": {"kind": head, "dropout": 0.0},
        "segments": segment_options,
    }
    return build_model(model, {"vocab": VOCAB, "max_length": LENGTH, "classes": 3}).eval()


def make_windows(*counts: int, seed: int = 1) -> WindowBatch:
    """Make texts of so many windows; [CLS] is 1, [SEP] 2; last windows are short."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(5, VOCAB, (sum(counts), LENGTH), generator=generator)
    tokens[:, 0], tokens[:, -1] = 1, 2
    mask = torch.ones_like(tokens, dtype=torch.bool)
    mask[torch.tensor(counts).cumsum(0) - 1, 5:] = False
    text_mask = mask & (tokens > 2)
    documents = list_windows(torch.tensor(counts))
    return WindowBatch(tokens * mask, mask, torch.zeros_like(tokens), text_mask, document_windows=documents)


def select_windows(inputs: WindowBatch, rows: Tensor, *counts: int) -> WindowBatch:
    fields = (field[rows] for field in inputs[:4])
    return WindowBatch(*fields, document_windows=list_windows(torch.tensor(counts)))  # type: ignore[arg-type]


@HEADS
@KINDS
def test_a_text_is_read_alike_in_any_batch(head: str, kind: str) -> None:
    network, inputs = make_model(head, kind), make_windows(3, 1, 2)
    together = network(inputs)
    first = 0
    for row, count in enumerate((3, 1, 2)):
        windows = torch.arange(first, first + count)
        alone = network(select_windows(inputs, windows, count))
        torch.testing.assert_close(together.logits[windows], alone.logits)
        torch.testing.assert_close(together.state.last_mean[row], alone.state.last_mean[0])
        torch.testing.assert_close(together.slot_reads.weights[windows], alone.slot_reads.weights)
        first += count


@HEADS
@KINDS
def test_reading_in_chunks_equals_reading_at_once(head: str, kind: str) -> None:
    """So a text of any length needs only a few windows; finished texts stay unchanged."""
    network, inputs = make_model(head, kind), make_windows(4, 1)
    expected = network(inputs)
    first = network(select_windows(inputs, torch.tensor([0, 1, 4]), 2, 1))
    rest = network(select_windows(inputs, torch.tensor([2, 3]), 2, 0), first.state)
    assert isinstance(rest.state, SegmentTextState)
    torch.testing.assert_close(rest.logits, expected.logits[2:4])
    if head != "classes":
        torch.testing.assert_close(first.logits, expected.logits[[0, 1, 4]])
    torch.testing.assert_close(rest.state.last_mean, expected.state.last_mean)


def change_token(inputs: WindowBatch, window: int) -> WindowBatch:
    tokens = inputs.tokens.clone()
    tokens[window, 2] = 5 if int(tokens[window, 2]) != 5 else 6
    return inputs._replace(tokens=tokens)


@pytest.mark.parametrize("head", ["tags", "spans"])
@KINDS
def test_tokens_depend_on_earlier_windows(head: str, kind: str) -> None:
    network, inputs = make_model(head, kind), make_windows(3)
    before = network(inputs).logits
    for window, reached in ((0, [True, True, True]), (1, [False, True, True])):
        after = network(change_token(inputs, window)).logits
        assert [
            bool((before_window != after_window).any()) for before_window, after_window in zip(before, after)
        ] == reached
    alone = make_model(head, kind, carry_memory=False)
    after = alone(change_token(inputs, 0)).logits
    assert torch.equal(after[1:], alone(inputs).logits[1:])


@KINDS
def test_a_class_knows_every_window_and_without_memory_the_last(kind: str) -> None:
    inputs = make_windows(3)
    for carry_memory, reached in ((True, [True] * 3), (False, [False, False, True])):
        network = make_model("classes", kind, carry_memory=carry_memory)
        before = network(inputs).logits
        assert (before == before[0]).all()  # all windows give the class of the text
        after = [network(change_token(inputs, window)).logits for window in range(3)]
        assert [bool((changed_logits != before).any()) for changed_logits in after] == reached


@HEADS
def test_the_gradient_reaches_the_first_window_unless_it_is_cut(head: str) -> None:
    for truncate, reaches in ((0, True), (1, False)):
        network, inputs = make_model(head, truncate=truncate).train(), make_windows(3)
        states: list[Tensor] = []
        hook = network.encode.register_forward_hook(
            lambda _, __, output, outputs=states: outputs.append(output.detach().requires_grad_()) or outputs[-1]
        )
        network(inputs).logits[2].clamp(min=-1e3).square().sum().backward()
        hook.remove()
        assert states[0].grad is not None
        assert bool((states[0].grad[0] != 0).any()) == reaches


@HEADS
def test_padding_windows_change_nothing(head: str, tmp_path: Path) -> None:
    """On a GPU batches have one shape: windows of no text follow the others."""
    recipe = tiny_recipe(head, getattr(far_files, head)(tmp_path, 40))
    data: Any = load_data(recipe)
    torch.manual_seed(0)
    network = build_model(recipe["model"], data.sizes).eval()
    rows, loss = torch.arange(3), build(OBJECTIVES, recipe["objective"])
    compact_loss, padded_loss = (
        loss(network, data.train.batch(rows, compact=is_compact)) for is_compact in (True, False)
    )
    torch.testing.assert_close(padded_loss.total, compact_loss.total)
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
HEAD_OPTIONS = {
    "classes": ["train.epochs=5"],
    "tags": ["train.epochs=5"],
    "spans": ["train.epochs=4", "data.length=20"],
}


def tiny_recipe(head: str, folder: Path, *overrides: str) -> Recipe:
    return load_recipe(f"bert-mass-{head}", [*TINY, *HEAD_OPTIONS[head], f"data.folder={folder}", *overrides])


@cache
def run_of(head: str) -> Path:
    folder = make_temporary_folder()
    getattr(far_files, head)(folder)
    for _ in fit(tiny_recipe(head, folder), folder / "run", device="cpu"):
        pass
    return folder / "run"


def load_trained(head: str) -> Model:
    return load(run_of(head))


@HEADS
def test_the_first_window_decides_only_with_memory(head: str) -> None:
    checkpoint = load_trained(head)
    dataset: Any = load_data(checkpoint.recipe).validation
    assert (dataset.first_window.diff() > 1).all()  # no text fits one window
    with_memory = next(iter(compute_metrics(checkpoint.network, dataset).values()))
    checkpoint.network.carry_memory = False
    without_memory = next(iter(compute_metrics(checkpoint.network, dataset).values()))
    assert with_memory >= 95 > 75 > without_memory


LONG_TEXT = "lovely " + "the old train ran past a small grey house today " * 5


def weight_of_first_word(slots: Any) -> float:
    """Sum how much was read of the first word, over all slots."""
    weights = [slot.weight * source.weight for slot in slots for source in slot.sources if source.start == 0]
    return sum(weights)


def test_answers_say_which_slots_they_read_and_what_was_written_there() -> None:
    (classified,) = load_trained("classes").classify([LONG_TEXT])
    (tagged,) = load_trained("tags").tag([LONG_TEXT + "Ann today"])
    span = load_trained("spans").answer("what ?", LONG_TEXT + "Ann Oslo")
    assert classified.label == "good"
    assert [entity.kind for entity in tagged.entities] == ["person"]
    assert span.quote(LONG_TEXT + "Ann Oslo") == "Ann"
    for slots, result in ((classified.slots, classified), (tagged.entities[0].slots, tagged), (span.slots, span)):
        assert result.seen == result.total > 50  # all tokens, in more than one window
        assert weight_of_first_word(slots) > 0.2
        for slot in slots:
            for source in slot.sources:
                assert LONG_TEXT[source.start : source.end].strip() == LONG_TEXT[source.start : source.end] != ""


def test_the_memory_items_are_the_tokens_of_the_text() -> None:
    """Also with a question before each window, and with unknown words."""
    tokenizer, text = load_trained("spans").tokenizer, LONG_TEXT + "Ann 🜁 Oslo"
    options = WindowOptions(20, 0)
    questions = encode_questions([QuestionExample("what ?", text, (), -1, "")], tokenizer, options)
    for dataset in (questions, encode_tagged([TaggedExample(text, (), ())], tokenizer, options, labels=["O"])):
        assert SlotReadRecorder(dataset).find_written_spans(0) == tokenizer.encode(text, special=False).offsets
    unlabeled = encode_labeled([LabeledExample(text, None, "")], tokenizer, options, labels=())
    known_spans = [span for span in SlotReadRecorder(unlabeled).find_written_spans(0) if text[slice(*span)] != "🜁"]
    assert known_spans == [span for span in questions.token_offsets(0) if text[slice(*span)] != "🜁"]


@HEADS
def test_all_of_a_text_is_seen_however_it_is_batched(head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same answers for two windows or all at once; ``seen`` equals ``total``."""
    checkpoint, results = load_trained(head), []
    with torch.no_grad():
        for weight in checkpoint.network.respond.parameters():
            weight.mul_(0.1)  # so that probabilities are neither 0 nor 1
    for tokens_per_batch in (16_384, 40):
        monkeypatch.setattr(read, "TOKENS_PER_BATCH", tokens_per_batch)
        if head == "spans":
            results.append([checkpoint.answer("what ?", LONG_TEXT * 3 + "Ann Oslo")])
        elif head == "tags":
            results.append(checkpoint.tag([LONG_TEXT * 3 + "Ann today", "Ann", ""]))
        else:
            results.append(checkpoint.classify([f"{LONG_TEXT * 3} awful small", "awful today", ""]))
    assert all(result.seen == result.total for result in results[0])
    for first, second in zip(*results):
        torch.testing.assert_close(probabilities_of(first), probabilities_of(second), rtol=0, atol=1e-4)


def probabilities_of(result: Any) -> list[float]:
    if hasattr(result, "entities"):
        return [entity.probability for entity in result.entities]
    return [result.score if hasattr(result, "score") else result.probability]


def test_the_command_line_tells_of_slots() -> None:
    prediction = run("predict", "--model", run_of("classes"), "--device", "cpu", stdin=LONG_TEXT + "\n").json
    assert prediction["label"] == "good"
    assert prediction["seen"] == prediction["total"]
    assert {"number", "weight", "sources"} == prediction["slots"][0].keys()
    assert {"start", "end", "weight"} == prediction["slots"][0]["sources"][0].keys()
    report = run("evaluate", run_of("classes"), "--device", "cpu", "--json").json
    assert report["figures"]["accuracy"] >= 95
    assert report["seen"] == report["total"]
    cut = run("predict", "--model", run_of("classes"), "--truncation", "first", stdin=LONG_TEXT)
    assert cut.code == 2
    assert "reads all of a text" in cut.err
    story = run("story", "ask", "--model", run_of("classes"), "--sentence", "a", "who ?")
    assert "reads texts: use `mnemic predict`" in story.err


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["data.overlap=4"], "segments that do not overlap, all of it"),
        (['data.truncation="first"'], "segments that do not overlap, all of it"),
        (['data.kind="pairs"'], "model.segments reads in segments: data.kind is"),
        (["model.mass={}"], "takes no model.mass"),
        (['model.segments.unit="sentences"'], "segments does not take 'unit'"),
    ],
)
def test_recipes_that_do_not_fit_say_so(overrides: list[str], message: str, tmp_path: Path) -> None:
    recipe = tiny_recipe("classes", far_files.classes(tmp_path, 20), *overrides)
    with pytest.raises(ConfigError, match=message):
        list(fit(recipe, tmp_path / "run", device="cpu"))
