"""Notes on rare words: which words, what is noted, where it is read, and what may not leak.

Shapes: b batch, n tokens, w rare words, d width.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from learn_runs import finish
from pretraining_runs import VOCAB, load_sequences, load_tiny_recipe, make_corpus_batch
from torch import Tensor

from mnemic.checkpoint.folder import load_checkpoint, weights_of
from mnemic.data.corpora import word_keys
from mnemic.data.corpora.word_keys import find_rare_words, find_rows, key_words
from mnemic.encode import TransformerEncoder
from mnemic.encode.embeddings import Embeddings, FactorizedEmbeddings, Notes
from mnemic.memory.notes import average_around_words, start_notes, sum_notes, update_notes
from mnemic.models import TextModel
from mnemic.objectives.pretraining.masked import PretrainingLoss, mask_batch
from mnemic.objectives.pretraining.notes import NotesLoss, hide_masked_words
from mnemic.objectives.pretraining.token_masking import TokenMasking
from mnemic.recipe import ConfigError
from mnemic.respond.pretraining.masked import PretrainingHeads
from mnemic.train.run import fit

D = 16
ROWS = ("tokens", "mask", "segments", "word_starts", "unmaskable", "next_sentence_labels", "mask_seeds", "note_rows")


def make_network() -> TextModel:
    torch.manual_seed(0)
    encode = TransformerEncoder(D, VOCAB, embeddings={"kind": "sum", "segments": 2})
    return TextModel(encode, PretrainingHeads(D, VOCAB, encode.embeddings.tokens)).eval()


def make_batch(**changes: Any) -> Any:
    """Make a batch whose words have one or two tokens, some of them with notes."""
    batch = make_corpus_batch([1, 0, 1])
    word_starts = batch.unmaskable | (torch.arange(12) % 3 != 2)
    note_rows = torch.where(batch.unmaskable, -1, (torch.arange(12) // 3 - 1).expand(3, -1))
    return batch._replace(word_starts=word_starts, note_rows=note_rows, num_notes=4)._replace(**changes)


# Which words are rare ---------------------------------------------------------------------------


def list_words(ids: list[int], word_starts: list[bool]) -> list[tuple[int, ...]]:
    """List words by a plain loop."""
    words: list[list[int]] = []
    for token, is_start in zip(ids, word_starts, strict=True):
        if is_start:
            words.append([])
        words[-1].append(token)
    return [tuple(word) for word in words]


@pytest.mark.parametrize("block_tokens", [40, 2_000_000])
def test_rare_words_are_counted_by_all_their_tokens(block_tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a plain loop, in blocks or at once: the words of the right counts, and no others."""
    monkeypatch.setattr(word_keys, "BLOCK_TOKENS", block_tokens)
    rng = np.random.default_rng(0)
    ids, starts = rng.integers(5, 14, (30, 13)), rng.random((30, 13)) < 0.6
    ids[:, 0], ids[:, -1] = 2, 3
    starts[:, :2], starts[:, -1] = True, True
    words = [word for row in range(30) for word in list_words(ids[row].tolist(), starts[row].tolist())]
    counts = Counter(word for word in words if not {2, 3} & {*word})
    expected = {word for word, count in counts.items() if 2 <= count <= 4}
    packed = (ids * 2 + starts).flatten().astype(np.uint16)
    special_ids = torch.tensor([0, 1, 2, 3, 4])
    keys = find_rare_words(packed, np.full(30, 13, dtype=np.int32), special_ids, min_count=2, max_count=4)
    assert 5 < len(expected) == len(keys)
    assert (keys[1:] > keys[:-1]).all()
    rows = find_rows(key_words(torch.from_numpy(ids), torch.from_numpy(starts)), keys)
    row_of: dict[tuple[int, ...], int] = {}
    for row in range(30):
        position = 0
        for word in list_words(ids[row].tolist(), starts[row].tolist()):
            for _ in word:
                found_row = int(rows[row, position])
                assert (found_row >= 0) == (word in expected)
                assert row_of.setdefault(word, found_row) == found_row
                position += 1
    assert len({number for number in row_of.values() if number >= 0}) == len(expected)


def test_sequences_say_which_words_are_rare() -> None:
    """Of a real corpus; validation has no notes."""
    train, validation = load_sequences(rare_words=[100, 300])
    batch = train.batch(torch.arange(8))
    assert batch.num_notes > 3
    assert 0 < int((batch.note_rows >= 0).sum()) < batch.note_rows.numel()
    assert (batch.note_rows[batch.unmaskable] == -1).all()
    assert validation.batch(torch.arange(2)).note_rows is None
    assert load_sequences()[0].batch(torch.arange(2)).note_rows is None
    with pytest.raises(ConfigError, match=r"data\.rare_words are two numbers"):
        load_sequences(rare_words=[3])
    with pytest.raises(ConfigError, match=r"the least and the largest number of times"):
        load_sequences(rare_words=[9, 3])


# What is noted ----------------------------------------------------------------------------------


def test_notes_are_means_around_the_word() -> None:
    """By a plain loop, in float64; fewer states at the ends of a text."""
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(2, 10, 3, generator=generator)
    mask = torch.arange(10) < torch.tensor([[10], [7]])
    word_starts = torch.tensor([[1, 1, 0, 0, 1, 1, 0, 1, 1, 0], [1, 0, 1, 1, 1, 0, 0, 1, 1, 1]]).bool() | ~mask
    means = average_around_words(states, mask, word_starts, 2)
    for row, length in enumerate((10, 7)):
        starts = [position for position in range(length) if word_starts[row, position]]
        for start, end in zip(starts, [*starts[1:], length]):
            expected = states[row, max(start - 2, 0) : min(end + 2, length)].double().mean(0)
            torch.testing.assert_close(means[row, start].double(), expected, atol=1e-5, rtol=1e-5)


def test_a_note_is_a_moving_average_of_means() -> None:
    """Several occurrences are averaged first; other notes stay to the bit."""
    notes = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    means = torch.randn(2, 3, 3, generator=torch.Generator().manual_seed(1))
    rows = torch.tensor([[2, -1, 0], [-1, 2, 2]])
    sums = sum_notes(means, rows, 4)
    new = update_notes(notes, sums, 0.1)
    torch.testing.assert_close(new[0], 0.9 * notes[0] + 0.1 * means[0, 2])
    torch.testing.assert_close(new[2], 0.9 * notes[2] + 0.1 * (means[0, 0] + means[1, 1] + means[1, 2]) / 3)
    assert torch.equal(new[[1, 3]], notes[[1, 3]])
    assert torch.equal(update_notes(notes, sums, 0.0), notes)


def test_notes_are_taken_from_the_states_of_this_step() -> None:
    """Once per word, whether it is masked or not, and after its own loss."""
    network, batch = make_network(), make_batch()
    objective = NotesLoss(rate=0.25, reach=1, network=network)
    start = start_notes(4, D, objective.seed, torch.device("cpu"))
    loss = objective(network, batch)
    assert loss.carried is not None
    masked = mask_batch(batch, TokenMasking())
    rows = hide_masked_words(batch.note_rows, batch.word_starts, masked.inputs.answer_mask)
    states = network(masked.inputs._replace(notes=Notes(start, rows, 0.5))).states
    for number in range(4):
        means = []
        for row, length in enumerate(batch.mask.sum(1).tolist()):
            starts = [position for position in range(length) if batch.word_starts[row, position]]
            for first, end in zip(starts, [*starts[1:], length]):
                if batch.note_rows[row, first] == number:
                    means.append(states[row, max(first - 1, 0) : min(end + 1, length)].mean(0))
        expected = start[number] if not means else 0.75 * start[number] + 0.25 * torch.stack(means).mean(0)
        torch.testing.assert_close(loss.carried["notes"][number], expected)
    assert not loss.carried["notes"].requires_grad


def test_a_batch_in_parts_takes_the_notes_of_the_whole() -> None:
    """With train.accumulate all parts read the notes of the step before, and change them once."""
    network, batch = make_network(), make_batch()
    table = torch.randn(4, D, generator=torch.Generator().manual_seed(2))
    whole = NotesLoss(rate=0.25, network=network)(network, batch, {"notes": table})
    objective, carried, total = NotesLoss(rate=0.25, network=network, shards=3), {"notes": table}, 0.0
    for row in range(3):
        part = batch._replace(**{name: getattr(batch, name)[row : row + 1] for name in ROWS})
        loss = objective(network, part, carried)
        assert loss.carried is not None
        carried, total = loss.carried, total + float(loss.total.detach())
        assert torch.equal(carried["notes"], table) == (row < 2)
    assert total == pytest.approx(float(whole.total.detach()), rel=1e-5)
    assert whole.carried is not None
    assert whole.carried.keys() == carried.keys()
    torch.testing.assert_close(carried["notes"], whole.carried["notes"])


def take_notes_of_rows(rows: slice) -> Tensor:
    """Return the notes after a step on some rows of a batch, with those of other processes."""
    network, batch = make_network(), make_batch()
    part = batch._replace(**{name: getattr(batch, name)[rows] for name in ROWS})
    table = torch.randn(4, D, generator=torch.Generator().manual_seed(2))
    carried = NotesLoss(rate=0.25, network=network)(network, part, {"notes": table}).carried
    assert carried is not None
    return carried["notes"]


def run_process(rank: int, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.save(take_notes_of_rows(slice(0, 2) if rank == 0 else slice(2, 3)), f"{folder}/{rank}")
    dist.destroy_process_group()


@pytest.mark.slow
def test_two_processes_take_the_notes_of_one(tmp_path: Path) -> None:
    """Sums and counts are added up over processes, whose rows are not equally many."""
    mp.spawn(run_process, (str(tmp_path),), nprocs=2)
    first, second = (torch.load(tmp_path / str(rank)) for rank in (0, 1))
    assert torch.equal(first, second)
    torch.testing.assert_close(first, take_notes_of_rows(slice(None)))


# Where it is read -------------------------------------------------------------------------------


def test_notes_are_mixed_into_token_and_position() -> None:
    """(1 - λ) (token + position) + λ note, then segments and the norm."""
    torch.manual_seed(0)
    embeddings = Embeddings(D, VOCAB, segments=2)
    tokens, segments = torch.tensor([[7, 9, 11]]), torch.tensor([[0, 1, 1]])
    notes = Notes(torch.randn(2, D), torch.tensor([[1, -1, 0]]), 0.3)
    x = embeddings(tokens, tokens > 0, segments=segments, notes=notes)[0]
    for position, row in enumerate([1, -1, 0]):
        vector = embeddings.tokens[tokens[0, position]] + embeddings.positions.table[position]
        vector = vector if row < 0 else 0.7 * vector + 0.3 * notes.vectors[row]
        torch.testing.assert_close(x[position], embeddings.norm(vector + embeddings.segments[segments[0, position]]))
    factorized = FactorizedEmbeddings(D, VOCAB, embedding_width=4)
    plain, noted = (factorized(tokens, tokens > 0, notes=n)[0] for n in (None, notes))
    torch.testing.assert_close(noted[0], 0.7 * plain[0] + 0.3 * notes.vectors[1])
    assert torch.equal(noted[1], plain[1])


def hide_slowly(batch: Any, masked_positions: Tensor) -> Tensor:
    """Take the notes from words with a masked token, word by word."""
    flags = torch.zeros(batch.tokens.numel() + 1, dtype=torch.bool)
    flags[masked_positions] = True
    flags, rows = flags[:-1].view_as(batch.tokens), batch.note_rows.clone()
    for row in range(len(rows)):
        starts = [position for position in range(12) if batch.word_starts[row, position]]
        for first, end in zip(starts, [*starts[1:], 12]):
            if flags[row, first:end].any():
                rows[row, first:end] = -1
    return rows


@pytest.mark.parametrize("capacity", [0, 36])
def test_no_note_where_a_token_of_the_word_is_masked(capacity: int) -> None:
    """Whatever replaces it: [MASK], another token, or itself; all tokens of the word."""
    batch = make_batch()._replace(max_tokens=capacity)
    positions = mask_batch(batch, TokenMasking(rate=0.3)).inputs.answer_mask
    rows = hide_masked_words(batch.note_rows, batch.word_starts, positions)
    expected = hide_slowly(batch, positions)
    assert torch.equal(rows, expected)
    num_hidden = int(((expected == -1) & (batch.note_rows >= 0)).sum())
    assert num_hidden > int((batch.note_rows.flatten()[positions[positions < 36]] >= 0).sum()) > 1


def test_the_note_of_a_masked_word_changes_no_prediction() -> None:
    """Another note for the masked words gives the same loss; one for others does not."""
    network, batch = make_network(), make_batch()
    expected = hide_slowly(batch, mask_batch(batch, TokenMasking(rate=0.3)).inputs.answer_mask)
    is_hidden = (expected == -1) & (batch.note_rows >= 0)
    batch = batch._replace(note_rows=batch.note_rows.masked_fill(is_hidden, 4), num_notes=5)
    table = torch.randn(5, D, generator=torch.Generator().manual_seed(2))
    objective = NotesLoss(network=network, objective={"kind": "masked", "masking": {"kind": "tokens", "rate": 0.3}})
    expected_loss = objective(network, batch, {"notes": table}).total
    for number in range(5):
        changed = table.clone()
        changed[number] += torch.randn(D, generator=torch.Generator().manual_seed(3))
        loss = objective(network, batch, {"notes": changed}).total
        assert torch.equal(loss, expected_loss) == (number == 4 or not (expected == number).any())


def test_without_share_and_rate_it_is_plain_bert() -> None:
    """The same loss and the same gradients, to the bit."""
    gradients: list[list[Tensor]] = []
    for objective in (PretrainingLoss(), NotesLoss(share=0.0, rate=0.0)):
        network, batch = make_network(), make_batch()
        loss = objective(network, batch)  # type: ignore[operator]
        gradients.append([loss.total, *torch.autograd.grad(loss.total, list(network.parameters()), allow_unused=True)])
    for plain, noted in zip(*gradients, strict=True):
        assert (plain is None and noted is None) or torch.equal(plain, noted)


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match="a share and a rate from 0 to 1 and a reach from 0 on, not 2, 0"):
        NotesLoss(share=2)
    with pytest.raises(ConfigError, match=r"set data\.rare_words, such as \[5, 50\]"):
        NotesLoss()(make_network(), make_corpus_batch([1]))


def test_a_stopped_run_ends_with_the_same_notes_and_weights(tmp_path: Path) -> None:
    """To the bit; a finished network has no notes."""
    sets = ["train.steps=12", "train.log=5", "train.save=4", "data.rare_words=[100, 300]"]
    recipe = load_tiny_recipe("tnf-pretrain", *sets)
    finish(recipe, tmp_path / "whole", device="cpu")
    steps = fit(recipe, tmp_path / "stopped", device="cpu")
    for _ in range(7):
        next(steps)
    steps.close()  # type: ignore[attr-defined]
    state = load_checkpoint(tmp_path / "stopped").state
    notes = state["carried.notes"]
    assert notes.shape[0] > 3
    assert notes.shape[1] == 32
    finish(recipe, tmp_path / "stopped", device="cpu")
    expected_weights, weights = (weights_of(load_checkpoint(tmp_path / n).network) for n in ("whole", "stopped"))
    assert all(torch.equal(expected_weights[name], weights[name]) for name in expected_weights)
    assert not [name for name in weights if "note" in name]
