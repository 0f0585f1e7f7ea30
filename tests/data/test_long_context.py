"""Long texts: facts hidden among background, cut into segments, made only when they are read."""

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
LITTLE: dict[str, Any] = {"length": 24, "segments": 3, "count": 60}
LITTLE["tokenizer"] = {"kind": "wordpiece", "vocab": 400}


def data(kind: str, **options: Any) -> LoadedData[LongDataset]:
    return build(DATASETS, {"kind": kind, **LITTLE, **options}).load()


@pytest.fixture(scope="module")
def stories() -> LoadedData[LongDataset]:
    return data("long-stories", tasks=[1, 2])


def words(*sizes: int) -> list[np.ndarray]:
    return [np.full(size, place) for place, size in enumerate(sizes)]


def others(size: int = 5) -> Any:
    return (SentenceTokens(np.full(size, -place)) for place in count(1))


def novels(folder: Path, texts: int = 12) -> Path:
    folder.mkdir()
    rows = [{"text": " ".join(f"Word{n} stands here {k}." for k in range(40))} for n in range(texts)]
    (folder / "novels.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return folder


# Hiding --------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 10, 200, 5000])
def test_the_story_stands_whole_and_in_order_among_background(length: int) -> None:
    story = words(4, 6, 3)
    pieces = list(hide_story(story, others(), length, Random(0)))
    told = [piece for piece in pieces if piece.fact >= 0]
    assert [piece.fact for piece in told] == [0, 1, 2]
    assert all(piece.ids is story[piece.fact] for piece in told)
    size = sum(len(piece.ids) for piece in pieces)
    assert max(length, 13) <= size < max(length, 13) + 5
    back = [int(piece.ids[0]) for piece in pieces if piece.fact < 0]
    assert back == [-place for place in range(1, len(back) + 1)]  # in its own order


def test_facts_stand_anywhere_with_equal_chances_or_first() -> None:
    places = []
    for seed in range(400):
        before = 0
        for piece in hide_story(words(1), others(), 1000, Random(seed)):
            if piece.fact == 0:
                break
            before += 5
        places.append(before / 1000)
    quarters = np.histogram(places, bins=4, range=(0, 1))[0]
    assert quarters.min() > 70
    both = [placed(seed) for seed in range(200)]  # of two, a third and two thirds of the way
    assert abs(np.mean([own[0] for own in both]) - 1 / 3) < 0.05
    assert abs(np.mean([own[1] for own in both]) - 2 / 3) < 0.05
    first = list(hide_story(words(4, 6), others(), 300, Random(0), position="first"))
    assert [piece.fact for piece in first[:3]] == [0, 1, -1]


def test_near_misses_are_almost_of_the_story_and_never_of_it() -> None:
    story = [np.array(own) for own in ([1, 2, 3, 4, 0], [1, 5, 3, 6, 0], [7, 0])]
    told = [own.tolist() for own in story]
    seen = [own.ids.tolist() for own in islice(insert_distractors(story, others(), 0.5, Random(0)), 3000)]
    missed = [own for own in seen if own[0] > 0 or own[-1] >= 0]
    assert [own for own in seen if own not in missed][:2] == [[-1] * 5, [-2] * 5], "nothing is lost"
    assert 0.35 < len(missed) / (len(seen) - len(missed)) < 0.46  # some are the story's: left out
    assert not any(own in told for own in missed)
    assert [1, 2, 0] in missed
    assert [2, 3, 4, 0] in missed  # parts, with the last token
    strange = [own for own in missed if min(own) < 0]
    assert strange
    assert all(sum(token < 0 for token in own) == 1 for own in strange), "one word is another's"
    none = insert_distractors(story, others(), 0.0, Random(0))
    assert [own.ids[0] for own in islice(none, 50)] == [-n for n in range(1, 51)]


def test_near_misses_are_for_training_alone() -> None:
    found = data("long-stories", tasks=[1], distractors=0.3)
    assert (found.train.distractor_rate, found.validation.distractor_rate, found.test.distractor_rate) == (
        0.3,
        0.0,
        0.0,
    )
    plain = data("long-stories", tasks=[1])

    def background(examples: LongDataset) -> set[tuple[int, ...]]:
        made = (examples.draw_document(0, roll).segments for roll in (0.1, 0.2, 0.3))
        return {tuple(piece.ids.tolist()) for own in made for part in own for piece in part if piece.fact < 0}

    known = {tuple(own.ids.tolist()) for own in plain.train.background.sentences}
    assert background(plain.train) <= known
    assert background(found.train) - known


def test_segments_hold_whole_sentences_and_everything_once() -> None:
    dice = Random(0)
    pieces = [SentenceTokens(np.arange(dice.randint(1, 12)), place) for place in range(200)]
    segments = list(cut_segments(pieces, 20))
    assert [piece.fact for own in segments for piece in own] == list(range(200))
    assert all(0 < sum(len(piece.ids) for piece in own) <= 20 for own in segments)
    for own, after in pairwise(segments):  # the next sentence had no room
        assert sum(len(piece.ids) for piece in own) + len(after[0].ids) > 20


def test_a_sentence_longer_than_a_segment_is_cut_and_nothing_is_lost() -> None:
    segments = list(cut_segments([SentenceTokens(np.arange(3)), SentenceTokens(np.arange(50), 7)], 20))
    whole = np.concatenate([piece.ids for own in segments for piece in own if piece.fact == 7])
    assert whole.tolist() == list(range(50))
    assert list(cut_segments([], 20)) == [[]]


def test_a_paragraph_begins_a_segment_unless_all_of_it_has_room() -> None:
    def told(*paragraphs: list[int]) -> list[list[int]]:
        """The sizes of sentences, paragraph by paragraph → those of each segment's sentences."""
        pieces = [
            SentenceTokens(np.zeros(size), paragraph_tokens=0 if place else sum(own))
            for own in paragraphs
            for place, size in enumerate(own)
        ]
        return [[len(piece.ids) for piece in own] for own in cut_segments(pieces, 10)]

    assert told([3, 3], [2, 2]) == [[3, 3, 2, 2]]
    assert told([3, 3], [2, 3]) == [[3, 3], [2, 3]]
    assert told([3], [4, 4, 4]) == [[3], [4, 4], [4]]  # longer than a segment, it still begins one
    assert told([3], [25]) == [[3], [10], [10], [5]]
    assert told([1, 25]) == [[1], [10], [10], [5]]


def placed(seed: int) -> list[float]:
    """Where two facts stand in a thousand tokens."""
    found, told = [], 0
    for piece in hide_story(words(1, 1), others(), 1000, Random(seed)):
        found += [told / 1000] if piece.fact >= 0 else []
        told += len(piece.ids)
    return found


# Background ----------------------------------------------------------------------------------


def test_novels_are_parted_whole_and_the_same_ones_always(tmp_path: Path) -> None:
    first = read_novels(str(novels(tmp_path / "a", 40)))
    assert sum(len(own) for own in first.values()) == 40
    assert all(first.values())
    assert first == read_novels(str(tmp_path / "a"))
    texts = [{" ".join(novel) for novel in own} for own in first.values()]
    assert not (texts[0] & texts[1])
    assert not (texts[0] & texts[2])
    assert not (texts[1] & texts[2])
    with pytest.raises(CorpusError, match="has 2 texts; background needs at least 3"):
        read_novels(str(novels(tmp_path / "b", 2)))


def test_few_novels_still_leave_some_for_each_part(tmp_path: Path) -> None:
    assert all(read_novels(str(novels(tmp_path / "a", 3))).values())


def test_sentences_of_a_novel() -> None:
    text = 'He said "No." Then\n he left! Why?  Nobody knew.'
    assert split_sentences(text) == ['He said "No."', "Then he left!", "Why?", "Nobody knew."]
    assert split_sentences("It cost 3.5 pounds. And then") == ["It cost 3.5 pounds.", "And then"]


def test_reading_goes_on_in_another_novel_without_end() -> None:
    ids = np.arange(30, dtype=np.int32)
    background = Background(ids, np.arange(0, 31, 3), np.array([0, 4, 10]))
    read = list(islice(background.stream_sentences(Random(1)), 50))
    assert all(len(sentence.ids) == 3 for sentence in read)
    starts = [int(sentence.ids[0]) // 3 for sentence in read]
    steps = [(a, b) for a, b in pairwise(starts) if b != a + 1]
    assert all(a in (3, 9) for a, _ in steps)  # only the end of a novel is left


# Batches -------------------------------------------------------------------------------------


def test_a_batch_is_the_documents_word_for_word(stories: LoadedData[LongDataset]) -> None:
    part, tokenizer = stories.train, stories.tokenizer
    batch = part.batch(torch.arange(6))
    for row in range(6):
        document = part.draw_document(row)
        told = [np.concatenate([piece.ids for piece in own]) for own in document.segments]
        tokens, inside = batch.inputs.tokens[row], batch.inputs.text_mask[row]
        assert [tokens[n][inside[n]].tolist() for n in range(len(told))] == [t.tolist() for t in told]
        assert not batch.inputs.mask[row, len(told) :].any()
        own = document.example
        facts = [ids for number, ids in enumerate(own.story) if number in own.facts]
        assert tokens[batch.fact_mask[row]].tolist() == np.concatenate(facts).tolist()
        asked = batch.inputs.question[row][batch.inputs.question_mask[row]].tolist()
        assert asked == [tokenizer.cls, *own.question.tolist(), tokenizer.sep]
        said = batch.answers[row][batch.answers[row] != IGNORE].tolist()
        assert said == [*own.answer.tolist(), tokenizer.sep]


def test_every_segment_is_framed_and_sentences_are_numbered(stories: LoadedData[LongDataset]) -> None:
    inputs = stories.train.batch(torch.arange(6)).inputs
    assert inputs.sentence_ids is not None
    real = inputs.mask.any(-1)
    assert (inputs.tokens[..., 0][real] == stories.tokenizer.cls).all()
    assert ((inputs.tokens == stories.tokenizer.sep).sum(-1)[real] == 1).all()
    assert torch.equal(inputs.sentence_ids >= 0, inputs.text_mask)
    steps = inputs.sentence_ids[..., 1:] - inputs.sentence_ids[..., :-1]
    both = inputs.text_mask[..., 1:] & inputs.text_mask[..., :-1]
    assert set(steps[both].tolist()) == {0, 1}


def test_dice_change_background_and_length_but_not_the_story(stories: LoadedData[LongDataset]) -> None:
    part, rows = stories.train.with_segments(6), torch.zeros(8, dtype=torch.long)
    batch = part.batch(rows, torch.rand(8, 1))
    counts = batch.inputs.mask.any(-1).sum(1)
    assert len(set(counts.tolist())) > 1
    again = part.batch(rows, torch.rand(8, 1))
    assert not torch.equal(again.inputs.tokens[:, 0], batch.inputs.tokens[:, 0])
    rolls = torch.rand(8, 1)
    one, two = (part.batch(rows, rolls) for _ in range(2))
    assert torch.equal(one.inputs.tokens, two.inputs.tokens)
    for row in range(8):
        needed = batch.inputs.tokens[row][batch.fact_mask[row]]
        assert torch.equal(needed, one.inputs.tokens[row][one.fact_mask[row]])


@pytest.mark.parametrize("segments", [1, 5, 20])
def test_documents_are_about_as_long_as_they_should_be(stories: LoadedData[LongDataset], segments: int) -> None:
    part = stories.test.with_segments(segments)
    told = part.batch(torch.arange(5)).inputs.mask.any(-1).sum(1)
    least = (part.lengths[:5] // part.max_text_tokens).tolist()
    for found, story in zip(told.tolist(), least):
        assert max(0.7 * segments, story) <= found <= max(segments, story) * 1.4 + 2


def test_a_stream_is_the_batch_in_pieces(stories: LoadedData[LongDataset]) -> None:
    part = stories.test.with_segments(5)
    whole = part.batch(torch.arange(3)).inputs
    pieces = [batch.inputs.tokens for batch in part.stream(range(3), 2)]
    joined = torch.cat(pieces, 1)
    assert torch.equal(joined[:, : whole.tokens.shape[1]], whole.tokens)


def test_ten_million_tokens_need_no_tensor_of_them(stories: LoadedData[LongDataset]) -> None:
    """The stream goes on at a fixed size; a hundredth of it is read here."""
    part: LongDataset = stories.test.with_segments(10_000_000 // stories.test.max_text_tokens)
    stream = part.stream([0], 64)
    tokens = sum(int(batch.inputs.text_mask.sum()) for batch in islice(stream, 5))
    tracemalloc.start()
    tokens += sum(int(batch.inputs.text_mask.sum()) for batch in islice(stream, 70))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert tokens > 90_000
    assert peak < 3_000_000


def test_test_background_is_never_seen_in_training(tmp_path: Path) -> None:
    found = data("long-recall", background=str(novels(tmp_path / "novels", 20)))
    texts = [own.background for own in (found.train, found.validation, found.test)]
    seen = [{tuple(b.sentence_ids(n)) for n in range(len(b.sentence_starts) - 1)} for b in texts]
    assert all(seen)
    assert not (seen[0] & seen[1])
    assert not (seen[0] & seen[2])


# The tasks -----------------------------------------------------------------------------------


def test_keys_and_copies_can_be_answered_from_what_is_told() -> None:
    for own in make_key_value_examples(50, 4, 0):
        owner = own.question.split()[2]
        (told,) = [text for text in own.sentences if text.startswith(owner)]
        assert told == own.sentences[own.facts[0]]
        assert own.answer == told.split()[3]
    for own in make_copy_examples(50, 3, 0):
        assert own.answer in own.sentences[0]
        assert len(own.answer.split()) == 3


def test_parts_have_other_examples(stories: LoadedData[LongDataset]) -> None:
    found = data("long-recall", facts=3)
    texts = [
        {b"".join(ids.tobytes() for ids in own.story) for own in part.examples}
        for part in (found.train, found.validation, found.test)
    ]
    assert not texts[0] & texts[2]
    assert {int(task) for task in stories.train.task} == {1, 2}
    assert stories.generated_tasks == (1, 2)


def test_documents_go_on_or_not() -> None:
    found = data("long-documents", count=400)
    batch = found.train.batch(torch.arange(400), torch.rand(400, 1))
    share = (batch.next_sentence_labels == 1).float().mean()
    assert 0.4 < share < 0.6
    assert (batch.answers == IGNORE).all()
    part, texts = found.train, found.train.background
    whole = texts.ids.tolist()
    for row in range(20):
        document = part.draw_document(row, 0.5)
        told = [int(i) for own in document.segments for piece in own for i in piece.ids]
        joined = told + document.example.question.tolist()
        if document.follows == 1:  # one stretch of the text
            assert any(whole[n : n + len(joined)] == joined for n in range(len(whole)))


def test_official_files_and_novels_are_read(tmp_path: Path) -> None:
    babi = NOVELS.parent / "babi"
    if not NOVELS.is_dir() or not babi.is_dir():
        pytest.skip("no data folder beside the repository")
    found = data("long-stories", folder=str(babi), size="1k", tasks=[1], background=str(
        novels(tmp_path / "novels")))  # fmt: skip
    assert (len(found.train), len(found.validation), len(found.test)) == (980, 20, 1000)
    assert found.generated_tasks == ()


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
