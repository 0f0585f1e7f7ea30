"""Long documents: facts hidden in background, cut into segments, made on demand."""

import json
import tracemalloc
from itertools import count, islice, pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch

from mnemic.data import DATASETS
from mnemic.data.contract import LoadedData
from mnemic.data.corpora.read_documents import CorpusError
from mnemic.data.long_context.background import Background, encode_novels, read_novels, split_sentences
from mnemic.data.long_context.batches import LongDataset
from mnemic.data.long_context.hide import SentenceTokens, cut_segments, hide_story, insert_distractors
from mnemic.data.long_context.recall import make_copy_examples, make_key_value_examples
from mnemic.models.inputs import IGNORE
from mnemic.recipe import ConfigError, build

NOVELS = Path(__file__).parents[3] / "shared" / "data" / "novels"
SMALL: dict[str, Any] = {"length": 24, "segments": 3, "count": 60}
SMALL["tokenizer"] = {"kind": "wordpiece", "vocab": 400}


def data(kind: str, **options: Any) -> LoadedData[LongDataset]:
    return build(DATASETS, {"kind": kind, **SMALL, **options}).load()


@pytest.fixture(scope="module")
def stories() -> LoadedData[LongDataset]:
    return data("long-stories", tasks=[1, 2])


def make_sentences(*sizes: int) -> list[np.ndarray]:
    return [np.full(size, number) for number, size in enumerate(sizes)]


def background_sentences(size: int = 5) -> Any:
    return (SentenceTokens(np.full(size, -number)) for number in count(1))


def write_novels(folder: Path, texts: int = 12) -> Path:
    folder.mkdir()
    rows = [{"text": " ".join(f"Word{n} stands here {k}." for k in range(40))} for n in range(texts)]
    (folder / "novels.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return folder


# Hiding --------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 10, 200, 5000])
def test_the_story_stands_whole_and_in_order_among_background(length: int) -> None:
    story = make_sentences(4, 6, 3)
    document = list(hide_story(story, background_sentences(), length, Random(0)))
    facts = [sentence for sentence in document if sentence.fact >= 0]
    assert [sentence.fact for sentence in facts] == [0, 1, 2]
    assert all(sentence.ids is story[sentence.fact] for sentence in facts)
    size = sum(len(sentence.ids) for sentence in document)
    assert max(length, 13) <= size < max(length, 13) + 5
    background = [int(sentence.ids[0]) for sentence in document if sentence.fact < 0]
    assert background == [-number for number in range(1, len(background) + 1)]  # in its own order


def test_facts_stand_anywhere_with_equal_chances_or_first() -> None:
    positions = []
    for seed in range(400):
        num_tokens = 0
        for sentence in hide_story(make_sentences(1), background_sentences(), 1000, Random(seed)):
            if sentence.fact == 0:
                break
            num_tokens += 5
        positions.append(num_tokens / 1000)
    quarters = np.histogram(positions, bins=4, range=(0, 1))[0]
    assert quarters.min() > 70
    pairs = [fact_positions(seed) for seed in range(200)]  # of two, a third and two thirds of the way
    assert abs(np.mean([pair[0] for pair in pairs]) - 1 / 3) < 0.05
    assert abs(np.mean([pair[1] for pair in pairs]) - 2 / 3) < 0.05
    first = list(hide_story(make_sentences(4, 6), background_sentences(), 300, Random(0), position="first"))
    assert [sentence.fact for sentence in first[:3]] == [0, 1, -1]


def test_near_misses_are_almost_of_the_story_and_never_of_it() -> None:
    story = [np.array(ids) for ids in ([1, 2, 3, 4, 0], [1, 5, 3, 6, 0], [7, 0])]
    story_ids = [ids.tolist() for ids in story]
    sentences = [
        ids.ids.tolist() for ids in islice(insert_distractors(story, background_sentences(), 0.5, Random(0)), 3000)
    ]
    distractors = [ids for ids in sentences if ids[0] > 0 or ids[-1] >= 0]
    assert [ids for ids in sentences if ids not in distractors][:2] == [[-1] * 5, [-2] * 5], "background was lost"
    assert 0.35 < len(distractors) / (len(sentences) - len(distractors)) < 0.46  # some are the story's: left out
    assert not any(ids in story_ids for ids in distractors)
    assert [1, 2, 0] in distractors
    assert [2, 3, 4, 0] in distractors  # parts, with the last token
    with_foreign_word = [ids for ids in distractors if min(ids) < 0]
    assert with_foreign_word
    assert all(sum(token < 0 for token in ids) == 1 for ids in with_foreign_word), "only one word differs"
    background = insert_distractors(story, background_sentences(), 0.0, Random(0))
    assert [ids.ids[0] for ids in islice(background, 50)] == [-n for n in range(1, 51)]


def test_near_misses_are_for_training_alone() -> None:
    loaded = data("long-stories", tasks=[1], distractors=0.3)
    assert (loaded.train.distractor_rate, loaded.validation.distractor_rate, loaded.test.distractor_rate) == (
        0.3,
        0.0,
        0.0,
    )
    plain = data("long-stories", tasks=[1])

    def background(examples: LongDataset) -> set[tuple[int, ...]]:
        documents = (examples.draw_document(0, uniform).segments for uniform in (0.1, 0.2, 0.3))
        return {
            tuple(sentence.ids.tolist())
            for segments in documents
            for segment in segments
            for sentence in segment
            if sentence.fact < 0
        }

    known = {tuple(sentence.ids.tolist()) for sentence in plain.train.background.sentences}
    assert background(plain.train) <= known
    assert background(loaded.train) - known


def test_segments_hold_whole_sentences_and_everything_once() -> None:
    rng = Random(0)
    sentences = [SentenceTokens(np.arange(rng.randint(1, 12)), number) for number in range(200)]
    segments = list(cut_segments(sentences, 20))
    assert [sentence.fact for segment in segments for sentence in segment] == list(range(200))
    assert all(0 < sum(len(sentence.ids) for sentence in segment) <= 20 for segment in segments)
    for segment, next_segment in pairwise(segments):  # the next sentence had no room
        assert sum(len(sentence.ids) for sentence in segment) + len(next_segment[0].ids) > 20


def test_a_sentence_longer_than_a_segment_is_cut_and_nothing_is_lost() -> None:
    segments = list(cut_segments([SentenceTokens(np.arange(3)), SentenceTokens(np.arange(50), 7)], 20))
    ids = np.concatenate([sentence.ids for segment in segments for sentence in segment if sentence.fact == 7])
    assert ids.tolist() == list(range(50))
    assert list(cut_segments([], 20)) == [[]]


def test_a_paragraph_begins_a_segment_unless_all_of_it_has_room() -> None:
    def segment_sizes(*paragraphs: list[int]) -> list[list[int]]:
        """Map sentence sizes per paragraph to sentence sizes per segment."""
        sentences = [
            SentenceTokens(np.zeros(size), paragraph_tokens=0 if number else sum(paragraph))
            for paragraph in paragraphs
            for number, size in enumerate(paragraph)
        ]
        return [[len(sentence.ids) for sentence in segment] for segment in cut_segments(sentences, 10)]

    assert segment_sizes([3, 3], [2, 2]) == [[3, 3, 2, 2]]
    assert segment_sizes([3, 3], [2, 3]) == [[3, 3], [2, 3]]
    assert segment_sizes([3], [4, 4, 4]) == [[3], [4, 4], [4]]  # longer than a segment, it still begins one
    assert segment_sizes([3], [25]) == [[3], [10], [10], [5]]
    assert segment_sizes([1, 25]) == [[1], [10], [10], [5]]


def fact_positions(seed: int) -> list[float]:
    """Return the relative positions of two facts in a thousand tokens."""
    positions, num_tokens = [], 0
    for sentence in hide_story(make_sentences(1, 1), background_sentences(), 1000, Random(seed)):
        positions += [num_tokens / 1000] if sentence.fact >= 0 else []
        num_tokens += len(sentence.ids)
    return positions


# Background ----------------------------------------------------------------------------------


def test_novels_are_parted_whole_and_the_same_ones_always(tmp_path: Path) -> None:
    splits = read_novels(str(write_novels(tmp_path / "a", 40)))
    assert sum(len(split) for split in splits.values()) == 40
    assert all(splits.values())
    assert splits == read_novels(str(tmp_path / "a"))
    texts = [{" ".join(novel) for novel in split} for split in splits.values()]
    assert not (texts[0] & texts[1])
    assert not (texts[0] & texts[2])
    assert not (texts[1] & texts[2])
    with pytest.raises(CorpusError, match="has 2 texts; background needs at least 3"):
        read_novels(str(write_novels(tmp_path / "b", 2)))


def test_few_novels_still_leave_some_for_each_part(tmp_path: Path) -> None:
    assert all(read_novels(str(write_novels(tmp_path / "a", 3))).values())


def test_sentences_of_a_novel() -> None:
    text = 'He said "No." Then\n he left! Why?  Nobody knew.'
    assert split_sentences(text) == ['He said "No."', "Then he left!", "Why?", "Nobody knew."]
    assert split_sentences("It cost 3.5 pounds. And then") == ["It cost 3.5 pounds.", "And then"]


def test_reading_goes_on_in_another_novel_without_end() -> None:
    ids = np.arange(30, dtype=np.int32)
    background = Background(ids, np.arange(0, 31, 3), np.array([0, 4, 10]))
    sentences = list(islice(background.stream_sentences(Random(1)), 50))
    assert all(len(sentence.ids) == 3 for sentence in sentences)
    starts = [int(sentence.ids[0]) // 3 for sentence in sentences]
    jumps = [(before, after) for before, after in pairwise(starts) if after != before + 1]
    assert all(before in (3, 9) for before, _ in jumps)  # only the end of a novel is left


# Batches -------------------------------------------------------------------------------------


def test_a_batch_is_the_documents_word_for_word(stories: LoadedData[LongDataset]) -> None:
    train, tokenizer = stories.train, stories.tokenizer
    batch = train.batch(torch.arange(6))
    for row in range(6):
        document = train.draw_document(row)
        segments = [np.concatenate([sentence.ids for sentence in segment]) for segment in document.segments]
        tokens, text_mask = batch.inputs.tokens[row], batch.inputs.text_mask[row]
        assert [tokens[n][text_mask[n]].tolist() for n in range(len(segments))] == [
            segment.tolist() for segment in segments
        ]
        assert not batch.inputs.mask[row, len(segments) :].any()
        example = document.example
        facts = [ids for number, ids in enumerate(example.story) if number in example.facts]
        assert tokens[batch.fact_mask[row]].tolist() == np.concatenate(facts).tolist()
        question = batch.inputs.question[row][batch.inputs.question_mask[row]].tolist()
        assert question == [tokenizer.cls, *example.question.tolist(), tokenizer.sep]
        answer = batch.answers[row][batch.answers[row] != IGNORE].tolist()
        assert answer == [*example.answer.tolist(), tokenizer.sep]


def test_every_segment_is_framed_and_sentences_are_numbered(stories: LoadedData[LongDataset]) -> None:
    inputs = stories.train.batch(torch.arange(6)).inputs
    assert inputs.sentence_ids is not None
    is_segment = inputs.mask.any(-1)
    assert (inputs.tokens[..., 0][is_segment] == stories.tokenizer.cls).all()
    assert ((inputs.tokens == stories.tokenizer.sep).sum(-1)[is_segment] == 1).all()
    assert torch.equal(inputs.sentence_ids >= 0, inputs.text_mask)
    steps = inputs.sentence_ids[..., 1:] - inputs.sentence_ids[..., :-1]
    in_text = inputs.text_mask[..., 1:] & inputs.text_mask[..., :-1]
    assert set(steps[in_text].tolist()) == {0, 1}


def test_dice_change_background_and_length_but_not_the_story(stories: LoadedData[LongDataset]) -> None:
    train, rows = stories.train.with_segments(6), torch.zeros(8, dtype=torch.long)
    batch = train.batch(rows, torch.rand(8, 1))
    counts = batch.inputs.mask.any(-1).sum(1)
    assert len(set(counts.tolist())) > 1
    again = train.batch(rows, torch.rand(8, 1))
    assert not torch.equal(again.inputs.tokens[:, 0], batch.inputs.tokens[:, 0])
    uniforms = torch.rand(8, 1)
    first, second = (train.batch(rows, uniforms) for _ in range(2))
    assert torch.equal(first.inputs.tokens, second.inputs.tokens)
    for row in range(8):
        fact_ids = batch.inputs.tokens[row][batch.fact_mask[row]]
        assert torch.equal(fact_ids, first.inputs.tokens[row][first.fact_mask[row]])


@pytest.mark.parametrize("segments", [1, 5, 20])
def test_documents_are_about_as_long_as_they_should_be(stories: LoadedData[LongDataset], segments: int) -> None:
    test = stories.test.with_segments(segments)
    num_segments = test.batch(torch.arange(5)).inputs.mask.any(-1).sum(1)
    story_segments = (test.lengths[:5] // test.max_text_tokens).tolist()
    for actual, minimum in zip(num_segments.tolist(), story_segments):
        assert max(0.7 * segments, minimum) <= actual <= max(segments, minimum) * 1.4 + 2


def test_a_stream_is_the_batch_in_pieces(stories: LoadedData[LongDataset]) -> None:
    test = stories.test.with_segments(5)
    inputs = test.batch(torch.arange(3)).inputs
    pieces = [batch.inputs.tokens for batch in test.stream(range(3), 2)]
    joined = torch.cat(pieces, 1)
    assert torch.equal(joined[:, : inputs.tokens.shape[1]], inputs.tokens)


def test_ten_million_tokens_need_no_tensor_of_them(stories: LoadedData[LongDataset]) -> None:
    """The stream needs constant memory; a hundredth of it is read here."""
    test: LongDataset = stories.test.with_segments(10_000_000 // stories.test.max_text_tokens)
    stream = test.stream([0], 64)
    tokens = sum(int(batch.inputs.text_mask.sum()) for batch in islice(stream, 5))
    tracemalloc.start()
    tokens += sum(int(batch.inputs.text_mask.sum()) for batch in islice(stream, 70))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert tokens > 90_000
    assert peak < 3_000_000


def test_test_background_is_never_seen_in_training(tmp_path: Path) -> None:
    loaded = data("long-recall", background=str(write_novels(tmp_path / "novels", 20)))
    backgrounds = [split.background for split in (loaded.train, loaded.validation, loaded.test)]
    sentences = [
        {tuple(background.sentence_ids(n)) for n in range(len(background.sentence_starts) - 1)}
        for background in backgrounds
    ]
    assert all(sentences)
    assert not (sentences[0] & sentences[1])
    assert not (sentences[0] & sentences[2])


# The tasks -----------------------------------------------------------------------------------


def test_keys_and_copies_can_be_answered_from_what_is_told() -> None:
    for example in make_key_value_examples(50, 4, 0):
        owner = example.question.split()[2]
        (fact,) = [text for text in example.sentences if text.startswith(owner)]
        assert fact == example.sentences[example.facts[0]]
        assert example.answer == fact.split()[3]
    for example in make_copy_examples(50, 3, 0):
        assert example.answer in example.sentences[0]
        assert len(example.answer.split()) == 3


def test_parts_have_other_examples(stories: LoadedData[LongDataset]) -> None:
    loaded = data("long-recall", facts=3)
    story_texts = [
        {b"".join(ids.tobytes() for ids in example.story) for example in split.examples}
        for split in (loaded.train, loaded.validation, loaded.test)
    ]
    assert not story_texts[0] & story_texts[2]
    assert {int(task) for task in stories.train.task} == {1, 2}
    assert stories.generated_tasks == (1, 2)


def test_documents_go_on_or_not() -> None:
    loaded = data("long-documents", count=400)
    batch = loaded.train.batch(torch.arange(400), torch.rand(400, 1))
    share = (batch.next_sentence_labels == 1).float().mean()
    assert 0.4 < share < 0.6
    assert (batch.answers == IGNORE).all()
    train, background = loaded.train, loaded.train.background
    background_ids = background.ids.tolist()
    for row in range(20):
        document = train.draw_document(row, 0.5)
        document_ids = [int(token) for segment in document.segments for sentence in segment for token in sentence.ids]
        joined = document_ids + document.example.question.tolist()
        if document.follows == 1:  # one span of the text
            assert any(background_ids[n : n + len(joined)] == joined for n in range(len(background_ids)))


def test_official_files_and_novels_are_read(tmp_path: Path) -> None:
    babi = NOVELS.parent / "babi"
    if not NOVELS.is_dir() or not babi.is_dir():
        pytest.skip("no data folder beside the repository")
    loaded = data("long-stories", folder=str(babi), size="1k", tasks=[1], background=str(
        write_novels(tmp_path / "novels")))  # fmt: skip
    assert (len(loaded.train), len(loaded.validation), len(loaded.test)) == (980, 20, 1000)
    assert loaded.generated_tasks == ()


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match=r"data.length is at least 8"):
        data("long-recall", length=4)
    with pytest.raises(ConfigError, match="long texts need subwords"):
        data("long-recall", tokenizer={"kind": "words"})
    with pytest.raises(ConfigError, match="'masked' or 'next'"):
        data("long-documents", target="question")
    with pytest.raises(ConfigError, match="distractors is a share between 0 and 1, not 2"):
        data("long-stories", distractors=2)


def test_sentences_without_tokens_are_left_out() -> None:
    tokenizer = data("long-recall").tokenizer
    background = encode_novels([["the old mill .", " ", "the road ."], [" "]], tokenizer)
    assert len(background) == 1
    assert background.count_sentences(0) == 2
