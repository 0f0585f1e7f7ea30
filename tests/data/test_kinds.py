"""The abilities of a kind of data are attributes of its class."""

from typing import get_args

import pytest

from mnemic.data import DATASETS
from mnemic.data.contract import Layout
from mnemic.objectives import OBJECTIVES
from mnemic.recipe import build, parameters_of, select_kinds
from mnemic.respond import RESPONSES


def test_the_kinds_by_layout() -> None:
    segment_kinds = select_kinds(DATASETS, layout="segments")
    assert set(segment_kinds) == {"long-stories", "long-recall", "long-articles", "long-documents"}
    question_kinds = {"spans", "questions", "generated-documents", "retrieval", "question-articles"}
    other_kinds = {"classes", "pairs", "multi-task", "tags", "corpus", "views", "matches"}
    assert set(select_kinds(DATASETS, layout="windows")) == other_kinds | question_kinds
    assert set(select_kinds(DATASETS, reads_segments=True)) == {
        "classes",
        "spans",
        "questions",
        "generated-documents",
        "tags",
    }
    assert DATASETS["retrieval"].response == "spans"
    assert DATASETS["dates"].response == DATASETS["seq2seq"].response == "seq2seq"
    without_response = {*segment_kinds, "babi", "generated-babi", "knowledge", "generated-knowledge"}
    assert set(select_kinds(DATASETS, response=None)) == without_response


@pytest.mark.parametrize("kind", DATASETS)
def test_a_kind_names_what_there_is(kind: str) -> None:
    source = DATASETS[kind]
    assert source.layout in get_args(Layout)
    assert source.objectives
    assert set(source.objectives) <= set(OBJECTIVES)
    assert source.response is None or source.response in RESPONSES
    needs_folder = parameters_of(source).get("folder")
    if needs_folder is not None and needs_folder.default is needs_folder.empty:
        assert source.files
        assert source.alternative
    if source.file_kind:
        assert set(source.shared_keys) <= set(parameters_of(source)) & set(parameters_of(DATASETS[source.file_kind]))


@pytest.mark.parametrize("kind", DATASETS)
def test_commands_to_go_on_with_name_the_run(kind: str) -> None:
    commands = DATASETS[kind].next_commands("runs/mine")
    assert "runs/mine" in commands[0]
    assert not any("{run}" in command for command in commands)


@pytest.mark.parametrize(
    ("spec", "metrics"),
    [
        ({"kind": "generated-babi", "tasks": [1], "count": 20}, "questions"),
        ({"kind": "generated-knowledge", "films": 9}, "questions"),
        ({"kind": "dates", "count": 20, "validation_size": 5, "test_size": 5}, "seq2seq"),
        ({"kind": "copies", "count": 20, "length": 8}, "copies"),
        ({"kind": "aligned-scenes", "count": 9, "validation_size": 2, "test_size": 2}, "alignment"),
        ({"kind": "scene-tasks", "count": 9, "validation_size": 2, "test_size": 2}, "tasks"),
        ({"kind": "long-recall", "count": 50, "tokenizer": {"kind": "wordpiece", "vocab": 200}}, "recall"),
    ],
)
def test_a_dataset_names_its_metrics(spec: dict[str, object], metrics: str) -> None:
    data = build(DATASETS, spec).load()
    assert data.train.metrics == data.validation.metrics == metrics
