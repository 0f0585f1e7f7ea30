"""Sentences of a text: where they are cut, and their vectors."""

import re
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
import text_files
import torch

from mnemic.data.text_tasks.encode_windows import encode_labeled
from mnemic.data.text_tasks.examples import LabeledExample
from mnemic.data.text_tasks.retrieval import ArticleFiles
from mnemic.predict import windows as windows_module
from mnemic.predict.windows import compute_text_and_sentence_vectors, compute_text_vectors
from mnemic.recipe import load_recipe
from mnemic.text import WindowOptions
from mnemic.text.sentence_spans import MIN_TOKENS, count_sentence_tokens
from mnemic.text.windows import make_text_windows
from mnemic.train.initialize import build_network

TOKEN = re.compile("[\u4e00-\u9fff]|\\w+|[^\\w\\s]")


def split_text(text: str) -> list[str]:
    """Split a text into its sentences."""
    offsets = [match.span() for match in TOKEN.finditer(text)]
    edges = [0, *accumulate(count_sentence_tokens(text, offsets))]
    assert edges[-1] == len(offsets)
    return [text[offsets[a][0] : offsets[b - 1][1]] for a, b in pairwise(edges) if b > a]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "It was late in the year. Nobody knew it but him! “Why is it so?” she asked again.",
            ["It was late in the year.", "Nobody knew it but him!", "“Why is it so?” she asked again."],
        ),
        ("He met Mr. Smith of St. Ives in the rain.", ["He met Mr. Smith of St.", "Ives in the rain."]),
        ("The cost was 3.14 in all. but it went on and on", None),
        (
            "one line of five words\nand then another line of it\nend",
            ["one line of five words", "and then another line of it\nend"],
        ),
        ("他来得很晚。没有人知道这件事。", ["他来得很晚。", "没有人知道这件事。"]),
        ("", []),
        ("...", None),
    ],
)
def test_a_key_is_about_a_sentence(text: str, sentences: list[str] | None) -> None:
    assert split_text(text) == ([text] if sentences is None else sentences)


def test_no_key_is_short_but_that_of_a_short_text() -> None:
    text = "A. B. C. D. E. F. G. H. " * 10
    offsets = [match.span() for match in TOKEN.finditer(text)]
    lengths = count_sentence_tokens(text, offsets)
    assert len(lengths) > 5
    assert min(lengths) >= MIN_TOKENS
    assert count_sentence_tokens("", []) == [0]


def test_vectors_of_keys_are_means_of_their_own_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare with texts encoded one by one; tokens in two windows count twice."""
    monkeypatch.setattr(windows_module, "TOKENS_PER_BATCH", 1)  # windows of a text are in different batches
    text_files.retrieval(tmp_path, 40, lines=3)
    tokenizer = {"kind": "wordpiece", "vocab": 400}
    files = ArticleFiles(folder=str(tmp_path), tokenizer=tokenizer, length=24, overlap=6)
    data = files.load()
    sets = ("model.width=32", "model.encode.stack.depth=2")
    heads = 'model.encode.stack.attention={kind="full", heads=4}'
    network = build_network(load_recipe("reader", [heads, *sets])["model"], data.sizes, 0).eval()
    texts = list(dict.fromkeys(passage.text for article in files.read_split("test") for passage in article))
    texts += ["", "word"]
    options = WindowOptions(24, 6)
    dataset = encode_labeled([LabeledExample(text, None, "") for text in texts], data.tokenizer, options, labels=())
    sentence_vectors = compute_text_and_sentence_vectors(network, dataset)[1]
    num_long_texts = 0
    for text, vectors in zip(texts, sentence_vectors, strict=True):
        windowed = make_text_windows(data.tokenizer, text, options)
        num_long_texts += len(windowed.windows) > 1
        lengths = count_sentence_tokens(text, data.tokenizer.encode(text, special=False).offsets)
        sums = torch.zeros(len(lengths), 32)
        number = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
        for window in windowed.windows:
            with torch.no_grad():
                ids = torch.tensor([window.ids])
                states = network.encode(ids, torch.ones_like(ids).bool(), segments=torch.zeros_like(ids))
            text_states = states[
                0, window.text_start : window.text_start + window.token_range.end - window.token_range.start
            ]
            sums.index_add_(0, number[window.token_range.start : window.token_range.end], text_states)
        expected = torch.nn.functional.normalize(sums, dim=1)
        torch.testing.assert_close(vectors, expected, atol=1e-5, rtol=0)
    assert num_long_texts > 5
    assert max(map(len, sentence_vectors)) > 1
    single = encode_labeled([LabeledExample("word", None, "")], data.tokenizer, options, labels=())
    torch.testing.assert_close(
        compute_text_and_sentence_vectors(network, single)[1][0], compute_text_vectors(network, single)
    )
    calls: list[int] = []
    network.register_forward_hook(lambda *_: calls.append(1))
    together = compute_text_and_sentence_vectors(network, dataset)
    num_calls = len(calls)
    torch.testing.assert_close(together[0], compute_text_vectors(network, dataset), atol=1e-5, rtol=0)
    assert len(calls) == 2 * num_calls  # one forward pass gives both
    assert all(map(torch.equal, together[1], sentence_vectors))
