"""A network of several tasks answers each by name: as a network that classifies or rates."""

import json
from pathlib import Path

import pytest
import text_files
import torch
from app_runs import run
from learn_runs import finish

import mnemic
from mnemic.checkpoint.folder import save_checkpoint
from mnemic.data import DATASETS
from mnemic.evaluate.text_metrics import compute_metrics
from mnemic.predict.windows import compute_class_logits
from mnemic.recipe import ConfigError, build, load_recipe

TASKS = (
    'data.tasks=[{ name = "good", kind = "classes" }, { name = "mood", kind = "pairs", metric = "f1" }, '
    '{ name = "score", kind = "pairs", labels = "numbers", metric = "pearson" }]'
)
TINY = [
    TASKS, "data.length=32", "data.overlap=8", "data.test_file=test", 'data.tokenizer={kind="wordpiece", vocab=200}',
    "model.width=16", "model.encode.stack.depth=1", "model.encode.stack.attention.heads=2", "train.batch=16",
    "model.respond.pool=first", "model.encode.stack.norm=post", "train.steps=3", "train.validate=0", "train.keep=last",
]  # fmt: skip
PAIRS = [
    ("the old house lovely", "is it lovely"),
    ("today awful", "is it lovely"),
    ("a grey train awful", "is it awful"),
]


@pytest.fixture(scope="module")
def joint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a network of three tasks for three steps."""
    root = tmp_path_factory.mktemp("tasks")
    text_files.classes(root / "good", 40)
    text_files.pairs(root / "mood", 40)
    text_files.pairs(root / "score", 40, numbers=True)
    return finish(load_recipe("mt-dnn-glue", [f"data.folder={root}", *TINY]), root / "run", device="cpu")


def compute_joint_logits(folder: Path, task: str) -> torch.Tensor:
    """Compute the outputs of all tasks for the test texts of one."""
    model = mnemic.load(folder)
    data = build(DATASETS, model.recipe["data"]).dataset("test", model.tokenizer, model.labels)
    return compute_class_logits(model.network, data.datasets[data.names.index(task)])


def test_each_task_is_its_outputs_alone(joint: Path) -> None:
    """The same class probabilities and numbers as the columns of the joint network."""
    model = mnemic.load(joint)
    assert model.tasks == ("good", "mood", "score")
    assert model.methods == ("select_task", "embed")
    for task, columns in {"good": (0, 2), "mood": (2, 4), "score": (4, 5)}.items():
        single = model.select_task(task)
        data = build(DATASETS, single.recipe["data"]).dataset("test", single.tokenizer, single.labels)
        expected = compute_joint_logits(joint, task)[:, slice(*columns)]
        torch.testing.assert_close(compute_class_logits(single.network, data), expected)
        assert single.tasks == ()
    good, score = model.select_task("good"), model.select_task("score")
    assert (good.methods, good.labels) == (("classify", "embed"), ("bad", "good"))
    assert score.methods == ("rate", "rerank", "embed")
    texts = ["a lovely house", "an awful train"]
    torch.testing.assert_close(good.embed(texts).vectors, model.embed(texts).vectors)


def test_a_task_is_predicted_from_the_command_line(joint: Path, tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps({"text_a": a, "text_b": b}) + "\n" for a, b in PAIRS), encoding="utf-8")
    model = mnemic.load(joint)
    done = run("predict", "--model", joint, "--task", "mood", file)
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in done.out.splitlines()]
    expected = model.select_task("mood").classify(PAIRS)
    assert [(row["line"], row["label"]) for row in rows] == [(n + 1, r.label) for n, r in enumerate(expected)]
    assert rows[0]["ranked"] == pytest.approx(dict(expected[0].ranked))
    rated = [json.loads(line) for line in run("predict", "--model", joint, "--task", "score", file).out.splitlines()]
    assert [row["number"] for row in rated] == pytest.approx(
        [rating.number for rating in model.select_task("score").rate(PAIRS)], rel=1e-4
    )
    single = run("predict", "--model", joint, "--task", "good", stdin="a lovely house\n")
    assert json.loads(single.out)["label"] in ("bad", "good")
    embedded = run("predict", "--model", joint, "--embed", stdin="a lovely house\n")
    assert len(json.loads(embedded.out)["vector"]) == 16


def test_a_task_is_evaluated_with_all_its_metrics(joint: Path) -> None:
    together = run("evaluate", joint, "--json").json["figures"]
    assert list(together) == ["mean", "good", "mood", "score"]
    mood = run("evaluate", joint, "--tasks", "mood", "--json").json
    assert mood["figures"]["f1"] == pytest.approx(together["mood"])
    assert {"accuracy", "matthews", "AUROC"} < mood["figures"].keys()
    assert mood["texts"] == 60
    some = run("evaluate", joint, "--tasks", "good,score", "--json").json["figures"]
    assert some == pytest.approx({"mean": (together["good"] + together["score"]) / 2,
                                  "good": together["good"], "score": together["score"]})  # fmt: skip
    folder = Path(mnemic.load(joint).recipe["data"]["folder"])
    other = f'data={{kind="pairs", folder="{folder / "score"}", labels="numbers", metric="spearman"}}'
    moved = run("evaluate", joint, "--tasks", "score", "--set", other, "--json").json["figures"]
    model = mnemic.load(joint).select_task("score")
    data = build(DATASETS, model.recipe["data"]).dataset("test", model.tokenizer)
    assert moved["spearman"] == pytest.approx(compute_metrics(model.network, data)["spearman"])


def test_a_task_is_exported_with_its_head(joint: Path, tmp_path: Path) -> None:
    """AutoModelForSequenceClassification scores the classes of the task, and no other's."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    assert run("export", joint, tmp_path / "mood", "--task", "mood").code == 0
    theirs = AutoModelForSequenceClassification.from_pretrained(tmp_path / "mood").eval()
    assert theirs.config.id2label == {0: "0", 1: "1"}
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "mood")
    encoding = tokenizer(*PAIRS[0], return_tensors="pt", return_token_type_ids=True)
    with torch.no_grad():
        probabilities = theirs(**encoding).logits.softmax(-1)[0].tolist()
    (ours,) = mnemic.load(joint).select_task("mood").classify(PAIRS[:1])
    assert [dict(ours.ranked)[label] for label in "01"] == pytest.approx(probabilities, abs=1e-5)


def test_a_task_is_a_network_to_save(joint: Path, tmp_path: Path) -> None:
    single = mnemic.load(joint).select_task("score")
    save_checkpoint(tmp_path / "checkpoint", single.checkpoint)
    again = mnemic.load(tmp_path)
    assert again.methods == single.methods
    assert [result.number for result in again.rate(PAIRS)] == [result.number for result in single.rate(PAIRS)]


def test_mistakes_are_named(joint: Path, tmp_path: Path) -> None:
    model, alone = mnemic.load(joint), tmp_path / "alone"
    alone.mkdir()
    save_checkpoint(alone / "checkpoint", model.select_task("good").checkpoint)
    with pytest.raises(ConfigError, match=r"no task 'moood'.*mood.*its tasks: good, mood, score"):
        model.select_task("moood")
    with pytest.raises(AttributeError, match=r"cannot classify.*each of them by itself can"):
        model.classify(["a"])
    for arguments, message in (
        (("predict", "--model", joint), "give --task NAME, of good, mood, score"),
        (("predict", "--model", joint, "--task", "bad"), "no task 'bad'"),
        (("evaluate", joint, "--tasks", "good,bad"), "there is no task 'bad' here; tasks: good, mood, score"),
        (("evaluate", alone, "--tasks", "good"), "this data has no tasks"),
        (("predict", "--model", alone, "--task", "good"), "this network learned one task: leave out --task"),
    ):
        done = run(*arguments, stdin="a lovely house\n")
        assert (done.code, message in done.err) == (2, True), done.err
    with pytest.raises(ConfigError, match="a name of its own"):
        build(DATASETS, {"kind": "multi-task", "folder": ".", "tasks": [{"name": "a: b", "kind": "classes"}]})
