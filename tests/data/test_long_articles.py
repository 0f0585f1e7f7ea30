"""Articles that are read before their questions: facts, segments and training."""

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
    first_questions = [question("where", FIRST, "Oslo"), question("who", FIRST, "Ben. He")]
    second_questions = [question("what", SECOND, "nothing"), {"id": "none", "question": "why ?", "answers": []}]
    paragraphs = [{"context": FIRST, "qas": first_questions}, {"context": SECOND, "qas": second_questions}]
    content = json.dumps({"data": [{"paragraphs": paragraphs}] * 4})
    for name in ("train", "dev"):
        (tmp_path / f"{name}.json").write_text(content, encoding="utf-8")
    return tmp_path


def source(folder: Path, **options: Any) -> LongArticles:
    tokenizer = {"kind": "wordpiece", "vocab": 200}
    options = {"length": 24, "segments": 4, "tokenizer": tokenizer, **options}
    return LongArticles(folder=str(folder), **options)


def data(folder: Path, **options: Any) -> LoadedData[LongDataset]:
    return source(folder, **options).load()


def test_an_article_is_its_sentences_and_an_answer_may_reach_over_two(folder: Path) -> None:
    (article, *_) = source(folder).read_articles("test")
    assert article.sentences[0] == "Ada met Ben."
    assert " ".join(article.sentences) == f"{FIRST} {SECOND}"
    assert article.paragraphs == (0, 0, 0, 1, 1)
    facts = {question.question.question_id: sorted(question.facts) for question in article.questions}
    assert facts == {"where": [1], "who": [0, 1], "what": [4], "none": []}
    for question in article.questions:
        fact_text = " ".join(article.sentences[number] for number in sorted(question.facts))
        assert all(answer in fact_text for answer in question.question.answers[:1])


def test_questions_share_one_story_and_those_without_an_answer_are_left_out(folder: Path) -> None:
    articles = data(folder)
    assert [len(split) for split in (articles.train, articles.validation, articles.test)] == [9, 3, 12]
    first, second = articles.test.examples[:2]
    assert first.story is second.story
    batch = articles.test.batch(torch.arange(3))
    assert batch.all_have_facts
    for row, example in enumerate(articles.test.examples[:3]):
        facts = np.concatenate([example.story[number] for number in sorted(example.facts)])
        assert batch.inputs.tokens[row][batch.fact_mask[row]].tolist() == facts.tolist()


def test_what_no_question_is_about_is_background_and_what_another_is_about_is_not(folder: Path) -> None:
    test = data(folder).test.with_segments(9)
    batch = test.batch(torch.tensor([0]))  # where? in the second sentence
    marks = []
    for sentence in test.examples[0].story:
        sentence_marks = [
            int(mark)
            for ids, facts in zip(batch.inputs.tokens[0], batch.facts[0])
            for token, mark in zip(ids.tolist(), facts)
            if token == sentence[0] and mark != OUTSIDE_STORY
        ]
        marks.append(sentence_marks[0] if sentence_marks else OUTSIDE_STORY)
    assert marks == [NOT_A_FACT, 0, OUTSIDE_STORY, OUTSIDE_STORY, NOT_A_FACT]


def test_paragraphs_are_known_in_training_and_in_what_is_read_later(folder: Path) -> None:
    assert paragraph_tokens_of((0, 0, 0, 1, 1), (3, 4, 5, 2, 9)) == (12, 0, 0, 11, 0)
    test = data(folder, length=26, paragraphs=True).test.with_segments(9)
    segments, max_tokens = list(test.draw_document(2).segments), 24
    text, tokenizer = f"{FIRST}\n\n{SECOND}", test.tokenizer
    sentences, _ = split_into_units(text, tokenizer, "sentences", max_tokens, paragraphs=True)
    assert [sentence.paragraph_tokens for sentence in sentences] == list(test.examples[2].paragraph_tokens)
    ids = [[sentence.ids.tolist() for sentence in segment] for segment in cut_segments(sentences, max_tokens)]
    assert ids == [[sentence.ids.tolist() for sentence in segment] for segment in segments]
    assert len(segments[0]) == 3  # the second paragraph would have begun there
    without_paragraphs = list(data(folder, length=26).test.with_segments(9).draw_document(2).segments)
    assert [len(segment) for segment in without_paragraphs] != [len(segment) for segment in segments]


def test_an_excerpt_holds_its_facts_and_as_much_around_them_as_there_is_room_for() -> None:
    rng, num_before = Random(0), []
    story = [np.full(rng.randint(2, 9), number) for number in range(30)]
    for number in range(300):
        excerpt = list(draw_excerpt(story, {14, 15}, 60, Random(number)))
        numbers = [sentence.fact for sentence in excerpt]
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        assert {14, 15} <= set(numbers)
        size = sum(len(sentence.ids) for sentence in excerpt)
        assert 60 - 9 <= size <= 60  # no neighboring sentence would fit
        num_before.append(14 - numbers[0])
    assert min(num_before) == 0
    assert max(num_before) > 5
    assert [sentence.fact for sentence in draw_excerpt(story, {3}, 0, rng)] == [3]  # never less than the facts
    assert [sentence.fact for sentence in draw_excerpt(story, {29}, 9999, rng)] == list(range(30))


def test_training_reads_stretches_and_judging_as_much_as_is_asked_for(folder: Path) -> None:
    test = data(folder).test
    short = [len(list(test.with_segments(1).draw_document(row, row / 12).segments)) for row in range(12)]
    assert max(short) <= 2
    segments = list(test.with_segments(99).draw_document(0).segments)
    ids = np.concatenate([piece.ids for segment in segments for piece in segment]).tolist()
    assert ids == np.concatenate(test.examples[0].story).tolist()


def test_a_folder_is_needed_and_subwords_are(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.folder is missing"):
        LongArticles().load()
    with pytest.raises(ConfigError, match="articles need subwords"):
        data(folder, tokenizer={"kind": "words"})


def test_a_tiny_network_finds_the_sentence_of_a_question_that_came_after_it(tmp_path: Path) -> None:
    """Of four people in an article, the memory retrieves the one in question."""
    text_files.retrieval(tmp_path / "data", 200)
    sets = [f"data.folder={tmp_path / 'data'}", "data.length=32", "data.segments=4", "model.width=32"]
    sets += ['data.tokenizer={kind="wordpiece", vocab=400}', "model.encode.stack.depth=1"]
    sets += ["train.rate=0.004", "train.validate=0", 'train.matmul="float32"', "train.log=1000"]
    sets += ['train.schedule={kind="constant"}', "model.encode.stack.dropout=0.0"]
    recipe = load_recipe("bert-mass-articles", sets)
    recipe["phases"] = [{"train": {"segments": 4, "steps": 150, "batch": 32}}]
    for _ in fit(recipe, tmp_path / "run", device="cpu"):
        pass
    checkpoint = load(tmp_path / "run")
    test = load_data(recipe).test
    (error,) = compute_task_errors(checkpoint.network, test).values()
    assert error < 20  # chance: 75
    together = find_missed_facts(checkpoint.network, test, range(8))
    one_by_one = torch.cat([find_missed_facts(checkpoint.network, test, [row]) for row in range(8)])
    assert torch.equal(together, one_by_one)
    path = next((tmp_path / "data").glob("dev*.json"))
    paragraphs = json.loads(path.read_text("utf-8"))["data"][0]["paragraphs"]
    text = "\n\n".join(paragraph["context"] for paragraph in paragraphs)
    (tmp_path / "article.txt").write_text(text, encoding="utf-8")
    memory_path = tmp_path / "notes.mem"
    run("text", "read", memory_path, "--model", tmp_path / "run", "--device", "cpu", tmp_path / "article.txt")
    questions = [question for paragraph in paragraphs for question in paragraph["qas"] if question["answers"]]
    answers = [run("text", "ask", memory_path, question["question"], "--json").json for question in questions]
    has_evidence = [
        question["answers"][0]["text"] in answer["evidence"][0]["text"] for question, answer in zip(questions, answers)
    ]
    # It generates no words: evidence is quoted from the file, and the reader extracts the answer.
    assert sum(has_evidence) >= len(has_evidence) - 1 == 3
    best = answers[0]["evidence"][0]
    assert best["text"] == text[best["start"] : best["end"]]
    assert all(answer["answer"] in text for answer in answers)
    is_right = [question["answers"][0]["text"] in answer["answer"] for question, answer in zip(questions, answers)]
    assert sum(is_right) >= 3
    state = checkpoint.load_state(tmp_path / "notes.mem")
    assert checkpoint.ask(state, questions[0]["question"]).text == ""
