"""The data kinds ``views`` and ``matches``: what is drawn, who is a negative, what is refused."""

import json
from collections.abc import Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
import text_files
import torch
from torch import Tensor

from mnemic.data.text_tasks.examples import TextError
from mnemic.data.views.batches import ViewBatch, ViewDataset, make_text_pool
from mnemic.data.views.dataset import MatchFiles, ViewFiles
from mnemic.data.views.draw import NUM_UNIFORMS, VIEWS, CropViews, TextTokens, limit_length
from mnemic.data.views.groups import number_texts
from mnemic.data.views.units import cut_documents
from mnemic.recipe import ConfigError, build
from mnemic.text.windows import WindowOptions, make_text_windows
from mnemic.train.sampler import BatchSampler

WORDS = {"kind": "wordpiece", "vocab": 400}


def view_files(folder: Path, kind: str = "dropout", **options: Any) -> ViewFiles:
    text_files.views(folder, 40)
    defaults = {"tokenizer": WORDS, "unit": "documents", "length": 64, "views": {"kind": kind}}
    return ViewFiles(folder=str(folder), **(defaults | options))


def match_files(folder: Path, rows: Sequence[dict[str, Any]], **options: Any) -> MatchFiles:
    text_files.write(folder / "train.jsonl", [json.dumps(row) for row in rows])
    return MatchFiles(folder=str(folder), **({"tokenizer": WORDS, "validation": 0.0} | options))


def draw_batch(dataset: ViewDataset, count: int = 8, seed: int = 0) -> ViewBatch:
    uniforms = torch.rand(count, dataset.num_uniforms, generator=torch.Generator().manual_seed(seed))
    return dataset.batch(torch.arange(count), uniforms)


def list_texts(batch: ViewBatch) -> list[list[int]]:
    """List the ids of each window without special tokens and padding."""
    inputs = batch.inputs
    return [ids[mask].tolist() for ids, mask in zip(inputs.tokens, inputs.answer_mask)]


def texts_of(dataset: ViewDataset) -> list[list[int]]:
    return [dataset.pool.tokens[start : start + length].tolist() for start, length in dataset.pool.spans.tolist()]


def make_text_tokens(*sentence_lengths: list[int]) -> TextTokens:
    """Make texts with sentences of these lengths, one after the other in a pool."""
    lengths = torch.tensor([length for text in sentence_lengths for length in text])
    starts = torch.tensor([sum(text[:index]) for text in sentence_lengths for index in range(len(text))])
    counts = torch.tensor([len(text) for text in sentence_lengths])
    totals = torch.tensor([sum(text) for text in sentence_lengths])
    return TextTokens(totals.cumsum(0) - totals, totals, counts.cumsum(0) - counts, counts, lengths, starts)


# Views -----------------------------------------------------------------------------------------


def test_a_text_is_read_twice_as_it_is_in_use(tmp_path: Path) -> None:
    data = view_files(tmp_path).load()
    batch: ViewBatch = draw_batch(data.train)  # type: ignore[arg-type]
    windows = [ids[mask].tolist() for ids, mask in zip(batch.inputs.tokens, batch.inputs.mask)]
    assert windows[:8] == windows[8:]
    texts = view_files(tmp_path).cut(view_files(tmp_path).read_split("train"), data.tokenizer)
    for text, ids in zip(texts, windows[:8]):
        assert ids == make_text_windows(data.tokenizer, text, WindowOptions(64, 0)).windows[0].ids


def test_of_a_long_text_both_views_are_one_window_and_another_next_time(tmp_path: Path) -> None:
    train: Any = view_files(tmp_path, length=12, overlap=2).load().train
    windows, later = list_texts(draw_batch(train)), list_texts(draw_batch(train, seed=1))
    assert windows[:8] == windows[8:]
    assert windows != later
    for ids, text in zip(windows[:8], texts_of(train)):
        assert len(ids) == 10
        assert any(text[start : start + 10] == ids for start in range(len(text)))


def test_two_crops_are_never_the_same_span() -> None:
    """For every text length and a grid of random numbers; they stay within the text."""
    grid = torch.tensor(list(product([0.0, 0.3, 0.6, 0.999], repeat=4)), dtype=torch.double)
    uniforms = torch.cat([grid, grid[:, :2]], 1)
    for length, views in product([4, 5, 9, 40], [CropViews(), CropViews(shortest=0.9, longest=0.99)]):
        texts = make_text_tokens(*[[length]] * len(grid))
        first, second = views.draw(texts, uniforms)
        assert not (first == second).flatten(1).all(1).any()
        for ranges in (first, second):
            starts, lengths = (ranges[:, 0] - torch.stack([texts.start, torch.zeros_like(texts.start)], 1)).unbind(1)
            assert (starts >= 0).all()
            assert (lengths >= 1).all()
            assert (starts + lengths <= length).all()
            assert (lengths <= max(length * views.longest, 1)).all()
    assert len(set(map(tuple, (first - second).flatten(1).tolist()))) > 10


def test_inverse_cloze_removes_the_sentence(tmp_path: Path) -> None:
    train: Any = view_files(tmp_path, "inverse-cloze").load().train
    texts, windows = texts_of(train), list_texts(draw_batch(train))
    places = set()
    for text, sentence, rest in zip(texts, windows[:8], windows[8:]):
        size = len(sentence)
        starts = [i for i in range(len(text)) if (text[:i] + text[i + size :], text[i : i + size]) == (rest, sentence)]
        position = starts[0]
        places.add(position > 0)
    assert places == {True, False}
    intact: Any = view_files(tmp_path, views={"kind": "inverse-cloze", "intact": 0.5}).load().train
    windows = list_texts(draw_batch(intact, 30))
    lengths = [len(rest) - len(text) for rest, text in zip(windows[30:], texts_of(intact))]
    assert 5 < lengths.count(0) < 25


def test_neighbors_are_next_to_each_other(tmp_path: Path) -> None:
    train: Any = view_files(tmp_path, "neighbors").load().train
    sentences = train.pool.sentence_lengths.split(train.pool.sentence_ranges[:, 1].tolist())
    windows, first_sentences = list_texts(draw_batch(train)), set()
    for text, lengths, first, second in zip(texts_of(train), sentences, windows[:8], windows[8:]):
        edges = [0, *lengths.cumsum(0).tolist()]
        parts = [text[start:end] for start, end in pairwise(edges)]
        assert (first, second) in list(pairwise(parts))
        first_sentences.add(parts.index(first))
    assert len(first_sentences) > 1


@pytest.mark.parametrize("max_tokens", [1, 3, 5, 20])
def test_long_views_lose_only_their_ends(max_tokens: int) -> None:
    """Two ranges are limited as if their tokens were one list."""
    generator = torch.Generator().manual_seed(0)
    ranges = torch.randint(0, 8, (60, 2, 2), generator=generator)
    ranges[:, 0, 1] += 1
    uniforms = torch.rand(60, generator=generator)
    limited = limit_length(ranges, max_tokens, uniforms)

    def list_tokens(row: Tensor) -> list[int]:
        return [start + step for start, length in row.tolist() for step in range(length)]

    for row, result, uniform in zip(ranges, limited, uniforms.tolist()):
        tokens = list_tokens(row)
        start = int(uniform * (max(len(tokens) - max_tokens, 0) + 1))
        assert list_tokens(result) == tokens[start : start + max_tokens]


def test_draws_follow_from_seed_and_epoch_alone(tmp_path: Path) -> None:
    train: Any = view_files(tmp_path, "crops").load().train

    def batches(seed: int, first_step: int) -> list[Tensor]:
        sampler = BatchSampler(
            pools=[torch.arange(len(train))], seeds=[seed], batch_size=8, num_uniforms=train.num_uniforms
        )
        steps = zip(range(6), sampler.iterate_from(first_step))
        return [train.batch(*step[:2]).inputs.tokens for _, step in steps]

    first = batches(0, 0)
    assert all(map(torch.equal, first[3:], batches(0, 3)))  # as a resumed run draws them
    assert not torch.equal(first[0], batches(1, 0)[0])
    assert not torch.equal(first[0], first[5])


def test_documents_are_cut_into_units(tmp_path: Path) -> None:
    tokenizer = view_files(tmp_path).load().tokenizer
    document = "The old train ran past a house. The small grey house ran past today.\nThe train ran past a small house."
    sentences = list(cut_documents([document], "sentences", tokenizer, 0))
    assert sentences == [line for part in document.split("\n") for line in part.replace(". ", ".\n").split("\n")]
    counts = [len(tokenizer.encode(text, special=False).ids) for text in sentences]
    passages = list(cut_documents([document], "passages", tokenizer, counts[0] + counts[1]))
    assert passages == [" ".join(sentences[:2]), sentences[2]]
    assert list(cut_documents([document], "passages", tokenizer, 3)) == sentences  # nothing is cut off
    assert list(cut_documents([document], "documents", tokenizer, 3)) == [document]


def test_lines_are_divided_into_splits_one_by_one(tmp_path: Path) -> None:
    lines = [f"the train number {number} ran past a house" for number in range(200)]
    text_files.write(tmp_path / "lines.txt", lines)
    source = ViewFiles(folder=str(tmp_path), unit="lines", validation=0.2, tokenizer=WORDS)
    train, validation = list(source.read_split("train")), list(source.read_split("validation"))
    assert sorted(train + validation) == sorted(lines)
    assert 20 < len(validation) < 60


def test_equal_texts_share_a_number_and_evaluation_is_fixed(tmp_path: Path) -> None:
    text_files.write(tmp_path / "lines.txt", ["An old train ran.", "A  house today.", "an old  Train ran."] * 9)
    source = ViewFiles(folder=str(tmp_path), unit="lines", validation=0.0, tokenizer=WORDS)
    data: Any = source.load()
    ids = draw_batch(data.train, 3).text_ids.tolist()
    assert ids[0] == ids[2] != ids[1]
    text_files.views(tmp_path / "documents", 30)
    for kind in VIEWS:
        source = view_files(tmp_path / "documents", kind, validation=0.3)
        first, second = (source.dataset("validation", data.tokenizer) for _ in range(2))
        assert [row.text for row in first.examples] == [row.text for row in second.examples]
        assert first.retrieval is not None
        partners = [first.retrieval.texts.examples[gold].text for gold in first.retrieval.gold_texts]
        assert not any(row.text == partner for row, partner in zip(first.examples, partners))


def test_texts_without_two_sentences_are_no_neighbors(tmp_path: Path) -> None:
    text_files.write(tmp_path / "lines.txt", ["the old train ran past a house"] * 5)
    source = ViewFiles(folder=str(tmp_path), unit="lines", views={"kind": "neighbors"}, tokenizer=WORDS)
    with pytest.raises(TextError, match=r"no text of \d .* has 2 tokens and 2 sentences.*set data.unit=passages"):
        source.load()


def test_views_out_of_range_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="0 < shortest ≤ longest < 1"):
        view_files(tmp_path, views={"kind": "crops", "longest": 1.0})
    with pytest.raises(ConfigError, match=r"views.intact is a share"):
        view_files(tmp_path, views={"kind": "inverse-cloze", "intact": 1.0})
    with pytest.raises(ConfigError, match=r"no kind 'crop' here .did you mean 'crops'"):
        view_files(tmp_path, "crop")
    for kind in VIEWS:  # no kind looks beyond its random numbers
        views = build(VIEWS, {"kind": kind})
        first, _ = views.draw(make_text_tokens([6, 7]), torch.zeros(1, NUM_UNIFORMS).double())
        assert first.shape == (1, 2, 2)


# Given pairs -----------------------------------------------------------------------------------

FAQ = [
    {"question": "May I bring my cat?", "answer": "Yes, pets are allowed."},
    {"question": "Are dogs fine?", "answer": "yes,  Pets are allowed."},
    {"question": "Is there a pool?", "answer": "There is a pool on the roof."},
    {"question": "is there  a pool?", "answer": "A small one."},
    {"question": "When is breakfast?", "answer": "From seven to ten."},
]


def test_linked_pairs_are_no_negatives_and_in_one_split(tmp_path: Path) -> None:
    train: Any = match_files(tmp_path, FAQ).load().train
    ids = draw_batch(train, 5).text_ids.tolist()
    assert [ids[0] == ids[1], ids[2] == ids[3], len(set(ids))] == [True, True, 3]
    files = match_files(tmp_path, FAQ * 5, validation=0.4)
    splits = [{row.second for row in files.read_split(split)} for split in ("train", "validation")]
    assert not splits[0] & splits[1]
    assert sum(map(len, splits)) == 5
    test = files.dataset("validation", files.load().tokenizer).retrieval
    assert test is not None
    assert len(test.texts) < len(test.questions)  # each answer is there once


def test_a_chain_of_pairs_is_one_group() -> None:
    numbers = number_texts([("a", "b"), ("c", "d"), ("d", "e"), ("E ", "B"), ("f",)])
    assert len({numbers[text] for text in "abcde"}) == 1
    assert numbers["f"] != numbers["a"]


def test_columns_are_joined_and_named(tmp_path: Path) -> None:
    rows = [{"entity": "Hotel A", "question": "A pool?", "answer": "Yes."}]
    assert match_files(tmp_path, rows).read_split("train") == [("A pool?", "Yes.")]
    columns = {"first": ["entity", "question"], "second": "answer"}
    assert match_files(tmp_path, rows, columns=columns).read_split("train") == [("Hotel A A pool?", "Yes.")]
    rows.append({"question": "A bar?", "answer": "No."})
    assert match_files(tmp_path, rows, columns=columns).read_split("train")[1] == ("A bar?", "No.")
    for columns, message in (
        ({"first": "title"}, "no column 'title'; it has entity, question, answer"),
        ({"third": "title"}, "data.columns takes first and second, not 'third'"),
    ):
        with pytest.raises(TextError, match=message):
            match_files(tmp_path, rows, columns=columns).read_split("train")
    with pytest.raises(TextError, match=r"line 1: no column for the second text"):
        match_files(tmp_path, [{"question": "A pool?"}]).read_split("train")
    with pytest.raises(TextError, match=r"line 1: the second text is empty"):
        match_files(tmp_path, [{"question": "A pool?", "answer": " "}]).read_split("train")


def write_negatives(path: Path, negatives: dict[int, list[str]]) -> Path:
    rows = [{"first": FAQ[row]["question"], "second": FAQ[row]["answer"]} for row in negatives]
    text_files.write(path, [json.dumps(row | {"negatives": texts}) for row, texts in zip(rows, negatives.values())])
    return path


def test_hard_negatives_are_those_of_the_pair(tmp_path: Path) -> None:
    """Answers that are linked with the right one are dropped from the mined ones."""
    file = write_negatives(tmp_path / "mined", {2: ["A small one.", "No pool, but a lake."], 4: ["At noon."]})
    data: Any = match_files(tmp_path, FAQ, negatives_file=str(file), hard_negatives=2).load()
    batch = draw_batch(data.train, 5)
    texts = [data.tokenizer.decode(ids) for ids in list_texts(batch)]
    assert len(texts) == 5 + 5 + 4
    assert texts[10:12] == [data.tokenizer.decode(data.tokenizer.encode("No pool, but a lake.", special=False).ids)] * 2
    assert len({*batch.negative_ids.tolist()} | {*batch.text_ids.tolist()}) == 5
    assert not {*batch.negative_ids.tolist()} & {*batch.text_ids.tolist()}


def test_a_mined_text_of_another_pair_has_its_number(tmp_path: Path) -> None:
    """So it is no negative for the pair that it belongs to."""
    file = write_negatives(tmp_path / "mined", {2: ["From seven to ten."]})
    batch = draw_batch(match_files(tmp_path, FAQ, negatives_file=str(file)).load().train, 5)  # type: ignore[arg-type]
    assert batch.negative_ids.tolist() == [batch.text_ids[4].item()]


def test_files_of_negatives_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TextError, match=r"no file .*mined.* make it with `mnemic data negatives`"):
        match_files(tmp_path, FAQ, negatives_file=str(tmp_path / "mined")).load()
    text_files.write(tmp_path / "mined", ['{"first": "a", "second": "b", "negatives": "c"}'])
    with pytest.raises(TextError, match=r"mined, line 1: expected .*not \{.first"):
        match_files(tmp_path, FAQ, negatives_file=str(tmp_path / "mined")).load()
    text_files.write(tmp_path / "mined", ['{"first": "a", "second": "b", "negatives": ["c"]}'])
    with pytest.raises(TextError, match=r"hard negatives for none of 5 training pairs"):
        match_files(tmp_path, FAQ, negatives_file=str(tmp_path / "mined")).load()


def test_a_pool_knows_its_sentences(tmp_path: Path) -> None:
    tokenizer = view_files(tmp_path).load().tokenizer
    pool = make_text_pool(["The old train ran past. A small house ran past today.", ""], tokenizer)
    assert pool.sentence_ranges.tolist() == [[0, 2], [2, 1]]
    assert pool.sentence_starts.tolist() == [0, int(pool.sentence_lengths[0]), 0]
    assert int(pool.sentence_lengths.sum()) == int(pool.spans[:, 1].sum())
