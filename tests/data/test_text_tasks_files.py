"""Readers of text files: GLUE, JSON lines, SQuAD, CoNLL; and errors in files."""

import gzip
import json
import lzma
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mnemic.data.text_tasks.conll import read_conll
from mnemic.data.text_tasks.examples import LabeledExample, QuestionExample, TextError
from mnemic.data.text_tasks.files import find_file, read_bytes
from mnemic.data.text_tasks.squad import locate_answer, read_squad
from mnemic.data.text_tasks.tables import read_label_first, read_labeled

SHARED = Path(__file__).parents[3] / "shared" / "data"
real = pytest.mark.skipif(not SHARED.is_dir(), reason=f"needs the data in {SHARED}")


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


# Tables and JSON lines -------------------------------------------------------------------------


def test_a_table_by_its_header(tmp_path: Path) -> None:
    """In TSV a quotation mark is a character; a byte order mark is removed."""
    path = write(tmp_path / "a.tsv", '\ufeffQuality\t#1 ID\t#1 String\t#2 String\n1\t7\t"a\tb"\n')
    assert read_labeled(path, {}, paired=True) == [LabeledExample('"a', 'b"', "1")]
    path = write(tmp_path / "b.tsv", "label\ttext_a\r\n0\t很好\r\n")
    assert read_labeled(path, {}, paired=False) == [LabeledExample("很好", None, "0")]


def test_a_table_without_a_header_by_numbers(tmp_path: Path) -> None:
    path = write(tmp_path / "cola.tsv", "gj04\t1\t\tThe doll.\nbc01\t0\t*\tDoll the.\n")
    examples = read_labeled(path, {"text": 4, "label": 2}, paired=False)
    assert examples == [LabeledExample("The doll.", None, "1"), LabeledExample("Doll the.", None, "0")]


def test_comma_separated_values(tmp_path: Path) -> None:
    """In CSV a quotation mark quotes: texts may contain commas and newlines."""
    path = write(tmp_path / "a.csv", 'text,label\n"a ""b"", c\nd",1\n\ne,0\n')
    assert read_labeled(path, {}, paired=False) == [
        LabeledExample('a "b", c\nd', None, "1"),
        LabeledExample("e", None, "0"),
    ]
    path = write(tmp_path / "b.csv", "1,x,y\n")
    examples = read_labeled(path, {"text": 2, "pair": 3, "label": 1}, paired=True)
    assert examples == [LabeledExample("x", "y", "1")]


def test_one_text_of_two_can_be_read_by_its_name(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "sentence1\tsentence2\tlabel\nx\ty\t1\n")
    assert read_labeled(path, {"text": "sentence2"}, paired=False) == [LabeledExample("y", None, "1")]


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_json_lines_plain_and_packed(tmp_path: Path, suffix: str) -> None:
    rows = [{"text": "gut \u2028 so", "label": 1}, {"text": "", "label": 2.0}]
    raw = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()
    pack: Any = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[suffix]
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(pack(raw))
    assert read_labeled(path, {}, paired=False) == [
        LabeledExample("gut \u2028 so", None, "1"),
        LabeledExample("", None, "2"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "columns", "message"),
    [
        ("a.tsv", "sentence\tlabel\nx\t1\ny\n", {}, r"a\.tsv, line 3: 1 columns, but .* has 2"),
        ("a.tsv", "sentence\tlable\nx\t1\n", {}, r"line 2: no column for the label .*Name it with"),
        ("a.tsv", "sentence\tlabel\n", {}, "holds no examples"),
        ("a.tsv", "x\t1\ny\n", {"text": 1, "label": 2}, "line 2: no column 2; it has 1"),
        ("a.tsv", "x\t1\n", {"text": 1}, "numbers for all of text, label"),
        ("a.tsv", "x\t1\n", {"txt": 1}, "data.columns takes text, label, not 'txt'"),
        ("a.jsonl", '{"text": "x", "label": 1}\n{"text"\n', {}, r"line 2: no valid JSON"),
        ("a.jsonl", "[1]\n", {}, r'line 1: expected an object, {"text": …}, not \[1\]'),
        ("a.jsonl", '{"text": "x", "label": 1}\n{"text": "y"}\n', {}, "line 2: no column 'label'"),
        ("a.jsonl", '{"text": null, "label": 1}\n', {}, "line 1: no column for the text"),
        ("a.tsv", "sentence1\tsentence2\tlabel\nx\ty\t1\n", {}, "two texts, .* recipe bert-pairs"),
        ("a.jsonl", '{"text_a": "x", "text_b": "y", "label": 1}\n', {}, "text_a and text_b; train"),
        (
            "a.jsonl",
            '{"text": "x", "label": 1}\n{"text": "y", "label": "1"}\n',
            {},
            'line 2: the label "1" is a text, but 1 in line 1 is a number; write all labels in one',
        ),
        ("a.tsv", "sentence\tlabel\nx\t1\ny\t\n", {}, 'line 3: the label is missing, ""'),
        ("a.jsonl", '{"text": "x", "label": NaN}\n', {}, "line 1: the label is missing, NaN"),
        ("a.jsonl", '{"text": "a \\ud800", "label": 1}\n', {}, "line 1: 'text' is no unicode text"),
        ("a.csv", 'text,label\n"x,1\n', {}, r"a\.csv, line 2: no valid CSV"),
        ("a.csv", "text,label\nx\n", {}, "line 2: 1 columns, but the header has 2"),
    ],
)
def test_a_bad_table_is_named_with_its_line(
    tmp_path: Path, name: str, content: str, columns: dict[str, Any], message: str
) -> None:
    with pytest.raises(TextError, match=message):
        read_labeled(write(tmp_path / name, content), columns, paired=False)


def test_lines_that_begin_with_their_label(tmp_path: Path) -> None:
    path = write(tmp_path / "stsa.fine.train", "4 a gorgeous , witty movie .\r\n\n0 dull\n")
    expected = [LabeledExample("a gorgeous , witty movie .", None, "4"), LabeledExample("dull", None, "0")]
    assert read_label_first(path) == expected
    with pytest.raises(TextError, match=r"if each line is a label, a blank and a text, set data\.label_first=true"):
        read_labeled(path, {}, paired=False)
    with pytest.raises(TextError, match=r"train, line 2: 'lovely'; expected a label, a blank and a text"):
        read_label_first(write(path, "1 good\nlovely\n"))
    with pytest.raises(TextError, match="holds no examples"):
        read_label_first(write(path, "\n"))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"sentence\tlabel\nok\t1\n\xff\xfe\t0\n")
    with pytest.raises(TextError, match=r"a\.tsv, line 3: not utf-8"):
        read_labeled(tmp_path / "a.tsv", {}, paired=False)
    (tmp_path / "a.jsonl.gz").write_bytes(b"no gzip at all")
    with pytest.raises(TextError, match=r"a\.jsonl\.gz cannot be unpacked after line 0"):
        read_labeled(tmp_path / "a.jsonl.gz", {}, paired=False)
    compressed = gzip.compress(b'{"text": "x", "label": 1}\n' * 9000)
    (tmp_path / "a.jsonl.gz").write_bytes(compressed[:40] + b"\xff" * 30 + compressed[70:])
    with pytest.raises(TextError, match="cannot be unpacked"):
        read_labeled(tmp_path / "a.jsonl.gz", {}, paired=False)
    with pytest.raises(TextError, match="cannot be unpacked"):
        read_bytes(tmp_path / "a.jsonl.gz")
    (tmp_path / "a.jsonl.gz").write_bytes(compressed[: len(compressed) // 2])
    with pytest.raises(TextError, match="cannot be unpacked"):
        read_labeled(tmp_path / "a.jsonl.gz", {}, paired=False)


def test_files_are_found_by_how_they_begin(tmp_path: Path) -> None:
    for name in ("train.tsv", "dev.jsonl.gz", "dev-small.tsv"):
        write(tmp_path / name, "")
    assert find_file(str(tmp_path), "train").name == "train.tsv"
    assert find_file(str(tmp_path), "dev.jsonl.gz").name == "dev.jsonl.gz"
    with pytest.raises(TextError, match=r"more than one file .* \(there: dev-small.tsv, dev.jsonl"):
        find_file(str(tmp_path), "dev")
    with pytest.raises(TextError, match=r"no file named 'test' .* --split validation needs none.*\.test_file=dev"):
        find_file(str(tmp_path), "test")
    with pytest.raises(TextError, match="no folder"):
        find_file(str(tmp_path / "nowhere"), "test")


# SQuAD -----------------------------------------------------------------------------------------


def squad(folder: Path, *questions: dict[str, Any], text: str = "Rome is in Italy, not Rome.") -> Path:
    content = {"data": [{"paragraphs": [{"context": text, "qas": list(questions)}]}]}
    return write(folder / "train.json", json.dumps(content))


def test_questions_with_and_without_answers(tmp_path: Path) -> None:
    answered = {"id": "1", "question": "Where?", "answers": [{"text": "Italy", "answer_start": 11}]}
    unanswerable = {"id": "2", "question": "Who?", "answers": [], "is_impossible": True}
    odd = answered | {"id": "3", "is_impossible": True}
    examples = read_squad(squad(tmp_path, answered, unanswerable, odd))
    text = "Rome is in Italy, not Rome."
    assert examples[0] == QuestionExample("Where?", text, ("Italy",), 11, "1")
    assert [example.answers for example in examples[1:]] == [(), ()]
    assert [example.start for example in examples[1:]] == [-1, -1]


def test_an_answer_that_is_off_by_a_little_is_found(tmp_path: Path) -> None:
    assert locate_answer("Rome is not Rome", "Rome", 10) == 12
    assert locate_answer("Rome is not Rome", "Rome", 3) == 0
    assert locate_answer("Rome is not Rome", "Oslo", 3) == -1
    assert locate_answer("Rome", "Rome", -4) == 0
    question = {"id": "7", "question": "?", "answers": [{"text": "Oslo", "answer_start": 0}]}
    with pytest.raises(TextError, match=r"train\.json, question 7: the answer 'Oslo' is not in"):
        read_squad(squad(tmp_path, question))


def test_a_file_that_is_not_squad(tmp_path: Path) -> None:
    with pytest.raises(TextError, match=r"line 2: no valid JSON"):
        read_squad(write(tmp_path / "a.json", '{"data":\n]'))
    with pytest.raises(TextError, match="not in SQuAD's form"):
        read_squad(write(tmp_path / "a.json", "[]"))
    with pytest.raises(TextError, match=r"article 1: KeyError 'context'; expected paragraphs"):
        read_squad(write(tmp_path / "a.json", '{"data": [{"paragraphs": [{"qas": []}]}]}'))
    with pytest.raises(TextError, match="holds no questions"):
        read_squad(write(tmp_path / "a.json", '{"data": []}'))


# CoNLL -----------------------------------------------------------------------------------------


def test_sentences_of_words_and_tags(tmp_path: Path) -> None:
    """Columns are separated by tabs or spaces; the last one is the tag."""
    path = write(tmp_path / "a.conll", "-DOCSTART- O\n\nNew NNP B-x\nYork\tI-x\n\n\n#\tO")
    first, second = read_conll(path)
    assert first.text == "New York"
    assert [first.text[a:b] for a, b in first.word_spans] == ["New", "York"]
    assert first.tags == ("B-x", "I-x")
    assert second.text == "#"


def test_numbered_words_lose_their_digit(tmp_path: Path) -> None:
    path = write(tmp_path / "a", "科0\tO\n5\tO\n30\tO\n")
    assert read_conll(path, strip_digits=True)[0].text == "科 5 3"
    assert read_conll(path)[0].text == "科0 5 30"


@pytest.mark.parametrize("line", ["word", "word\t", "word\tX-y", "word\tB"])
def test_a_bad_tag_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(TextError, match=r"a\.conll, line 2: .*expected a word"):
        read_conll(write(tmp_path / "a.conll", f"ok\tO\n{line}\n"))


# The real files --------------------------------------------------------------------------------


@real
@pytest.mark.parametrize(
    ("task", "paired", "columns", "counts"),
    [
        ("SST-2", False, {}, (67349, 872)),
        ("CoLA", False, {"text": 4, "label": 2}, (8551, 1043)),
        ("MRPC", True, {}, (3667, 408)),
        ("RTE", True, {}, (2490, 277)),
        ("STS-B", True, {}, (5749, 1500)),
    ],
)
def test_glue(task: str, paired: bool, columns: dict[str, Any], counts: tuple[int, int]) -> None:
    """The counts are those of GLUE's page."""
    folder = SHARED / "glue" / task
    splits = [read_labeled(folder / f"{p}.tsv", columns, paired=paired) for p in ("train", "dev")]
    assert tuple(map(len, splits)) == counts
    labels = {example.label for examples in splits for example in examples}
    assert all(0 <= float(label) <= 5 for label in labels) if task == "STS-B" else len(labels) == 2


@real
def test_other_real_files() -> None:
    chinese = read_labeled(SHARED / "zh/chnsenticorp/test.tsv", {}, paired=False)
    assert Counter(example.label for example in chinese) == {"0": 592, "1": 608}
    assert len(read_labeled(SHARED / "imdb/test.jsonl.gz", {}, paired=False)) == 25000
    grades = Counter(example.label for example in read_label_first(SHARED / "sentences/stsa.fine.dev"))
    assert (sum(grades.values()), sorted(grades)) == (1101, ["0", "1", "2", "3", "4"])
    dev = read_squad(SHARED / "squad/dev-v1.1.json.gz")
    assert len(dev) == 10570
    assert all(example.text.startswith(example.answers[0], example.start) for example in dev)
    assert len(read_squad(SHARED / "zh/cmrc2018/cmrc2018_dev.json")) == 3219
    assert len(read_conll(SHARED / "wnut17/wnut17train.conll")) == 3394
    weibo = read_conll(SHARED / "zh/weibo_ner/weiboNER_2nd_conll.test", strip_digits=True)
    assert len(weibo) == 270
    assert {len(word) for word in weibo[0].text.split()} == {1}
