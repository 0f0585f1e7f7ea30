"""Texts answered with texts, from files: translations, questions to generate, classes as text."""

import gzip
from pathlib import Path

import pytest
import torch
from seq2seq_files import WORDS, write_parallel, write_questions

from mnemic.data.seq2seq.classes_as_text import ClassesAsText
from mnemic.data.seq2seq.parallel import ParallelFiles
from mnemic.data.seq2seq.question_generation import (
    AnswerInPassage,
    QuestionGenerationFiles,
    cut_around_answer,
    write_source,
)
from mnemic.data.text_tasks.examples import TextError
from mnemic.text import TOKENIZERS

BYTES = {"kind": "byte-bpe", "vocab": 300}


def decode(data, dataset, row: int) -> tuple[str, str]:
    batch = dataset.batch(torch.tensor([row]))
    return data.tokenizer.decode(batch.inputs.tokens[0].tolist()), data.tokenizer.decode(
        batch.targets[0][batch.targets[0] >= 0].tolist()
    )


def test_lines_are_paired_with_their_translations(tmp_path: Path) -> None:
    source = ParallelFiles(folder=str(write_parallel(tmp_path)), tokenizer=BYTES)
    data = source.load()
    assert (len(data.train), len(data.validation)) == (60, 12)
    for row in range(12):
        text, translation = decode(data, data.validation, row)
        assert [WORDS[word] for word in text.split()] == translation.split()
    assert len(source.dataset("test", data.tokenizer)) == 12
    backwards = ParallelFiles(folder=str(tmp_path), source="de", target="en", tokenizer=BYTES).load()
    assert decode(backwards, backwards.train, 3) == decode(data, data.train, 3)[::-1]
    assert data.train.scores == ("bleu", "chrf")
    # One tokenizer spells both languages in whole words.
    large = ParallelFiles(folder=str(tmp_path), tokenizer=BYTES | {"vocab": 340}).load().tokenizer
    assert len(large.encode(" cat", special=False).ids) == len(large.encode(" Katze", special=False).ids) == 1


def test_wrong_parallel_files_are_refused(tmp_path: Path) -> None:
    folder = write_parallel(tmp_path)
    for options, message in (
        ({"target": "fr"}, r"no file named 'train' … \.fr"),
        ({"train_file": "t"}, "more than one file named 't'"),
    ):
        with pytest.raises(TextError, match=message):
            ParallelFiles(folder=str(folder), tokenizer=BYTES, **options).load()
    with gzip.open(folder / "train.de.gz", "at") as file:
        file.write("zu viel\n")
    with pytest.raises(TextError, match=r"train\.en\.gz has 60 lines and .*train\.de\.gz has 61"):
        ParallelFiles(folder=str(folder), tokenizer=BYTES).load()
    with pytest.raises(TextError, match="no folder"):
        ParallelFiles(folder=str(folder / "none")).load()


def test_questions_are_turned_round(tmp_path: Path) -> None:
    source = QuestionGenerationFiles(folder=str(write_questions(tmp_path)), tokenizer=BYTES)
    data = source.load()
    assert len(data.train) + len(data.validation) == 60  # those without an answer are left out
    assert len(source.dataset("test", data.tokenizer)) == 16
    for row in range(6):
        text, question = decode(data, data.train, row)
        answer = text.removeprefix("answer: ").partition(" context: ")[0]
        city, person = text.partition(" lives in ")[2].partition(".")[0], text.partition(" lives")[0].split()[-1]
        expected = {person: f"Who lives in {city}?", city: f"Where does {person} live?"}
        assert question == expected[answer]
    passages = [{example.text.partition(" context: ")[2] for example in split.examples}
                for split in (data.train, data.validation)]  # fmt: skip
    assert all(len(examples) for examples in passages)


def test_of_a_long_passage_the_part_around_the_answer_is_read(tmp_path: Path) -> None:
    """It fits, holds the answer, is a stretch of the passage, and as long as it can be."""
    folder = write_questions(tmp_path, filler=40)
    data = QuestionGenerationFiles(folder=str(folder), tokenizer=BYTES | {"vocab": 320}, length=64).load()
    assert int(data.train.source.lengths.max()) <= 64
    assert int(data.train.source.lengths.min()) > 50
    tokenizer = data.tokenizer
    passage = " ".join(f"word{number}" for number in range(200))
    for number in (0, 1, 60, 199):
        case = AnswerInPassage(passage, f"word{number}", passage.index(f"word{number}"))
        piece = cut_around_answer(case, tokenizer, 64)
        assert piece.passage in passage
        assert piece.passage[piece.start :].startswith(piece.answer)
        assert 50 < len(tokenizer.encode(write_source(piece)).ids) <= 64
    with pytest.raises(TextError, match=r"more than data\.length = 12 tokens"):
        cut_around_answer(case, tokenizer, 12)


def test_classes_are_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("sentence\tlabel\n" + "good\t1\nbad\t0\n" * 10)
    source = ClassesAsText(folder=str(tmp_path), task="sst2", names={"0": "negative", "1": "positive"}, test_file="")
    assert source.read_split("train")[:1][0].text.startswith("sst2 sentence: ")
    assert {(row.text.split()[-1], row.label) for row in source.read_split("train")} == {
        ("good", "positive"),
        ("bad", "negative"),
    }
    (tmp_path / "pairs.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t3.14\nc\td\t0\n")
    numbers = ClassesAsText(
        folder=str(tmp_path), task="stsb", pairs=True, numbers=True, train_file="pairs", validation=0.0
    )
    texts = [(row.text, row.label) for row in numbers.read_split("train")]
    assert texts == [("stsb sentence1: a sentence2: b", "3.2"), ("stsb sentence1: c sentence2: d", "0.0")]
    assert numbers.list_scores() == ("numbers",)
    with pytest.raises(TextError, match="the label 'positive' is no number"):
        numbers.name_label("positive")


def test_sentinels_are_of_the_vocabulary() -> None:
    for kind in ("byte-bpe", "wordpiece", "unigram", "bpe"):
        text = "the old train ran past a small grey house " * 3
        tokenizer = TOKENIZERS[kind]([text], vocab=320, sentinels=5)
        assert len(tokenizer) <= 320
        assert tokenizer.sentinels == sorted(tokenizer.sentinels)
        assert len(tokenizer.sentinels) == 5
        assert set(tokenizer.sentinels) <= tokenizer.special_ids
        assert not set(tokenizer.encode("<extra_id_0>", special=False).ids) & set(tokenizer.sentinels)
        assert TOKENIZERS[kind]([text], vocab=320).sentinels == []
