"""The data kind ``reading``: rows without padding, wrong texts, texts to be found."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import text_files
import torch
from torch import Tensor

from mnemic.data.text_tasks.retrieval import ArticleData, ArticleFiles
from mnemic.data.text_tasks.retrieval_batches import ReadingBatch, ReadingSet
from mnemic.evaluate.text_metrics import recalls
from mnemic.models import IGNORE, Windows
from mnemic.objectives.retrieve_and_read import ReadingLoss, mean_vectors
from mnemic.objectives.spans import span_loss
from mnemic.predict.windows import key_vectors, vectors
from mnemic.recipe import ConfigError, load
from mnemic.text.sentence_spans import key_lengths
from mnemic.text.windows import Room, window_alone, window_question
from mnemic.train.initialize import new_network

WORDS = {"kind": "wordpiece", "vocab": 400}


def data(folder: Path, lines: int = 1, **options: Any) -> ArticleData:
    text_files.reading(folder, 80, lines=lines)
    given = {"tokenizer": WORDS, "length": 24, "overlap": 6, "articles": 3, "passages": 3}
    return ArticleFiles(folder=str(folder), **(given | options)).data()


def window_vectors(states: Tensor, batch: ReadingBatch) -> Tensor:
    """The vectors of the row's windows."""
    return mean_vectors(states, batch.inputs, batch.inputs.mask.edges.diff().long())


def drawn(own: ReadingSet, seed: int = 0) -> tuple[Tensor, ReadingBatch]:
    dice = torch.Generator().manual_seed(seed)
    rows = torch.randperm(len(own), generator=dice)[:8]
    return rows, own.batch(rows, torch.rand(8, own.rolls, generator=dice))


def ids_of(batch: ReadingBatch) -> list[list[int]]:
    """The windows of a row, in the order in which they were put together."""
    edges = batch.inputs.mask.edges.tolist()
    windows = [batch.inputs.tokens[0, a:b].tolist() for a, b in pairwise(edges)]
    return [windows[place] for place in batch.windows.tolist()]


def examples(own: ArticleData) -> list[Any]:
    return [one for article in own.files.told("train") for one in article]


def test_windows_are_those_that_are_read_in_use(tmp_path: Path) -> None:
    """The same frame, the same segments, the same columns of the answer."""
    own = data(tmp_path, wrong=0.0, length=40)
    rows, batch = drawn(own.train)
    room, asked = Room(40, 6), examples(own)
    for row, ids, target in zip(rows.tolist(), ids_of(batch), batch.targets.tolist(), strict=False):
        cut = window_question(own.words, asked[row].question, asked[row].text, room)
        assert ids == cut.windows[0].ids
        start = asked[row].start
        token = next(i for i, (a, _) in enumerate(cut.offsets) if a == start)
        assert target[0] == cut.windows[0].place + token + 1
        last = cut.offsets[target[1] - 1 - cut.windows[0].place]
        assert last[1] == start + len(asked[row].answers[0])
    count = len(rows)
    alone = ids_of(batch)[count:]
    every = {tuple(window_alone(own.words, one.question, room).windows[0].ids) for one in asked}
    texts = {tuple(window_alone(own.words, one.text, room).windows[0].ids) for one in asked}
    questions = len(batch.right)
    assert {tuple(ids) for ids in alone[:questions]} <= every
    assert {tuple(ids) for ids in alone[questions:]} <= texts


def test_each_question_is_about_its_text_and_texts_are_of_few_articles(tmp_path: Path) -> None:
    own = data(tmp_path)
    rows, batch = drawn(own.train)
    windows, count = ids_of(batch), len(rows)
    asked, texts = windows[count : count + len(batch.right)], windows[-len(batch.same) :]
    assert (len(asked), len(texts)) == (18, 9)
    person = {own.words.encode(name.lower(), special=False).ids[0] for name in text_files.NAMES}
    for ids, right in zip(asked, batch.right.tolist()):
        assert set(ids) & person <= set(texts[right])
    assert len({int(own.train.near[text, 0]) for text in batch.same}) <= 3


def test_a_wrong_text_is_another_one_and_has_no_answer(tmp_path: Path) -> None:
    """Of the same article or of another, in the shares asked for."""
    train = data(tmp_path, wrong=0.5, elsewhere=0.25).train
    dice = torch.Generator().manual_seed(1)
    rows = torch.randint(len(train), (4000,), generator=dice)
    rolls = torch.rand(4000, 4, generator=dice).double()
    pieces, targets = train.to_read(rows, rolls)
    begins = train.texts[:, 0].contiguous()
    text = torch.bucketize(pieces.second[:, 0].contiguous(), begins, right=True) - 1
    wrong = text != train.home[rows]
    assert torch.equal(wrong, rolls[:, 0] < 0.5)
    assert not targets[wrong].any()
    assert (targets[~wrong] > 0).float().mean() > 0.9
    beside = train.near[text, 0] == train.near[train.home[rows], 0]
    assert abs((~beside[wrong]).float().mean() - 0.25) < 0.04


def test_of_a_long_text_every_stretch_may_be_read(tmp_path: Path) -> None:
    """Windows never outgrow their length, and a stretch without the answer has none."""
    train = data(tmp_path, wrong=0.0, length=11, overlap=2).train
    rows = torch.arange(len(train)).repeat(20)
    rolls = torch.rand(len(rows), 4, generator=torch.Generator().manual_seed(1)).double()
    pieces, targets = train.to_read(rows, rolls)
    sizes = pieces.first[:, 1] + pieces.second[:, 1] + sum(train.frame)
    assert sizes.max() == 11
    first = targets[:, 0] - 1 - sum(train.frame[:2]) - pieces.first[:, 1] + pieces.second[:, 0]
    held = targets[:, 0] > 0
    assert 0.1 < held.float().mean() < 1
    answer = train.texts[train.home[rows], 0] + train.answers[rows, 0]
    assert torch.equal(first[held], answer[held])


def network(own: ArticleData, *sets: str) -> Any:
    sets = ("model.width=32", "model.encode.stack.depth=2", *sets)
    heads = 'model.encode.stack.attention={kind="full", heads=4}'
    return new_network(load("reader", [heads, *sets])["model"], own.sizes, 0).eval()


def test_a_row_is_read_as_its_windows_are(tmp_path: Path) -> None:
    """Scores and vectors are those of every window padded, one by one; nothing leaks."""
    own = data(tmp_path)
    net, (rows, batch) = network(own), drawn(own.train)
    read = net(batch.inputs)
    edges = batch.inputs.mask.edges.tolist()
    vectors = window_vectors(read.states[0], batch)
    for number, place in enumerate(batch.windows.tolist()):
        a, b = edges[place], edges[place + 1]
        parts = (batch.inputs.tokens, batch.inputs.segments, batch.inputs.inside)
        tokens, segments, inside = (part[:, a:b] for part in parts)
        alone = net(Windows(tokens, torch.ones_like(inside), segments, inside))
        mean = alone.states[0][inside[0]].mean(0)
        torch.testing.assert_close(
            vectors[place], torch.nn.functional.normalize(mean, dim=0), atol=1e-5, rtol=0
        )
        if number < len(rows):
            ends = read.scores[number, :, : 1 + b - a]
            torch.testing.assert_close(ends, alone.scores[0], atol=1e-4, rtol=1e-4)
            assert (read.scores[number, :, 1 + b - a :] < -1e30).all()


def own_loss(near: Any, batch: ReadingBatch) -> Tensor:
    """The mean loss of the right texts, question by question, of ``near(question, text)``."""
    wanted = []
    for question, right in enumerate(batch.right.tolist()):
        others = [n for n, one in enumerate(batch.same.tolist()) if one != batch.same[right]]
        scores = torch.stack([near(question, n) / 0.1 for n in (right, *others)])
        wanted.append(-scores.log_softmax(0)[0])
    return torch.stack(wanted).mean()


def test_the_loss_is_that_of_all_jobs(tmp_path: Path) -> None:
    """Written out question by question; the same text twice in a batch is not held against one."""
    own = data(tmp_path, 3, passages=6, length=60)
    net, (_, batch) = network(own), drawn(own.train)
    assert len(set(batch.same.tolist())) < len(batch.same)
    read = net(batch.inputs)
    total, count = span_loss(read.scores, batch.targets)
    vectors = window_vectors(read.states[0], batch)[batch.windows[len(batch.targets) :]]
    asked, texts = vectors[: len(batch.right)], vectors[len(batch.right) :]
    whole = own_loss(lambda question, text: asked[question] @ texts[text], batch)
    keys = keys_of(read.states[0], batch, own)
    assert max(map(len, keys)) > 1
    best = own_loss(lambda question, text: (keys[text] @ asked[question]).max(), batch)
    loss = ReadingLoss(keys=2.0, passages=0.5, temperature=0.1)(net, batch)
    torch.testing.assert_close(loss.total / loss.targets, total / count + 2 * best + 0.5 * whole)
    loss.total.backward()
    assert all(weight.grad is not None for weight in net.parameters())


def keys_of(states: Tensor, batch: ReadingBatch, own: ArticleData) -> list[Tensor]:
    """The vectors of each text's keys, from its string: its window's states, cut into stretches."""
    texts = list(dict.fromkeys(one.text for one in examples(own)))
    edges, found = batch.inputs.mask.edges.tolist(), []
    for place, number in zip(batch.windows[-len(batch.same) :].tolist(), batch.same.tolist()):
        inside = states[edges[place] + 1 : edges[place + 1] - 1]  # without its frame
        encoded = own.words.encode(texts[number], special=False)
        parts = inside.split(key_lengths(texts[number], encoded.offsets))
        means = torch.stack([part.mean(0) for part in parts])
        found.append(torch.nn.functional.normalize(means, dim=1))
    return found


def test_of_a_text_that_is_cut_the_keys_that_are_left_count(tmp_path: Path) -> None:
    train = data(tmp_path, 3, length=60).train
    _, batch = drawn(replace(train, mix=train.mix._replace(length=20)))
    lengths, keys = batch.inputs.mask.lengths, batch.keys
    assert int(keys.lengths.sum()) == sum(lengths)
    assert int(keys.lengths.min()) > 0
    assert int(keys.counts.sum()) == len(keys.texts)
    sizes = keys.lengths[keys.texts].split(keys.counts.tolist())
    windows = [lengths[place] for place in batch.windows[-len(batch.same) :].tolist()]
    assert [int(own.sum()) for own in sizes] == windows
    questions = batch.windows[len(batch.targets) : -len(batch.same)].tolist()
    assert keys.lengths[keys.questions].tolist() == [lengths[place] for place in questions]


def test_smooth_targets_lean_to_what_may_be_answered(tmp_path: Path) -> None:
    own = data(tmp_path)
    net, (_, batch) = network(own), drawn(own.train)
    scores, targets = net(batch.inputs).scores, batch.targets
    parts = []
    for row, ends in zip(scores, targets):
        for own_scores, end in zip(row, ends):
            seen = own_scores > -1e30
            logs = own_scores[seen].log_softmax(0)
            place = int(seen[: int(end)].sum())
            parts.append(-0.8 * logs[place] - 0.2 * logs.mean())
    found = ReadingLoss(smooth=0.2).parts(net, batch)["spans"]
    torch.testing.assert_close(found.total / found.targets, torch.stack(parts).mean())


def test_a_judged_set_has_every_question_twice_and_all_texts(tmp_path: Path) -> None:
    own = data(tmp_path)
    test, asked = own.test, own.files.told("test")
    right = [one for article in asked for one in article]
    assert len(test) == 2 * len(right) == 120
    for one in test.examples[len(right) :]:
        article = next(a for a in asked if one.text in {two.text for two in a})
        assert (one.answers, one.start) == ((), -1)
        mine = [two for two in article if (two.question, two.name) == (one.question, one.name)]
        assert len(mine) == 1
        assert mine[0].text != one.text
    assert test.search is not None
    parts = [own.files.told(part) for part in ("train", "validation", "test")]
    every = {one.text for part in parts for article in part for one in article}
    assert {one.text for one in test.search.texts.examples} == every
    for question, place in zip(right, test.search.right):
        assert test.search.texts.examples[place].text == question.text
    held = {one.text for article in own.files.told("validation") for one in article}
    assert held
    assert held.isdisjoint(one.text for one in examples(own))
    assert (test.targets[: test.first[len(right)]] != IGNORE).all()


def test_recall_is_by_the_nearest_key_and_by_the_whole(tmp_path: Path) -> None:
    """Counted question by question, text by text."""
    own = data(tmp_path, 3, length=60)
    net, search = network(own), own.test.search
    assert search is not None
    asked, whole = (vectors(net, part) for part in search[:2])
    keys = key_vectors(net, search.texts)
    assert max(map(len, keys)) > 1
    ranks: dict[str, list[int]] = {"": [], ", whole": []}
    for question, right in zip(asked, search.right):
        near = [max(float(key @ question) for key in text) for text in keys]
        mean = [float(text @ question) for text in whole]
        for way, scores in (("", near), (", whole", mean)):
            ranks[way].append(sum(score > scores[right] for score in scores))
    found = recalls(net, own.test)
    for way, each in ranks.items():
        for most in (1, 5):
            share = sum(rank < most for rank in each) / len(each)
            assert found[f"recall@{most}{way}"] == pytest.approx(share)
    assert ranks[""] != ranks[", whole"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wrong": 1.0}, r"data\.wrong is a share"),
        ({"passages": 0}, r"data\.passages is at least 1"),
        ({"length": 9, "overlap": 1}, "takes more than half of a window"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        data(tmp_path, **options)
    assert issubclass(ConfigError, ValueError)
