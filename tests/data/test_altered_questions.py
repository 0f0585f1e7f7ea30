"""Questions that a text nearly answers: what is learned, and what is made of it."""

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from mnemic.data.text_tasks.altered_questions import (
    Replacements,
    alter_question,
    alter_questions,
    find_edit,
    find_names,
    learn_replacements,
    split_words,
)
from mnemic.data.text_tasks.examples import QuestionExample
from mnemic.data.text_tasks.questions import QuestionFiles
from mnemic.recipe import ConfigError

TEXT = "In 1903 the engineer Ada moved from Paris to Rome, and in 1911 Bruno built the largest bridge there."


def example(question: str, answer: str = "", number: int = 0, text: str = TEXT) -> QuestionExample:
    start = text.find(answer) if answer else -1
    return QuestionExample(question, text, (answer,) if answer else (), start, str(number))


def learn_from_pairs(pairs: list[tuple[str, str]], times: int = 3) -> Replacements:
    rows = []
    for number in range(times):
        for place, (old, new) in enumerate(pairs):
            text = f"{TEXT} {number} {place}"
            rows += [
                example(old, "Ada", text=text),
                example(new, text=text),
                example("who was there", "Ada", text=text),
            ]
    return learn_replacements(rows)


def test_an_edit_is_what_makes_one_question_of_the_other() -> None:
    generator = Random(0)
    alphabet = ["a", "b", "c"]
    for _ in range(3000):
        old = generator.choices(alphabet, k=generator.randint(1, 5))
        new = generator.choices(alphabet, k=generator.randint(1, 5))
        edit = find_edit(old, new)
        if edit is None:
            continue
        first, second = map(list, edit)
        spots = [n for n in range(len(old)) if old[n : n + len(first)] == first]
        assert any(old[:n] + second + old[n + len(first) :] == new for n in spots)
        assert 1 <= len(first) <= 2
        assert 1 <= len(second) <= 2
        assert first != second
    assert find_edit(["a"], ["a"]) is None
    assert find_edit(["a", "b", "c", "d"], ["d", "c", "b", "a"]) is None


def test_replacements_are_learned_with_their_rates() -> None:
    pairs = [
        ("what is the largest bridge", "what is the smallest bridge"),
        ("who built the largest bridge", "who built the smallest bridge"),
        ("when did she move", "when didn't she move"),
        ("where is it", "where is it now then"),  # only stop words
    ]
    learned = learn_from_pairs(pairs).by_words
    assert learned == {("largest",): [(("smallest",), 1.0)], ("did",): [(("didn't",), 1.0)]}
    assert not learn_from_pairs(pairs, times=1).by_words.get(("did",))  # made once only
    rare = learn_replacements(
        [row for n in range(4) for row in (example("who did it", "Ada", text=str(n)),)]
        + [example("who didn't it", text=str(n)) for n in range(3)]
    )
    assert rare.by_words == {("did",): [(("didn't",), 0.75)]}


def test_an_altered_question_has_one_change_of_each_kind() -> None:
    learned = learn_from_pairs([("the largest bridge", "the smallest bridge"), ("who did it", "who didn't it")])
    question = example("Where did Ada see the largest bridge in 1903?", "Rome")
    names = [*find_names(TEXT), "1850", "12"]
    made = Counter(alter_question(question, learned, names, Random(seed)) for seed in range(600))
    words = Counter("word" for text in made.elements() if text == "Where did Ada see the smallest bridge in 1903?")
    assert abs(words["word"] - 0.45 * 600) < 60
    assert made["Where didn't Ada see the largest bridge in 1903?"] > 60
    years = {text for text in made if text and "Ada see the largest bridge in" in text and "did " in text}
    assert years == {f"Where did Ada see the largest bridge in {year}?" for year in (1911, 1850)}
    people = {text.split()[2] for text in made if text and text.endswith("see the largest bridge in 1903?")}
    assert people >= {"Paris", "Rome", "Bruno"}
    assert "12" not in people
    assert alter_question(example("why?", "Rome"), learned, names, Random(1)) is None


def test_altered_copies_have_no_answer_and_do_not_depend_on_the_others() -> None:
    learned = learn_from_pairs([("who did it", "who didn't it")])
    rows = [example("where did Ada go?", "Rome", n) for n in range(300)] + [example("where did Bo go?", number=999)]
    altered = alter_questions(rows, learned, 0.5, 0)
    assert 50 < len(altered) < 150
    assert all(not row.answers and row.start == -1 and row.question_id.endswith("-altered") for row in altered)
    assert {row.question for row in altered} & {row.question for row in rows} == set()
    assert altered == alter_questions(rows[:150], learned, 0.5, 0) + alter_questions(rows[150:], learned, 0.5, 0)
    assert "999-altered" not in {row.question_id for row in altered}
    assert alter_questions(rows, learned, 0.0, 0) == []


def test_only_standalone_training_questions_are_altered(tmp_path: Path) -> None:
    def line(number: int, question: str, answer: str, title: str) -> str:
        answers = [{"text": answer, "answer_start": TEXT.index(answer)}] if answer else []
        row = {"id": f"{title}-{number}-{bool(answer)}", "title": title, "question": question, "context": TEXT + title}
        return json.dumps(row | {"answers": answers, "is_impossible": not answer})

    for name in ("plain", "chat"):
        rows = [
            line(
                n,
                f"where did Ada go {m} times?" if m else "where didn't Ada go 0 times?",
                "Rome" if m else "",
                f"{name}{n}",
            )
            for n in range(40)
            for m in (0, 1)
        ]
        rows = [row.replace("go 0 times", "go 1 times") for row in rows]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    sources = [{"path": "plain.jsonl"}, {"path": "chat.jsonl", "standalone": False}]

    def read(**augment: float) -> QuestionFiles:
        return QuestionFiles(folder=str(tmp_path), sources=sources, validation=0.2, augment=augment)

    files = read(altered=0.9).articles_by_split
    altered = [e for article in files["train"] for e in article.examples if e.question_id.endswith("-altered")]
    assert altered
    assert all(example.title.startswith("plain") for example in altered)
    assert files["validation"] == read().articles_by_split["validation"]
    plain = [e for article in read().articles_by_split["train"] for e in article.examples]
    assert [e for a in files["train"] for e in a.examples if e not in altered] == plain
    with pytest.raises(ConfigError, match=r"augment\.altered"):
        _ = read(altered=1.5).articles_by_split


def test_words_of_a_question() -> None:
    assert split_words("Who didn't see the U.S. in 10,000 days?") == [
        "who",
        "didn't",
        "see",
        "the",
        "u.s",
        "in",
        "10,000",
        "days",
    ]
    assert find_names("The bridge of Ada, built in 1903. It cost 10,500 dollars.") == ["Ada", "1903", "10,500"]
