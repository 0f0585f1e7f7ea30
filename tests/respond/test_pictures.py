"""Responses about pictures: the softmax of expected logits, and log-bilinear models."""

import pytest
import torch
from picture_runs import make_bilinear, make_captioner, small_scenes

from mnemic.recipe import ConfigError


def test_the_geometric_mean_over_looks_is_the_softmax_of_the_expected_context() -> None:
    """NWGM (section 4.2): Π_i p_i^α_i, normalized, is p at Σ α_i a_i: logits are linear in it."""
    decoder = make_captioner().respond.double().eval()
    embedded, hidden = torch.randn(2, 1, 8, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    regions = torch.randn(5, 8, generator=torch.Generator().manual_seed(1), dtype=torch.double)
    shares = torch.rand(5, generator=torch.Generator().manual_seed(2), dtype=torch.double).softmax(0)
    logits = decoder.score(embedded.expand(5, -1), hidden.expand(5, -1), regions)  # a look each
    products = (logits.softmax(-1) ** shares.unsqueeze(1)).prod(0)
    expected = decoder.score(embedded, hidden, (shares @ regions).unsqueeze(0)).softmax(-1)[0]
    torch.testing.assert_close(products / products.sum(), expected)


def test_without_a_gate_the_decoder_looks_fully() -> None:
    network, dataset = make_captioner().eval(), small_scenes()
    inputs = dataset.batch(torch.arange(2)).inputs
    plain = network(inputs).logits
    network.respond.gate.weight.data.zero_()
    network.respond.gate.bias.data.fill_(50.0)  # β = 1
    opened = network(inputs).logits
    network.respond.gate = None
    torch.testing.assert_close(network(inputs).logits, opened)
    assert not torch.allclose(plain, opened)


def test_a_log_bilinear_model_by_hand() -> None:
    respond = make_bilinear("lbl", context=2).respond
    words = torch.tensor([[39, 3, 7]])
    logits = respond.score_texts(words, torch.zeros(1, 0).double())
    table, maps, bias = respond.table, respond.maps, respond.bias
    for number, context in enumerate([(None, 39), (39, 3), (3, 7)]):
        predicted = sum(table[word] @ maps[index] for index, word in enumerate(context) if word is not None)
        torch.testing.assert_close(logits[0, number], table @ predicted + bias)


def test_a_factored_model_with_gates_of_one_is_the_biased_one_and_without_picture_the_plain_one() -> None:
    """MLBL-F = LBL where W^{fx} x = 1, for word vectors that the factors hold exactly."""
    plain, biased, factored = (make_bilinear(kind).respond for kind in ("lbl", "mlbl-b", "mlbl-f"))
    words, features = torch.tensor([[39, 3, 7, 9]]), torch.rand(1, 8).double()
    with torch.no_grad():
        for model in (biased, factored):
            model.maps.copy_(plain.maps)
            model.bias.copy_(plain.bias)
        biased.table.copy_(plain.table)
        factored.load_embeddings(plain.table.mT)
        factored.from_picture.weight.copy_(biased.from_picture.weight)
        factored.factor_x.weight.zero_()
        factored.factor_x.bias.fill_(1.0)
        torch.testing.assert_close(factored.embeddings, plain.embeddings)
        torch.testing.assert_close(factored.score_texts(words, features), biased.score_texts(words, features))
        for model in (biased, factored):
            model.from_picture.weight.zero_()
            torch.testing.assert_close(model.score_texts(words, features), plain.score_texts(words, features))


def test_only_models_with_a_picture_depend_on_it() -> None:
    dataset = small_scenes()
    inputs = dataset.batch(torch.arange(2)).inputs
    inputs = inputs._replace(pictures=inputs.pictures.double())
    for kind, sees in (("lbl", False), ("mlbl-b", True), ("mlbl-f", True)):
        network = make_bilinear(kind)
        dark = network(inputs._replace(pictures=0 * inputs.pictures)).logits
        assert torch.allclose(network(inputs).logits, dark) != sees


def test_options_of_log_bilinear_models_are_checked() -> None:
    with pytest.raises(ConfigError, match="context"):
        make_bilinear("lbl", context=0)
    with pytest.raises(ConfigError, match="factors"):
        make_bilinear("mlbl-f", factors=-1)
