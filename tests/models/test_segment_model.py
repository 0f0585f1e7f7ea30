"""A model that carries a memory across segments: states, gradients, answers and options."""

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
    """Keep the segments from ``start`` to below ``end``, with the whole question."""
    tensors = {name: value for name, value in batch._asdict().items() if isinstance(value, Tensor)}
    slices: dict[str, Any] = {name: value[:, start:end] for name, value in tensors.items() if value.dim() == 3}
    return batch._replace(**slices, sizes=None)


def make_model(
    kind: str = "blended", seed: int = 0, respond: dict[str, Any] | None = None, **segment_options: Any
) -> SegmentModel:
    torch.manual_seed(seed)
    model: dict[str, Any] = {
        "width": 16,
        "encode": {"kind": "transformer", "stack": {"kind": "encoder", "depth": 1}},
        "memory": {"kind": kind, "slots": 12},
        "mass": {},
        "respond": respond or {"kind": "predictor"},
        "segments": segment_options,
    }
    return build_model(model, {"vocab": VOCAB, "max_length": LENGTH}).eval()


def documents(*counts: int, seed: int = 1) -> SegmentBatch:
    """Make documents of so many segments each; [CLS] is 1, [SEP] 2."""
    generator = torch.Generator().manual_seed(seed)
    shape = (len(counts), max(counts), LENGTH)
    tokens = torch.randint(5, VOCAB, shape, generator=generator)
    tokens[..., 0], tokens[..., -1] = 1, 2
    mask = (torch.arange(max(counts)) < torch.tensor(counts)[:, None])[..., None].expand(shape)
    text_mask = mask & (tokens > 2)
    prediction_mask = text_mask & (torch.rand(shape, generator=generator) < 0.3)
    sentences = ((torch.arange(LENGTH) - 1) // 3).expand(shape).masked_fill(~text_mask, -1)
    question = torch.randint(5, VOCAB, (len(counts), 4), generator=generator)
    answer_ids = torch.randint(5, VOCAB, (len(counts), 3), generator=generator)
    return SegmentBatch(
        tokens * mask, mask, text_mask, question, question > 0, answer_ids, prediction_mask, sentences
    )  # fmt: skip


def select_rows(inputs: SegmentBatch, first: int, end: int) -> SegmentBatch:
    return SegmentBatch(*(None if field is None else field[first:end] for field in inputs))


@KINDS
@UNITS
def test_documents_of_different_lengths_never_mix(kind: str, unit: str) -> None:
    """Logits and memory of a document are the same in any batch."""
    network, inputs = make_model(kind, unit=unit), documents(3, 1, 2)
    together = network(inputs)
    hidden = inputs.prediction_mask
    assert hidden is not None
    num_masked = hidden.sum((1, 2)).tolist()
    for row, word_logits in enumerate(together.masked_logits.split(num_masked)):
        document = select_rows(inputs, row, row + 1)
        alone = network(slice_segments(document, 0, (3, 1, 2)[row]))
        torch.testing.assert_close(together.logits[row], alone.logits[0])
        torch.testing.assert_close(together.rest_logits[row], alone.rest_logits[0])
        torch.testing.assert_close(together.nsp_logits[row], alone.nsp_logits[0])
        torch.testing.assert_close(word_logits, alone.masked_logits)
        assert int(together.state.told[row]) == int(alone.state.told[0])


@KINDS
def test_a_document_that_has_ended_keeps_its_memory_bit_for_bit(kind: str) -> None:
    network = make_model(kind)
    state = network(documents(1, 1)).state
    longer = network(documents(1, 1)._replace(prediction_mask=None))
    assert torch.equal(longer.state.slots, state.slots)
    encoded = network.encode_segments(documents(2, 2, seed=5))
    masked_segments = encoded._replace(mask=encoded.mask & False, queries=None)
    after, _, _ = network.write_segments(state, masked_segments)
    assert torch.equal(after.slots[after.mask], state.slots[state.mask])
    assert torch.equal(after.hidden, state.hidden)


@KINDS
@UNITS
def test_reading_in_chunks_equals_reading_at_once(kind: str, unit: str) -> None:
    """So a text of any length needs memory for only a few segments."""
    network, inputs = make_model(kind, unit=unit), documents(5, 3)
    expected = network(inputs)
    state = None
    for first in range(0, 5, 2):
        encoded = network.encode_segments(slice_segments(inputs, first, first + 2))
        state = state if state is not None else network.empty_memory(2, encoded.items[:, 0])
        state, _, _ = network.write_segments(state, encoded)
    torch.testing.assert_close(network.answer_question(state, inputs).logits, expected.logits)
    assert torch.equal(state.told, expected.state.told)


@UNITS
def test_a_selective_memory_is_written_at_once(unit: str) -> None:
    """One write instead of one per segment: the same slots, sources, answer and gradients."""
    network, inputs = make_model("selective", unit=unit), documents(5, 3)._replace(prediction_mask=None)
    per_segment = network(inputs, probes="read")  # probes need one write per segment
    first = torch.autograd.grad(per_segment.logits.square().sum(), network.memory.controller.weigh.weight)
    at_once = network(inputs, probes="written")
    assert (len(per_segment.write_probes), len(at_once.write_probes)) == (5, 1)
    second = torch.autograd.grad(at_once.logits.square().sum(), network.memory.controller.weigh.weight)
    torch.testing.assert_close(first, second)
    torch.testing.assert_close(per_segment.logits, at_once.logits)
    for (sources, logits), (other_sources, other_logits) in zip(
        real_slots(per_segment.state), real_slots(at_once.state)
    ):
        assert torch.equal(sources, other_sources)
        torch.testing.assert_close(logits, other_logits)
    masks = torch.cat([probe.mask for probe in per_segment.write_probes], 1)
    assert torch.equal(masks, at_once.write_probes[0].mask)
    for options in ({"truncate": 2}, {"carry_memory": False}):
        assert len(make_model("selective", **options)(inputs, probes="written").write_probes) == 5
    assert len(make_model("blended")(inputs, probes="written").write_probes) == 5


def real_slots(state: Any) -> list[tuple[Tensor, Tensor]]:
    """Return the sources and logits of the real slots, per document."""
    return [(sources[is_real], logits[is_real]) for sources, logits, is_real in zip(state[3], state[2], state[1])]


def compute_gradients_per_segment(network: SegmentModel, inputs: SegmentBatch) -> Tensor:
    """How much gradient of the answer reaches the embeddings of each segment's words: b s."""
    table = network.encode.embeddings.tokens
    gradients = []
    for segment in range(inputs.tokens.shape[1]):
        network.zero_grad()
        # words of this segment are replaced by an id that no other segment has
        tokens = inputs.tokens.clone()
        tokens[:, segment][inputs.text_mask[:, segment]] = VOCAB - 1
        changed_inputs = inputs._replace(tokens=tokens.clamp(max=VOCAB - 1), prediction_mask=None)
        changed_inputs = changed_inputs._replace(question=changed_inputs.question.clamp(max=VOCAB - 2))
        other_segments = torch.ones_like(tokens, dtype=torch.bool)
        other_segments[:, segment] = False
        tokens = tokens.masked_fill(other_segments & (tokens == VOCAB - 1), VOCAB - 2)
        reading = network(changed_inputs._replace(tokens=tokens)).reading
        reading.found.square().sum().backward()
        assert table.grad is not None
        gradients.append(table.grad[VOCAB - 1].abs().sum().clone())
    return torch.stack(gradients)


@KINDS
@pytest.mark.parametrize(("truncate", "reached"), [(0, 5), (1, 1), (2, 2), (3, 3), (9, 5)])
def test_the_gradient_crosses_borders_and_stops_after_k_segments(kind: str, truncate: int, reached: int) -> None:
    network = make_model(kind, truncate=truncate).train()
    is_reached = compute_gradients_per_segment(network, documents(5)) > 0
    assert is_reached.tolist() == [segment >= 5 - reached for segment in range(5)]


def test_truncation_counts_segments_per_document() -> None:
    """A short document's gradient stops at the same segment in any batch."""
    network = make_model("blended", truncate=1).train()
    inputs = documents(4, 2)
    network(inputs._replace(prediction_mask=None)).logits[1].square().sum().backward()
    gradient_in_batch = network.encode.embeddings.tokens.grad
    assert gradient_in_batch is not None
    gradient_in_batch = gradient_in_batch.clone()
    network.zero_grad()
    alone = slice_segments(select_rows(inputs, 1, 2), 0, 2)._replace(prediction_mask=None)
    network(alone).logits.square().sum().backward()
    torch.testing.assert_close(gradient_in_batch, network.encode.embeddings.tokens.grad)


@KINDS
def test_truncation_changes_gradients_alone(kind: str) -> None:
    inputs = documents(4, 2)
    full, truncated = make_model(kind)(inputs), make_model(kind, truncate=1)(inputs)
    assert torch.equal(full.logits, truncated.logits)


@KINDS
def test_without_a_lasting_memory_only_the_last_segment_counts(kind: str) -> None:
    network, inputs = make_model(kind, carry_memory=False), documents(3, 3)
    last = network(slice_segments(inputs, 2, 3))
    torch.testing.assert_close(network(inputs).logits, last.logits)
    assert (make_model(kind)(inputs).logits != last.logits).any()


@KINDS
def test_a_masked_word_depends_on_earlier_segments(kind: str) -> None:
    """Segments read the memory of earlier segments; later segments change nothing."""
    network, inputs = make_model(kind), documents(3)
    prediction_mask = torch.zeros_like(inputs.mask)
    prediction_mask[:, 1, 3] = True
    inputs = inputs._replace(prediction_mask=prediction_mask)
    before = network(inputs).masked_logits
    for segment, has_effect in ((0, True), (2, False)):
        tokens = inputs.tokens.clone()
        tokens[0, segment, 2] = 5 if int(tokens[0, segment, 2]) != 5 else 6
        after = network(inputs._replace(tokens=tokens)).masked_logits
        assert bool((after != before).any()) == has_effect


def test_masked_tokens_alone_are_written_where_the_recipe_says_so() -> None:
    network, inputs = make_model("selective", tokens="masked"), documents(1)
    written = network(inputs, probes="read").write_probes[0].written
    assert inputs.prediction_mask is not None
    assert torch.equal(written.weights[0].sum(-1) > 0, inputs.prediction_mask[0, 0])
    assert not network(inputs._replace(prediction_mask=None)).state.mask.any()


def test_a_sentence_is_the_mean_of_its_tokens() -> None:
    network, inputs = make_model("selective", unit="sentences"), documents(2, 1)
    encoded = network.encode_segments(inputs)
    states = network.encode(inputs.tokens[0], inputs.mask[0])  # s n d
    torch.testing.assert_close(encoded.items[0, 1, 1], states[1, 4:7].mean(0))
    assert encoded.mask.sum((1, 2)).tolist() == [4, 2]
    assert network(inputs).state.told.tolist() == [4, 2]


def test_answer_words_are_decoded_one_after_another() -> None:
    """Logits computed at once equal those of steps; the first are the predictor's."""
    network, inputs = make_model(), documents(2, 1)
    output = network(inputs)
    _, _, start_state = network.read_question(output.state, inputs)
    state = network.respond.start_decoding(start_state.squeeze(1))
    logits, state = network.respond.step(torch.zeros(2, dtype=torch.long), state)
    torch.testing.assert_close(logits, output.logits[:, 0])
    for step in range(2):
        logits, state = network.respond.step(inputs.answer_ids[:, step], state)
        torch.testing.assert_close(logits, output.rest_logits[:, step])


def test_an_answer_can_be_generated_by_greedy_beam_and_sampling() -> None:
    network, inputs = make_model(), documents(2, 1)
    output = network(inputs)
    _, _, start_state = network.read_question(output.state, inputs)
    respond, start = network.respond, torch.zeros(2, dtype=torch.long)
    greedy = greedy_search(respond.step, respond.start_decoding(start_state.squeeze(1)), start, end_id=2, max_tokens=4)
    assert torch.equal(greedy.tokens[:, 0, 0], output.logits[:, 0].argmax(-1))
    beam = beam_search(
        respond.step, respond.start_decoding(start_state.squeeze(1)), start, end_id=2, max_tokens=4, num_beams=3
    )
    assert (beam.log_probabilities[:, 0] >= greedy.log_probabilities[:, 0] - 1e-5).all()
    generator = torch.Generator().manual_seed(0)
    sampled = sample_texts(
        respond.step, respond.start_decoding(start_state.squeeze(1)), start, end_id=2, max_tokens=4, generator=generator
    )
    assert sampled.tokens.shape[:2] == (2, 1)


def test_empty_segments_cost_nothing_and_an_empty_document_is_finite() -> None:
    network, inputs = make_model(), documents(2, 1)
    batch_sizes: list[int] = []
    network.encode.register_forward_pre_hook(lambda _, arguments: batch_sizes.append(len(arguments[0])))
    network(inputs)
    assert batch_sizes[0] == 3
    empty_inputs = inputs._replace(mask=inputs.mask & False, text_mask=inputs.text_mask & False, prediction_mask=None)
    assert network(empty_inputs).logits.isfinite().all()


def test_any_encoder_of_tokens_can_be_wrapped() -> None:
    for encode in ({"kind": "recurrent"}, {"kind": "causal"}, {"kind": "transformer"}):
        model = {"width": 16, "encode": encode, "respond": {"kind": "predictor"}, "segments": {}}
        model["memory"] = {"kind": "selective"}
        network = build_model(model, {"vocab": VOCAB, "max_length": LENGTH})
        assert network(documents(2, 1)).logits.shape == (2, 1, VOCAB)
        assert network.respond.vocabulary.words is network.encode.embeddings.tokens


def test_a_question_is_in_a_segment_of_its_own() -> None:
    """The second segment embedding changes the answer, not the memory."""
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


def test_a_sentence_embedding_has_unit_norm_and_ignores_padding() -> None:
    network, inputs = make_model(), documents(1, 1)
    tokens, mask, text_mask = (field[:, 0] for field in inputs[:3])
    embeddings = network.embed_texts(tokens, mask, text_mask)
    torch.testing.assert_close(embeddings.norm(dim=-1), torch.ones(2))
    padded = [torch.cat([field, torch.zeros_like(field[:, :3])], 1) for field in (tokens, mask, text_mask)]
    torch.testing.assert_close(network.embed_texts(*padded), embeddings)


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
        make_model(write_probes=-1)
    with pytest.raises(ConfigError, match=r"segments.truncate is at least 0, .* not -3"):
        build_model(
            model | {"encode": {"kind": "recurrent"}, "segments": {"truncate": -3}}, {"vocab": 9, "max_length": 9}
        )


def test_a_quote_head_has_no_weights_and_reads_like_a_predictor() -> None:
    predictor = make_model("selective", unit="sentences")
    model: dict[str, Any] = {
        "width": 16,
        "encode": {"kind": "transformer", "stack": {"kind": "encoder", "depth": 1}},
        "memory": {"kind": "selective", "slots": 12},
        "respond": {"kind": "quote"},
        "segments": {"unit": "sentences"},
    }
    quote_model = build_model(model, {"vocab": VOCAB, "max_length": LENGTH}).eval()
    quote_model.load_state_dict(
        {name: tensor for name, tensor in predictor.state_dict().items() if name in quote_model.state_dict()}
    )
    assert not any(name.startswith("respond") for name in quote_model.state_dict())
    inputs = documents(3, 1)._replace(prediction_mask=None)
    predicted, quoted = predictor(inputs), quote_model(inputs, probes="read")
    assert torch.equal(quoted.reading.weights, predicted.reading.weights)
    assert (quoted.logits.numel(), quoted.rest_logits.numel(), quoted.masked_logits) == (0, 0, None)


def test_root_scaling_makes_pooled_long_sentences_larger() -> None:
    """With equal tokens the norm is √n times that of the mean."""
    values = torch.randn(1, 1, 6).expand(1, 12, 6)
    sentences = torch.tensor([[0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2]])
    sentences[0, -1] = -1
    mean, root = (pool_sentences(values, sentences, 4, root_scaled=root_scaled) for root_scaled in (False, True))
    torch.testing.assert_close(root[0, :3], mean[0, :3] * torch.tensor([[1.0], [2.0], [6**0.5]]))
    assert root[0, 3].eq(0).all()
    inputs = documents(2, 1)
    means, roots = (make_model("selective", unit="sentences", pool=pool).encode_segments(inputs).items
                    for pool in ("mean", "root"))  # fmt: skip
    scale = (inputs.sentence_ids.unsqueeze(-1) == torch.arange(means.shape[2])).sum(2).sqrt()
    torch.testing.assert_close(roots, means * scale.unsqueeze(-1))
