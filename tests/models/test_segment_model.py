"""A network that carries a memory across segments: what flows, what stops, and what never mixes."""

from typing import Any

import pytest
import torch
from torch import Tensor

from mnemic.models import build_model, check_model
from mnemic.models.inputs import SegmentBatch, pool_sentences
from mnemic.models.segment_model import SegmentModel
from mnemic.recipe import ConfigError
from mnemic.respond.generate import beam_search, greedy_search, sample_texts

VOCAB, LENGTH = 30, 8
KINDS = pytest.mark.parametrize("kind", ["blended", "selective"])
UNITS = pytest.mark.parametrize("unit", ["tokens", "sentences"])


def slice_segments(batch: SegmentBatch, start: int, end: int) -> SegmentBatch:
    """The segments from ``start`` to below ``end``, with the whole question."""
    tensors = {name: value for name, value in batch._asdict().items() if isinstance(value, Tensor)}
    slices: dict[str, Any] = {name: value[:, start:end] for name, value in tensors.items() if value.dim() == 3}
    return batch._replace(**slices, sizes=None)


def make(kind: str = "blended", seed: int = 0, respond: dict[str, Any] | None = None, **carry: Any) -> SegmentModel:
    torch.manual_seed(seed)
    model: dict[str, Any] = {
        "width": 16,
        "encode": {"kind": "transformer", "stack": {"kind": "encoder", "depth": 1}},
        "memory": {"kind": kind, "slots": 12},
        "mass": {},
        "respond": respond or {"kind": "predictor"},
        "segments": carry,
    }
    return build_model(model, {"vocab": VOCAB, "max_length": LENGTH}).eval()


def documents(*counts: int, seed: int = 1) -> SegmentBatch:
    """One document a number, of so many segments; [CLS] is 1, [SEP] 2, words from 5 on."""
    dice = torch.Generator().manual_seed(seed)
    shape = (len(counts), max(counts), LENGTH)
    tokens = torch.randint(5, VOCAB, shape, generator=dice)
    tokens[..., 0], tokens[..., -1] = 1, 2
    mask = (torch.arange(max(counts)) < torch.tensor(counts)[:, None])[..., None].expand(shape)
    inside = mask & (tokens > 2)
    hidden = inside & (torch.rand(shape, generator=dice) < 0.3)
    sentences = ((torch.arange(LENGTH) - 1) // 3).expand(shape).masked_fill(~inside, -1)
    question = torch.randint(5, VOCAB, (len(counts), 4), generator=dice)
    words = torch.randint(5, VOCAB, (len(counts), 3), generator=dice)
    return SegmentBatch(
        tokens * mask, mask, inside, question, question > 0, words, hidden, sentences
    )  # fmt: skip


def rows(inputs: SegmentBatch, first: int, end: int) -> SegmentBatch:
    return SegmentBatch(*(None if part is None else part[first:end] for part in inputs))


@KINDS
@UNITS
def test_documents_of_different_lengths_never_mix(kind: str, unit: str) -> None:
    """Each gives in any batch what it gives alone, word by word, and its memory is the same."""
    network, inputs = make(kind, unit=unit), documents(3, 1, 2)
    together = network(inputs)
    hidden = inputs.prediction_mask
    assert hidden is not None
    per_row = hidden.sum((1, 2)).tolist()
    for row, words in enumerate(together.masked_logits.split(per_row)):
        own = rows(inputs, row, row + 1)
        alone = network(slice_segments(own, 0, (3, 1, 2)[row]))
        torch.testing.assert_close(together.logits[row], alone.logits[0])
        torch.testing.assert_close(together.rest_logits[row], alone.rest_logits[0])
        torch.testing.assert_close(together.nsp_logits[row], alone.nsp_logits[0])
        torch.testing.assert_close(words, alone.masked_logits)
        assert int(together.state.told[row]) == int(alone.state.told[0])


@KINDS
def test_a_document_that_has_ended_keeps_its_memory_bit_for_bit(kind: str) -> None:
    network = make(kind)
    state = network(documents(1, 1)).state
    longer = network(documents(1, 1)._replace(prediction_mask=None))
    assert torch.equal(longer.state.slots, state.slots)
    encoded = network.encode_segments(documents(2, 2, seed=5))
    nothing = encoded._replace(mask=encoded.mask & False, queries=None)
    after, _, _ = network.write_segments(state, nothing)
    assert torch.equal(after.slots[after.mask], state.slots[state.mask])
    assert torch.equal(after.hidden, state.hidden)


@KINDS
@UNITS
def test_piece_by_piece_is_at_once(kind: str, unit: str) -> None:
    """A text of any length needs room for a few segments only."""
    network, inputs = make(kind, unit=unit), documents(5, 3)
    whole = network(inputs)
    state = None
    for first in range(0, 5, 2):
        encoded = network.encode_segments(slice_segments(inputs, first, first + 2))
        state = state if state is not None else network.empty_memory(2, encoded.items[:, 0])
        state, _, _ = network.write_segments(state, encoded)
    torch.testing.assert_close(network.answer_question(state, inputs).logits, whole.logits)
    assert torch.equal(state.told, whole.state.told)


@UNITS
def test_what_cuts_do_not_matter_to_is_written_at_once(unit: str) -> None:
    """One write instead of one a segment: the same slots, sources, answer and gradients."""
    network, inputs = make("selective", unit=unit), documents(5, 3)._replace(prediction_mask=None)
    each = network(inputs, probes="read")  # asking lies between the writes
    first = torch.autograd.grad(each.logits.square().sum(), network.memory.controller.weigh.weight)
    whole = network(inputs, probes="written")
    assert (len(each.write_probes), len(whole.write_probes)) == (5, 1)
    second = torch.autograd.grad(whole.logits.square().sum(), network.memory.controller.weigh.weight)
    torch.testing.assert_close(first, second)
    torch.testing.assert_close(each.logits, whole.logits)
    for (kept, odds), (real, other) in zip(slots_of(each.state), slots_of(whole.state)):
        assert torch.equal(kept, real)
        torch.testing.assert_close(odds, other)
    seen = torch.cat([probe.mask for probe in each.write_probes], 1)
    assert torch.equal(seen, whole.write_probes[0].mask)
    for other in ({"truncate": 2}, {"carry_memory": False}):
        assert len(make("selective", **other)(inputs, probes="written").write_probes) == 5
    assert len(make("blended")(inputs, probes="written").write_probes) == 5


def slots_of(state: Any) -> list[tuple[Tensor, Tensor]]:
    """The sources and odds of the real slots, document by document."""
    return [(own[real], odds[real]) for own, odds, real in zip(state[3], state[2], state[1])]


def gradients(network: SegmentModel, inputs: SegmentBatch) -> Tensor:
    """How much the answer's gradient reaches the embeddings of each segment's own words: b s."""
    table = network.encode.embeddings.tokens
    found = []
    for number in range(inputs.tokens.shape[1]):
        network.zero_grad()
        # words of this segment are replaced by ids that stand nowhere else
        tokens = inputs.tokens.clone()
        tokens[:, number][inputs.text_mask[:, number]] = VOCAB - 1
        changed = inputs._replace(tokens=tokens.clamp(max=VOCAB - 1), prediction_mask=None)
        changed = changed._replace(question=changed.question.clamp(max=VOCAB - 2))
        others = torch.ones_like(tokens, dtype=torch.bool)
        others[:, number] = False
        tokens = tokens.masked_fill(others & (tokens == VOCAB - 1), VOCAB - 2)
        reading = network(changed._replace(tokens=tokens)).reading
        reading.found.square().sum().backward()
        assert table.grad is not None
        found.append(table.grad[VOCAB - 1].abs().sum().clone())
    return torch.stack(found)


@KINDS
@pytest.mark.parametrize(("truncate", "reached"), [(0, 5), (1, 1), (2, 2), (3, 3), (9, 5)])
def test_the_gradient_crosses_borders_and_stops_after_k_segments(kind: str, truncate: int, reached: int) -> None:
    network = make(kind, truncate=truncate).train()
    flows = gradients(network, documents(5)) > 0
    assert flows.tolist() == [number >= 5 - reached for number in range(5)]


def test_each_document_counts_its_own_last_segments() -> None:
    """In a batch with a longer one, a short document's gradient stops where it stops alone."""
    network = make("blended", truncate=1).train()
    inputs = documents(4, 2)
    network(inputs._replace(prediction_mask=None)).logits[1].square().sum().backward()
    among = network.encode.embeddings.tokens.grad
    assert among is not None
    among = among.clone()
    network.zero_grad()
    alone = slice_segments(rows(inputs, 1, 2), 0, 2)._replace(prediction_mask=None)
    network(alone).logits.square().sum().backward()
    torch.testing.assert_close(among, network.encode.embeddings.tokens.grad)


@KINDS
def test_truncation_changes_gradients_alone(kind: str) -> None:
    inputs = documents(4, 2)
    whole, short = make(kind)(inputs), make(kind, truncate=1)(inputs)
    assert torch.equal(whole.logits, short.logits)


@KINDS
def test_without_a_lasting_memory_only_the_last_segment_counts(kind: str) -> None:
    network, inputs = make(kind, carry_memory=False), documents(3, 3)
    last = network(slice_segments(inputs, 2, 3))
    torch.testing.assert_close(network(inputs).logits, last.logits)
    assert (make(kind)(inputs).logits != last.logits).any()


@KINDS
def test_a_hidden_word_is_told_by_what_was_written_before(kind: str) -> None:
    """Segments read the memory before them: an earlier word matters, a later segment's does not."""
    network, inputs = make(kind), documents(3)
    hidden = torch.zeros_like(inputs.mask)
    hidden[:, 1, 3] = True
    inputs = inputs._replace(prediction_mask=hidden)
    before = network(inputs).masked_logits
    for segment, changes in ((0, True), (2, False)):
        tokens = inputs.tokens.clone()
        tokens[0, segment, 2] = 5 if int(tokens[0, segment, 2]) != 5 else 6
        after = network(inputs._replace(tokens=tokens)).masked_logits
        assert bool((after != before).any()) == changes


def test_masked_tokens_alone_are_written_where_the_recipe_says_so() -> None:
    network, inputs = make("selective", tokens="masked"), documents(1)
    written = network(inputs, probes="read").write_probes[0].written
    assert inputs.prediction_mask is not None
    assert torch.equal(written.weights[0].sum(-1) > 0, inputs.prediction_mask[0, 0])
    assert not network(inputs._replace(prediction_mask=None)).state.mask.any()


def test_a_sentence_is_the_mean_of_its_tokens() -> None:
    network, inputs = make("selective", unit="sentences"), documents(2, 1)
    encoded = network.encode_segments(inputs)
    states = network.encode(inputs.tokens[0], inputs.mask[0])  # s n d
    torch.testing.assert_close(encoded.items[0, 1, 1], states[1, 4:7].mean(0))
    assert encoded.mask.sum((1, 2)).tolist() == [4, 2]
    assert network(inputs).state.told.tolist() == [4, 2]


def test_the_rest_of_an_answer_is_said_after_its_first_words() -> None:
    """Scored all at once, or said word by word: the same scores; the first is the predictor's."""
    network, inputs = make(), documents(2, 1)
    told = network(inputs)
    _, _, begin = network.read_question(told.state, inputs)
    state = network.respond.start_decoding(begin.squeeze(1))
    scores, state = network.respond.step(torch.zeros(2, dtype=torch.long), state)
    torch.testing.assert_close(scores, told.logits[:, 0])
    for number in range(2):
        scores, state = network.respond.step(inputs.answer_ids[:, number], state)
        torch.testing.assert_close(scores, told.rest_logits[:, number])


def test_an_answer_can_be_said_greedily_by_beam_and_by_dice() -> None:
    network, inputs = make(), documents(2, 1)
    told = network(inputs)
    _, _, begin = network.read_question(told.state, inputs)
    respond, start = network.respond, torch.zeros(2, dtype=torch.long)
    said = greedy_search(respond.step, respond.start_decoding(begin.squeeze(1)), start, end_id=2, max_tokens=4)
    assert torch.equal(said.tokens[:, 0, 0], told.logits[:, 0].argmax(-1))
    wide = beam_search(
        respond.step, respond.start_decoding(begin.squeeze(1)), start, end_id=2, max_tokens=4, num_beams=3
    )
    assert (wide.log_probabilities[:, 0] >= said.log_probabilities[:, 0] - 1e-5).all()
    dice = torch.Generator().manual_seed(0)
    some = sample_texts(
        respond.step, respond.start_decoding(begin.squeeze(1)), start, end_id=2, max_tokens=4, generator=dice
    )
    assert some.tokens.shape[:2] == (2, 1)


def test_empty_segments_cost_nothing_and_an_empty_document_is_survived() -> None:
    network, inputs = make(), documents(2, 1)
    read: list[int] = []
    network.encode.register_forward_pre_hook(lambda _, given: read.append(len(given[0])))
    network(inputs)
    assert read[0] == 3
    nothing = inputs._replace(mask=inputs.mask & False, text_mask=inputs.text_mask & False, prediction_mask=None)
    assert network(nothing).logits.isfinite().all()


def test_any_encoder_of_tokens_can_be_wrapped() -> None:
    for encode in ({"kind": "recurrent"}, {"kind": "causal"}, {"kind": "transformer"}):
        model = {"width": 16, "encode": encode, "respond": {"kind": "predictor"}, "segments": {}}
        model["memory"] = {"kind": "selective"}
        network = build_model(model, {"vocab": VOCAB, "max_length": LENGTH})
        assert network(documents(2, 1)).logits.shape == (2, 1, VOCAB)
        assert network.respond.vocabulary.words is network.encode.embeddings.tokens


def test_a_question_is_in_a_segment_of_its_own() -> None:
    """Where I has segment embeddings: those of the second reach the answer, not the memory."""
    embeddings = {"kind": "sum", "segments": 2}
    model = {"width": 16, "encode": {"kind": "transformer", "embeddings": embeddings}, "segments": {}}
    model |= {"respond": {"kind": "predictor"}, "memory": {"kind": "selective"}}
    network, inputs = build_model(model, {"vocab": VOCAB, "max_length": LENGTH}).eval(), documents(2, 1)
    before = network(inputs)
    with torch.no_grad():
        network.encode.embeddings.segments[1] += 1.0
    after = network(inputs)
    assert torch.equal(after.state.slots, before.state.slots)
    assert (after.logits != before.logits).any()


def test_a_sentence_embedding_is_of_length_one_and_knows_no_padding() -> None:
    network, inputs = make(), documents(1, 1)
    tokens, mask, inside = (part[:, 0] for part in inputs[:3])
    found = network.embed_texts(tokens, mask, inside)
    torch.testing.assert_close(found.norm(dim=-1), torch.ones(2))
    wide = [torch.cat([part, torch.zeros_like(part[:, :3])], 1) for part in (tokens, mask, inside)]
    torch.testing.assert_close(network.embed_texts(*wide), found)


def test_mistakes_are_named() -> None:
    model = {"width": 16, "encode": {"kind": "bag"}, "respond": {"kind": "predictor"}, "segments": {}}
    check_model(model)
    with pytest.raises(ConfigError, match="no kind 'bag' here"):
        build_model(model, {"vocab": 9, "max_length": 9})
    with pytest.raises(ConfigError, match=r"model.segments and model.fuse do not go together"):
        build_model(model | {"fuse": {"kind": "gru"}}, {"vocab": 9, "max_length": 9})
    with pytest.raises(ConfigError, match="segments does not take 'trunkate'"):
        build_model(
            model | {"encode": {"kind": "recurrent"}, "segments": {"trunkate": 1}}, {"vocab": 9, "max_length": 9}
        )
    with pytest.raises(ConfigError, match=r"no kind 'memn2n' here.*: blended, selective"):
        build_model(
            model | {"encode": {"kind": "recurrent"}, "memory": {"kind": "memn2n"}}, {"vocab": 9, "max_length": 9}
        )
    with pytest.raises(ConfigError, match=r"segments.write_probes is at least 0, not -1"):
        make(write_probes=-1)
    with pytest.raises(ConfigError, match=r"segments.truncate is at least 0, .* not -3"):
        build_model(
            model | {"encode": {"kind": "recurrent"}, "segments": {"truncate": -3}}, {"vocab": 9, "max_length": 9}
        )


def test_who_quotes_says_no_words_and_finds_what_a_speaker_finds() -> None:
    speaker = make("selective", unit="sentences")
    model: dict[str, Any] = {
        "width": 16,
        "encode": {"kind": "transformer", "stack": {"kind": "encoder", "depth": 1}},
        "memory": {"kind": "selective", "slots": 12},
        "respond": {"kind": "quote"},
        "segments": {"unit": "sentences"},
    }
    quoting = build_model(model, {"vocab": VOCAB, "max_length": LENGTH}).eval()
    quoting.load_state_dict({name: own for name, own in speaker.state_dict().items() if name in quoting.state_dict()})
    assert not any(name.startswith("respond") for name in quoting.state_dict())
    inputs = documents(3, 1)._replace(prediction_mask=None)
    said, quoted = speaker(inputs), quoting(inputs, probes="read")
    assert torch.equal(quoted.reading.weights, said.reading.weights)
    assert (quoted.logits.numel(), quoted.rest_logits.numel(), quoted.masked_logits) == (0, 0, None)


def test_a_sum_by_the_root_of_the_number_tells_long_sentences_from_short_ones() -> None:
    """Of equal tokens a sentence of nine is three times as large; its direction is the mean's."""
    values = torch.randn(1, 1, 6).expand(1, 12, 6)
    sentences = torch.tensor([[0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2]])
    sentences[0, -1] = -1
    mean, root = (pool_sentences(values, sentences, 4, root_scaled=own) for own in (False, True))
    torch.testing.assert_close(root[0, :3], mean[0, :3] * torch.tensor([[1.0], [2.0], [6**0.5]]))
    assert root[0, 3].eq(0).all()
    inputs = documents(2, 1)
    means, roots = (make("selective", unit="sentences", pool=pool).encode_segments(inputs).items
                    for pool in ("mean", "root"))  # fmt: skip
    size = (inputs.sentence_ids.unsqueeze(-1) == torch.arange(means.shape[2])).sum(2).sqrt()
    torch.testing.assert_close(roots, means * size.unsqueeze(-1))
