"""The data kind ``retrieval``: packed rows, negative texts, texts to retrieve."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import text_files
import torch
from torch import Tensor

from mnemic.data.contract import Data
from mnemic.data.text_tasks.retrieval import ArticleFiles
from mnemic.data.text_tasks.retrieval_batches import RetrievalBatch, RetrievalDataset
from mnemic.evaluate.text_metrics import compute_retrieval_recall
from mnemic.models import IGNORE, WindowBatch
from mnemic.objectives.retrieve_and_read import RetrieveAndReadLoss, pool_spans
from mnemic.objectives.text_tasks import span_loss
from mnemic.predict.windows import compute_text_and_sentence_vectors, compute_text_vectors
from mnemic.recipe import ConfigError, load_recipe
from mnemic.text.sentence_spans import count_sentence_tokens
from mnemic.text.windows import WindowOptions, make_question_windows, make_text_windows
from mnemic.train.initialize import build_network

WORDS = {"kind": "wordpiece", "vocab": 400}


def files(folder: Path, lines: int = 1, **options: Any) -> ArticleFiles:
    text_files.retrieval(folder, 80, lines=lines)
    defaults = {"tokenizer": WORDS, "length": 24, "overlap": 6, "articles": 3, "passages": 3}
    return ArticleFiles(folder=str(folder), **(defaults | options))


def data(folder: Path, lines: int = 1, **options: Any) -> Any:
    return files(folder, lines, **options).load()


def window_vectors(states: Tensor, batch: RetrievalBatch) -> Tensor:
    """Compute the vectors of the row's windows."""
    return pool_spans(states, batch.inputs, batch.inputs.mask.cu_seqlens.diff().long())


def draw_batch(dataset: RetrievalDataset, seed: int = 0) -> tuple[Tensor, RetrievalBatch]:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randperm(len(dataset), generator=generator)[:8]
    return rows, dataset.batch(rows, torch.rand(8, dataset.num_uniforms, generator=generator))


def list_windows(batch: RetrievalBatch) -> list[list[int]]:
    """List the windows of a row, in the order in which they were joined."""
    edges = batch.inputs.mask.cu_seqlens.tolist()
    windows = [batch.inputs.tokens[0, a:b].tolist() for a, b in pairwise(edges)]
    return [windows[rank] for rank in batch.window_ranks.tolist()]


def examples(folder: Path) -> list[Any]:
    return [example for article in ArticleFiles(folder=str(folder)).read_split("train") for example in article]


def test_windows_are_those_that_are_read_in_use(tmp_path: Path) -> None:
    """Special tokens, segments and answer positions are those of inference."""
    articles = data(tmp_path, negatives=0.0, length=40)
    rows, batch = draw_batch(articles.train)
    options, train_examples = WindowOptions(40, 6), examples(tmp_path)
    for row, ids, target in zip(rows.tolist(), list_windows(batch), batch.targets.tolist(), strict=False):
        windowed = make_question_windows(
            articles.tokenizer, train_examples[row].question, train_examples[row].text, options
        )
        assert ids == windowed.windows[0].ids
        start = train_examples[row].start
        token = next(i for i, (a, _) in enumerate(windowed.offsets) if a == start)
        assert target[0] == windowed.windows[0].text_start + token + 1
        last = windowed.offsets[target[1] - 1 - windowed.windows[0].text_start]
        assert last[1] == start + len(train_examples[row].answers[0])
    count = len(rows)
    alone = list_windows(batch)[count:]
    question_windows = {
        tuple(make_text_windows(articles.tokenizer, example.question, options).windows[0].ids)
        for example in train_examples
    }
    text_windows = {
        tuple(make_text_windows(articles.tokenizer, example.text, options).windows[0].ids) for example in train_examples
    }
    questions = len(batch.gold_texts)
    assert {tuple(ids) for ids in alone[:questions]} <= question_windows
    assert {tuple(ids) for ids in alone[questions:]} <= text_windows


def test_each_question_is_about_its_text_and_texts_are_of_few_articles(tmp_path: Path) -> None:
    articles = data(tmp_path)
    rows, batch = draw_batch(articles.train)
    windows, count = list_windows(batch), len(rows)
    questions, texts = (windows[count : count + len(batch.gold_texts)], windows[-len(batch.text_ids) :])
    assert (len(questions), len(texts)) == (18, 9)
    person = {articles.tokenizer.encode(name.lower(), special=False).ids[0] for name in text_files.NAMES}
    for ids, right in zip(questions, batch.gold_texts.tolist()):
        assert set(ids) & person <= set(texts[right])
    assert len({int(articles.train.article_ranges[text, 0]) for text in batch.text_ids}) <= 3


def test_a_wrong_text_is_another_one_and_has_no_answer(tmp_path: Path) -> None:
    """Negatives are of the same article or of another, as configured."""
    train = data(tmp_path, negatives=0.5, other_articles=0.25).train
    generator = torch.Generator().manual_seed(1)
    rows = torch.randint(len(train), (4000,), generator=generator)
    uniforms = torch.rand(4000, 4, generator=generator).double()
    windows, targets = train.draw_reading_windows(rows, uniforms)
    starts = train.text_spans[:, 0].contiguous()
    text = torch.bucketize(windows.second[:, 0].contiguous(), starts, right=True) - 1
    is_wrong = text != train.text_of_question[rows]
    assert torch.equal(is_wrong, uniforms[:, 0] < 0.5)
    assert not targets[is_wrong].any()
    assert (targets[~is_wrong] > 0).float().mean() > 0.9
    is_same_article = train.article_ranges[text, 0] == train.article_ranges[train.text_of_question[rows], 0]
    assert abs((~is_same_article[is_wrong]).float().mean() - 0.25) < 0.04


def test_of_a_long_text_every_stretch_may_be_read(tmp_path: Path) -> None:
    """Windows never exceed their length; a span without the answer has no target."""
    train = data(tmp_path, negatives=0.0, length=11, overlap=2).train
    rows = torch.arange(len(train)).repeat(20)
    uniforms = torch.rand(len(rows), 4, generator=torch.Generator().manual_seed(1)).double()
    windows, targets = train.draw_reading_windows(rows, uniforms)
    sizes = windows.first[:, 1] + windows.second[:, 1] + sum(train.num_special)
    assert sizes.max() == 11
    first = targets[:, 0] - 1 - sum(train.num_special[:2]) - windows.first[:, 1] + windows.second[:, 0]
    has_answer = targets[:, 0] > 0
    assert 0.1 < has_answer.float().mean() < 1
    answer = train.text_spans[train.text_of_question[rows], 0] + train.answer_tokens[rows, 0]
    assert torch.equal(first[has_answer], answer[has_answer])


def network(articles: Data, *sets: str) -> Any:
    sets = ("model.width=32", "model.encode.stack.depth=2", *sets)
    heads = 'model.encode.stack.attention={kind="full", heads=4}'
    return build_network(load_recipe("reader", [heads, *sets])["model"], articles.sizes, 0).eval()


def test_a_row_is_read_as_its_windows_are(tmp_path: Path) -> None:
    """Logits and vectors equal those of each window alone; nothing leaks."""
    articles = data(tmp_path)
    net, (rows, batch) = network(articles), draw_batch(articles.train)
    output = net(batch.inputs)
    edges = batch.inputs.mask.cu_seqlens.tolist()
    vectors = window_vectors(output.states[0], batch)
    for number, rank in enumerate(batch.window_ranks.tolist()):
        a, b = edges[rank], edges[rank + 1]
        packed_rows = (batch.inputs.tokens, batch.inputs.segment_ids, batch.inputs.answer_mask)
        tokens, segments, answer_mask = (row[:, a:b] for row in packed_rows)
        alone = net(WindowBatch(tokens, torch.ones_like(answer_mask), segments, answer_mask))
        mean = alone.states[0][answer_mask[0]].mean(0)
        torch.testing.assert_close(vectors[rank], torch.nn.functional.normalize(mean, dim=0), atol=1e-5, rtol=0)
        if number < len(rows):
            ends = output.logits[number, :, : 1 + b - a]
            torch.testing.assert_close(ends, alone.logits[0], atol=1e-4, rtol=1e-4)
            assert (output.logits[number, :, 1 + b - a :] < -1e30).all()


def retrieval_loss(cosine: Any, batch: RetrievalBatch) -> Tensor:
    """Compute the mean loss of the gold texts, question by question."""
    losses = []
    for question, right in enumerate(batch.gold_texts.tolist()):
        other_texts = [n for n, text_id in enumerate(batch.text_ids.tolist()) if text_id != batch.text_ids[right]]
        scores = torch.stack([cosine(question, n) / 0.1 for n in (right, *other_texts)])
        losses.append(-scores.log_softmax(0)[0])
    return torch.stack(losses).mean()


def test_the_loss_is_that_of_all_jobs(tmp_path: Path) -> None:
    """Computed question by question; a second copy of the right text is no negative."""
    articles = data(tmp_path, 3, passages=6, length=60)
    net, (_, batch) = network(articles), draw_batch(articles.train)
    assert len(set(batch.text_ids.tolist())) < len(batch.text_ids)
    output = net(batch.inputs)
    total, count = span_loss(output.logits, batch.targets)
    vectors = window_vectors(output.states[0], batch)[batch.window_ranks[len(batch.targets) :]]
    question_vectors, text_vectors = (vectors[: len(batch.gold_texts)], vectors[len(batch.gold_texts) :])
    passage_loss = retrieval_loss(lambda question, text: question_vectors[question] @ text_vectors[text], batch)
    sentence_vectors = sentence_vectors_of(output.states[0], batch, articles, tmp_path)
    assert max(map(len, sentence_vectors)) > 1
    sentence_loss = retrieval_loss(
        lambda question, text: (sentence_vectors[text] @ question_vectors[question]).max(), batch
    )
    loss = RetrieveAndReadLoss(keys=2.0, passages=0.5, temperature=0.1)(net, batch)
    torch.testing.assert_close(loss.total / loss.num_targets, total / count + 2 * sentence_loss + 0.5 * passage_loss)
    loss.total.backward()
    assert all(weight.grad is not None for weight in net.parameters())


def sentence_vectors_of(states: Tensor, batch: RetrievalBatch, articles: Data, folder: Path) -> list[Tensor]:
    """Compute the sentence vectors of each text: the mean states per sentence."""
    texts = list(dict.fromkeys(example.text for example in examples(folder)))
    edges, sentence_vectors = batch.inputs.mask.cu_seqlens.tolist(), []
    for rank, number in zip(batch.window_ranks[-len(batch.text_ids) :].tolist(), batch.text_ids.tolist()):
        text_states = states[edges[rank] + 1 : edges[rank + 1] - 1]  # without its frame
        encoded = articles.tokenizer.encode(texts[number], special=False)
        split_states = text_states.split(count_sentence_tokens(texts[number], encoded.offsets))
        means = torch.stack([sentence_states.mean(0) for sentence_states in split_states])
        sentence_vectors.append(torch.nn.functional.normalize(means, dim=1))
    return sentence_vectors


def test_of_a_text_that_is_cut_the_keys_that_are_left_count(tmp_path: Path) -> None:
    train = data(tmp_path, 3, length=60).train
    _, batch = draw_batch(replace(train, mix=train.mix._replace(max_tokens=20)))
    lengths, spans = batch.inputs.mask.lengths, batch.spans
    assert int(spans.lengths.sum()) == sum(lengths)
    assert int(spans.lengths.min()) > 0
    assert int(spans.spans_per_text.sum()) == len(spans.text_spans)
    sizes = spans.lengths[spans.text_spans].split(spans.spans_per_text.tolist())
    windows = [lengths[rank] for rank in batch.window_ranks[-len(batch.text_ids) :].tolist()]
    assert [int(text_sizes.sum()) for text_sizes in sizes] == windows
    questions = batch.window_ranks[len(batch.targets) : -len(batch.text_ids)].tolist()
    assert spans.lengths[spans.question_spans].tolist() == [lengths[rank] for rank in questions]


def test_smooth_targets_lean_to_what_may_be_answered(tmp_path: Path) -> None:
    articles = data(tmp_path)
    net, (_, batch) = network(articles), draw_batch(articles.train)
    logits, targets = net(batch.inputs).logits, batch.targets
    losses = []
    for row, ends in zip(logits, targets):
        for end_logits, end in zip(row, ends):
            allowed = end_logits > -1e30
            logs = end_logits[allowed].log_softmax(0)
            target = int(allowed[: int(end)].sum())
            losses.append(-0.8 * logs[target] - 0.2 * logs.mean())
    loss = RetrieveAndReadLoss(label_smoothing=0.2).compute_losses(net, batch)["spans"]
    torch.testing.assert_close(loss.total / loss.num_targets, torch.stack(losses).mean())


def test_a_judged_set_has_every_question_twice_and_all_texts(tmp_path: Path) -> None:
    article_files = files(tmp_path)
    test, articles = article_files.dataset("test", article_files.load().tokenizer), article_files.read_split("test")
    positives = [example for article in articles for example in article]
    assert len(test) == 2 * len(positives) == 120
    for example in test.examples[len(positives) :]:
        article = next(a for a in articles if example.text in {other_example.text for other_example in a})
        assert (example.answers, example.start) == ((), -1)
        originals = [
            other_example
            for other_example in article
            if (other_example.question, other_example.question_id) == (example.question, example.question_id)
        ]
        assert len(originals) == 1
        assert originals[0].text != example.text
    assert test.retrieval is not None
    splits = [article_files.read_split(split) for split in ("train", "validation", "test")]
    all_texts = {example.text for split in splits for article in split for example in article}
    assert {example.text for example in test.retrieval.texts.examples} == all_texts
    for question, index in zip(positives, test.retrieval.gold_texts):
        assert test.retrieval.texts.examples[index].text == question.text
    validation_texts = {example.text for article in article_files.read_split("validation") for example in article}
    assert validation_texts
    assert validation_texts.isdisjoint(example.text for example in examples(tmp_path))
    assert (test.targets[: test.first_window[len(positives)]] != IGNORE).all()


def test_recall_is_by_the_nearest_key_and_by_the_whole(tmp_path: Path) -> None:
    """Compare with counting question by question, text by text."""
    article_files = files(tmp_path, 3, length=60)
    articles = article_files.load()
    test = article_files.dataset("test", articles.tokenizer)
    net, retrieval = network(articles), test.retrieval
    assert retrieval is not None
    question_vectors, text_vectors = (compute_text_vectors(net, texts) for texts in retrieval[:2])
    keys = compute_text_and_sentence_vectors(net, retrieval.texts)[1]
    assert max(map(len, keys)) > 1
    ranks: dict[str, list[int]] = {"": [], ", whole": []}
    for question, right in zip(question_vectors, retrieval.gold_texts):
        best_cosines = [max(float(key @ question) for key in text) for text in keys]
        mean_cosines = [float(text @ question) for text in text_vectors]
        for way, scores in (("", best_cosines), (", whole", mean_cosines)):
            ranks[way].append(sum(score > scores[right] for score in scores))
    metrics = compute_retrieval_recall(net, test)
    for way, way_ranks in ranks.items():
        for top_k in (1, 5):
            share = sum(rank < top_k for rank in way_ranks) / len(way_ranks)
            assert metrics[f"recall@{top_k}{way}"] == pytest.approx(share)
    assert ranks[""] != ranks[", whole"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"negatives": 1.0}, r"data\.negatives is a share"),
        ({"passages": 0}, r"data\.passages is at least 1"),
        ({"length": 9, "overlap": 1}, "takes more than half of a window"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        data(tmp_path, **options)
    assert issubclass(ConfigError, ValueError)
