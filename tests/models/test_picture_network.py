"""Networks that look at pictures: encoders, decoding word by word, batches, and misfits."""

from typing import Any

import pytest
import torch
from picture_runs import HARD, SIZES, SOFT, make_bilinear, make_captioner, small_scenes

from mnemic.encode.pictures import PICTURE_ENCODERS
from mnemic.models import PictureInputs, build_model, check_model_parts
from mnemic.predict.captions import write_captions
from mnemic.recipe import ConfigError, build

FACTS = {"channels": 3, "side": 48}
CASES: dict[str, dict[str, Any]] = {
    "blind": {"kind": "blind"},
    "conv": {"kind": "conv"},
    "conv, all options": {"kind": "conv", "depth": 2, "groups": 4, "dilation": 2, "squeeze": 2},
    "patches": {"kind": "patches", "patch": 12, "stack": {"depth": 1}},
    "crops": {"kind": "crops", "halvings": 1},
    "mixer": {"kind": "mixer", "patch": 12, "depth": 1},
    "repmlp": {"kind": "repmlp", "patch": 4, "depth": 1, "bottleneck": 8},
    "patches, mixer": {"kind": "patches", "stack": {"depth": 1, "attention": {"kind": "mlp-mixer", "length": 36}}},
}


def make_encoder(name: str, **facts: int) -> Any:
    torch.manual_seed(0)
    return build(PICTURE_ENCODERS, CASES[name], width=8, **(FACTS | facts)).eval()


def test_every_kind_has_a_case() -> None:
    assert {spec["kind"] for spec in CASES.values()} == set(PICTURE_ENCODERS)


@pytest.mark.parametrize("name", CASES)
def test_an_encoder_makes_regions_on_a_grid(name: str) -> None:
    encode = make_encoder(name)
    pictures = torch.rand(3, 3, 48, 48)
    states = encode(pictures)
    rows, columns = encode.grid
    assert states.shape == (3, rows * columns, 8) == (3, encode.num_regions, encode.width)
    for row in range(3):  # whatever else is in the batch
        torch.testing.assert_close(encode(pictures[row : row + 1])[0], states[row], atol=1e-5, rtol=1e-4)
    states.square().sum().backward()
    assert all(weight.grad is not None for weight in encode.parameters())


@pytest.mark.parametrize("name", ["conv", "patches"])
def test_regions_are_numbered_row_by_row_and_lie_on_their_pixels(name: str) -> None:
    """The pixels that change a region, weighted by how much they do, lie around its middle."""
    encode = make_encoder(name).double()
    if name == "conv":  # without the norms, which let all pixels change all regions
        for layer in encode.layers:
            layer[2] = torch.nn.Identity()
    else:
        encode.stack.forward = lambda x, mask: x
    rows, columns = encode.grid
    pixels = torch.arange(48).double() + 0.5
    gradients = []
    for _ in range(20):
        pictures = torch.rand(1, 3, 48, 48, dtype=torch.double, requires_grad=True)
        region = columns * (rows // 2) + columns // 2 - 1
        gradients.append(torch.autograd.grad(encode(pictures)[0, region].sum(), pictures)[0][0].abs().sum(0))
    weights = torch.stack(gradients).mean(0) / torch.stack(gradients).mean(0).sum()  # y x
    y, x = float(weights.sum(1) @ pixels), float(weights.sum(0) @ pixels)
    assert y == pytest.approx((rows // 2 + 0.5) * 48 / rows, abs=2)
    assert x == pytest.approx((columns // 2 - 0.5) * 48 / columns, abs=2)


def test_the_blind_encoder_sees_nothing() -> None:
    encode = make_encoder("blind")
    assert torch.equal(encode(torch.rand(2, 3, 48, 48)), encode(torch.zeros(2, 3, 48, 48)))


@pytest.mark.parametrize("options", [{"halvings": 5}, {"groups": 3}, {"dilation": 0}, {"halvings": 0}])
def test_sizes_that_do_not_fit_are_errors(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="encode"):
        build(PICTURE_ENCODERS, {"kind": "conv", **options}, width=8, **FACTS)
    with pytest.raises(ConfigError, match=r"encode\.patch = 7 does not divide"):
        build(PICTURE_ENCODERS, {"kind": "patches", "patch": 7}, width=8, **FACTS)


@pytest.mark.parametrize("memory", [SOFT, HARD])
def test_words_one_by_one_are_words_at_once(memory: dict[str, Any]) -> None:
    network, dataset = make_captioner(memory).eval(), small_scenes()
    inputs = dataset.batch(torch.arange(4)).inputs
    output = network(inputs)
    step, state = network.start_decoding(network.encode(inputs.pictures))
    assert inputs.words is not None
    for number, words in enumerate(inputs.words.unbind(1)):
        logits, state = step(words, state)
        torch.testing.assert_close(logits, output.logits[:, number])
    weights = output.reading.weights[:, 0, 0]  # b m s
    assert weights.shape == (4, inputs.words.shape[1], 36)
    torch.testing.assert_close(weights.sum(2), torch.ones_like(weights[..., 0]))


def test_padding_and_other_pictures_change_nothing() -> None:
    network, dataset = make_captioner().eval(), small_scenes()
    together = network(dataset.batch(torch.arange(6)).inputs)
    for row in range(6):
        alone = network(dataset.batch(torch.tensor([row])).inputs)
        length = alone.logits.shape[1]
        torch.testing.assert_close(alone.logits[0], together.logits[row, :length], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["lbl", "mlbl-b", "mlbl-f"])
def test_a_log_bilinear_model_writes_word_by_word(kind: str) -> None:
    network, dataset = make_bilinear(kind), small_scenes()
    inputs = dataset.batch(torch.arange(4)).inputs
    assert inputs.words is not None
    pictures = inputs.pictures.double()
    logits = network(inputs._replace(pictures=pictures)).logits
    step, state = network.start_decoding(network.encode(pictures))
    for number, words in enumerate(inputs.words.unbind(1)):
        word_logits, state = step(words, state)
        torch.testing.assert_close(word_logits.float(), logits[:, number])


def test_the_gaze_of_a_caption_is_that_of_its_words() -> None:
    network, dataset = make_captioner().eval(), small_scenes()
    pictures = dataset.read_pictures(torch.arange(3))
    for num_beams in (1, 3):
        written = write_captions(network, pictures, dataset.end_id, num_beams)
        assert written.gaze is not None
        for row in range(3):
            words = torch.cat([torch.tensor([dataset.end_id]), written.words[row, :-1]])
            output = network(PictureInputs(pictures[row : row + 1], words.unsqueeze(0)))
            torch.testing.assert_close(output.reading.weights[0, 0, 0], written.gaze[row], atol=1e-5, rtol=1e-4)
    logs = [write_captions(network, pictures, dataset.end_id, beams).log_probabilities for beams in (1, 4)]
    assert (logs[1] >= logs[0] - 1e-5).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"respond": {"kind": "tags"}}, "does not look at pictures: respond with"),
        ({"memory": None}, "reads regions from a memory"),
        ({"respond": {"kind": "mlbl-b"}}, r"leave out model\.memory"),
        ({"memory": {"kind": "memn2n"}}, "known kinds: regions, sampled-regions"),
        ({"memory": {"kind": "regions", "slots": 9}}, "36 regions"),
        ({"memory": {"kind": "regions", "slots": 0}}, "at least 1"),
        ({"memory": {"kind": "sampled-regions", "expectation": 2.0}}, "from 0 to 1"),
    ],
)
def test_parts_that_do_not_fit_are_errors(changes: dict[str, Any], message: str) -> None:
    model = {"width": 8, "encode": {"kind": "conv"}, "memory": SOFT, "respond": {"kind": "caption"}} | changes
    with pytest.raises(ConfigError, match=message):
        build_model({key: value for key, value in model.items() if value is not None}, SIZES)


def test_a_network_is_checked_without_memory_for_its_weights() -> None:
    model = {"width": 8, "encode": {"kind": "conv"}, "respond": {"kind": "mlbl-f"}}
    assert all(weight.is_meta for weight in check_model_parts(model, SIZES).parameters())
    classes = {"width": 8, "encode": {"kind": "conv", "halvings": 1}, "respond": {"kind": "classes"}}
    check_model_parts(classes, {"vocab": 12, "max_length": 1, "classes": 10, "channels": 1, "side": 8})
