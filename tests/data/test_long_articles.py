"""Articles that are read before anyone asks: which sentences hold answers, and who finds them."""

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import text_files
import torch
from app_runs import run

from mnemic.data.contract import LoadedData
from mnemic.data.long_context.articles import LongArticles, paragraph_tokens_of
from mnemic.data.long_context.batches import LongDataset
from mnemic.data.long_context.hide import cut_segments, draw_excerpt
from mnemic.evaluate.error_rate import compute_task_errors
from mnemic.evaluate.long_context import find_missed_facts
from mnemic.models.inputs import NOT_A_FACT, OUTSIDE_STORY
from mnemic.predict.long_text import split_into_units
from mnemic.predict.model import load
from mnemic.recipe import ConfigError, load_recipe
from mnemic.train.run import fit, load_data

FIRST = "Ada met Ben. He lived in Ives, then in Oslo! Nobody wrote to him."
SECOND = "Cara painted. She sold nothing."


def question(name: str, text: str, answer: str) -> dict[str, Any]:
    start = text.index(answer)
    return {"id": name, "question": f"{name} ?", "answers": [{"text": answer, "answer_start": start}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    asked = [question("where", FIRST, "Oslo"), question("who", FIRST, "Ben. He")]
    other = [question("what", SECOND, "nothing"), {"id": "none", "question": "why ?", "answers": []}]
    paragraphs = [{"context": FIRST, "qas": asked}, {"context": SECOND, "qas": other}]
    whole = json.dumps({"data": [{"paragraphs": paragraphs}] * 4})
    for name in ("train", "dev"):
        (tmp_path / f"{name}.json").write_text(whole, encoding="utf-8")
    return tmp_path


def source(folder: Path, **options: Any) -> LongArticles:
    words = {"kind": "wordpiece", "vocab": 200}
    options = {"length": 24, "segments": 4, "tokenizer": words, **options}
    return LongArticles(folder=str(folder), **options)


def data(folder: Path, **options: Any) -> LoadedData[LongDataset]:
    return source(folder, **options).load()


def test_an_article_is_its_sentences_and_an_answer_may_reach_over_two(folder: Path) -> None:
    (article, *_) = source(folder).read_articles("test")
    assert article.sentences[0] == "Ada met Ben."
    assert " ".join(article.sentences) == f"{FIRST} {SECOND}"
    assert article.paragraphs == (0, 0, 0, 1, 1)
    found = {own.question.question_id: sorted(own.facts) for own in article.questions}
    assert found == {"where": [1], "who": [0, 1], "what": [4], "none": []}
    for own in article.questions:
        quoted = " ".join(article.sentences[place] for place in sorted(own.facts))
        assert all(answer in quoted for answer in own.question.answers[:1])


def test_questions_share_one_story_and_those_without_an_answer_are_left_out(folder: Path) -> None:
    found = data(folder)
    assert [len(part) for part in (found.train, found.validation, found.test)] == [9, 3, 12]
    first, second = found.test.examples[:2]
    assert first.story is second.story
    batch = found.test.batch(torch.arange(3))
    assert batch.all_have_facts
    for row, own in enumerate(found.test.examples[:3]):
        facts = np.concatenate([own.story[place] for place in sorted(own.facts)])
        assert batch.inputs.tokens[row][batch.fact_mask[row]].tolist() == facts.tolist()


def test_what_no_question_is_about_is_background_and_what_another_is_about_is_not(folder: Path) -> None:
    test = data(folder).test.with_segments(9)
    batch = test.batch(torch.tensor([0]))  # where? in the second sentence
    marks = []
    for sentence in test.examples[0].story:
        here = [
            int(mark)
            for ids, facts in zip(batch.inputs.tokens[0], batch.facts[0])
            for token, mark in zip(ids.tolist(), facts)
            if token == sentence[0] and mark != OUTSIDE_STORY
        ]
        marks.append(here[0] if here else OUTSIDE_STORY)
    assert marks == [NOT_A_FACT, 0, OUTSIDE_STORY, OUTSIDE_STORY, NOT_A_FACT]


def test_paragraphs_are_known_in_training_and_in_what_is_read_later(folder: Path) -> None:
    assert paragraph_tokens_of((0, 0, 0, 1, 1), (3, 4, 5, 2, 9)) == (12, 0, 0, 11, 0)
    part = data(folder, length=26, paragraphs=True).test.with_segments(9)
    whole, room = list(part.draw_document(2).segments), 24
    text, words = f"{FIRST}\n\n{SECOND}", part.tokenizer
    read, _ = split_into_units(text, words, "sentences", room, paragraphs=True)
    assert [own.paragraph_tokens for own in read] == list(part.examples[2].paragraph_tokens)
    same = [[piece.ids.tolist() for piece in own] for own in cut_segments(read, room)]
    assert same == [[piece.ids.tolist() for piece in own] for own in whole]
    assert len(whole[0]) == 3  # the second paragraph would have begun there
    plain = list(data(folder, length=26).test.with_segments(9).draw_document(2).segments)
    assert [len(own) for own in plain] != [len(own) for own in whole]


def test_an_excerpt_holds_its_facts_and_as_much_around_them_as_there_is_room_for() -> None:
    dice, befores = Random(0), []
    story = [np.full(dice.randint(2, 9), place) for place in range(30)]
    for number in range(300):
        pieces = list(draw_excerpt(story, {14, 15}, 60, Random(number)))
        told = [piece.fact for piece in pieces]
        assert told == list(range(told[0], told[-1] + 1))
        assert {14, 15} <= set(told)
        size = sum(len(piece.ids) for piece in pieces)
        assert 60 - 9 <= size <= 60  # no sentence that stands beside it would fit
        befores.append(14 - told[0])
    assert min(befores) == 0
    assert max(befores) > 5
    assert [p.fact for p in draw_excerpt(story, {3}, 0, dice)] == [3]  # never less than the facts
    assert [p.fact for p in draw_excerpt(story, {29}, 9999, dice)] == list(range(30))


def test_training_reads_stretches_and_judging_as_much_as_is_asked_for(folder: Path) -> None:
    part = data(folder).test
    short = [len(list(part.with_segments(1).draw_document(row, row / 12).segments)) for row in range(12)]
    assert max(short) <= 2
    whole = list(part.with_segments(99).draw_document(0).segments)
    told = np.concatenate([piece.ids for own in whole for piece in own]).tolist()
    assert told == np.concatenate(part.examples[0].story).tolist()


def test_a_folder_is_needed_and_subwords_are(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.folder is missing"):
        LongArticles().load()
    with pytest.raises(ConfigError, match="articles need subwords"):
        data(folder, tokenizer={"kind": "words"})


def test_a_tiny_network_finds_the_sentence_of_a_question_that_came_after_it(tmp_path: Path) -> None:
    """Four people an article; asked for one by name, the memory is read where that one stands."""
    text_files.retrieval(tmp_path / "data", 200)
    sets = [f"data.folder={tmp_path / 'data'}", "data.length=32", "data.segments=4", "model.width=32"]
    sets += ['data.tokenizer={kind="wordpiece", vocab=400}', "model.encode.stack.depth=1"]
    sets += ["train.rate=0.004", "train.validate=0", 'train.matmul="float32"', "train.log=1000"]
    sets += ['train.schedule={kind="constant"}', "model.encode.stack.dropout=0.0"]
    recipe = load_recipe("keeps-articles", sets)
    recipe["phases"] = [{"train": {"segments": 4, "steps": 150, "batch": 32}}]
    for _ in fit(recipe, tmp_path / "run", device="cpu"):
        pass
    checkpoint = load(tmp_path / "run")
    test = load_data(recipe).test
    (error,) = compute_task_errors(checkpoint.network, test).values()
    assert error < 20  # chance: 75
    first = find_missed_facts(checkpoint.network, test, range(8))
    each = torch.cat([find_missed_facts(checkpoint.network, test, [row]) for row in range(8)])
    assert torch.equal(first, each)
    path = next((tmp_path / "data").glob("dev*.json"))
    paragraphs = json.loads(path.read_text("utf-8"))["data"][0]["paragraphs"]
    text = "\n\n".join(own["context"] for own in paragraphs)
    (tmp_path / "article.txt").write_text(text, encoding="utf-8")
    kept = tmp_path / "notes.mem"
    run("text", "read", kept, "--model", tmp_path / "run", "--device", "cpu", tmp_path / "article.txt")
    asked = [own for paragraph in paragraphs for own in paragraph["qas"] if own["answers"]]
    answers = [run("text", "ask", kept, own["question"], "--json").json for own in asked]
    right = [own["answers"][0]["text"] in found["evidence"][0]["text"] for own, found in zip(asked, answers)]
    # It says no words: the evidence is quoted from the file, and the reader points at the answer.
    assert sum(right) >= len(right) - 1 == 3
    best = answers[0]["evidence"][0]
    assert best["text"] == text[best["start"] : best["end"]]
    assert all(found["answer"] in text for found in answers)
    short = [own["answers"][0]["text"] == found["answer"] for own, found in zip(asked, answers)]
    assert sum(short) >= 3
    state = checkpoint.load_state(tmp_path / "notes.mem")
    assert checkpoint.ask(state, asked[0]["question"]).text == ""
