"""Parts of BART, T5 and PanGu: buckets of distances, bodies that read twice, layers that ask."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import BartConfig, BartModel
from transformers.models.t5.modeling_t5 import T5Attention

from mnemic.encode import CausalEncoder, EncoderDecoder, TransformerEncoder, TranslationEncoder, encode_ragged
from mnemic.encode.attention.bucketed import find_bucket
from mnemic.encode.stacks import EncoderStack
from mnemic.encode.stacks.block import FeedForward, GatedFeedForward
from mnemic.encode.stacks.query_layer import QueryLayerDecoder
from mnemic.recipe import ConfigError

BUCKETED = {"kind": "bucketed", "heads": 2, "buckets": 8, "max_distance": 10}


def random_tokens(*shape: int) -> Tensor:
    return torch.randint(1, 20, shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("is_causal", [False, True])
def test_buckets_are_those_of_t5(is_causal: bool) -> None:
    distances = torch.arange(-300, 300)
    for buckets, max_distance in ((32, 128), (8, 10)):
        expected = T5Attention._relative_position_bucket(
            distances, bidirectional=not is_causal, num_buckets=buckets, max_distance=max_distance
        )
        assert torch.equal(find_bucket(distances, buckets, max_distance, is_causal=is_causal), expected)


def test_buckets_by_hand() -> None:
    """Exact up to 7 steps to each side, then like a logarithm; a decoder is exact up to 15."""
    assert find_bucket(-torch.arange(10), 32, 128, is_causal=False).tolist() == [*range(8), 8, 8]
    assert find_bucket(torch.tensor([1, 7, 8, 16, 127, 500]), 32, 128, is_causal=False).tolist() == [
        17, 23, 24, 26, 31, 31,
    ]  # fmt: skip
    assert find_bucket(torch.tensor([5, 0, -15, -16, -500]), 32, 128, is_causal=True).tolist() == [0, 0, 15, 16, 31]


def test_all_layers_of_a_stack_share_one_bias() -> None:
    network = EncoderDecoder(
        16, 20, stack={"kind": "encoder", "depth": 3, "attention": BUCKETED},
        decoder={"kind": "transformer", "depth": 2, "attention": BUCKETED},
    )  # fmt: skip
    tables = [name for name, _ in network.named_parameters() if name.endswith("bias.table")]
    assert tables == ["stack.blocks.0.attention.bias.table", "decoder.blocks.0.attention.bias.table"]
    assert network.decoder.blocks[1].cross.bias is None  # nothing over the source
    assert network.decoder.blocks[0].attention.bias.is_causal
    assert not any(name.endswith("project.query.bias") for name, _ in network.named_parameters())


@torch.no_grad()
def test_packed_texts_have_the_bias_of_their_own_distances() -> None:
    embeddings = {"kind": "sum", "positions": {"kind": "none"}}
    torch.manual_seed(0)
    encoder = TransformerEncoder(16, 20, embeddings=embeddings, stack={"kind": "encoder", "attention": BUCKETED}).eval()
    for block in encoder.stack.blocks:
        nn.init.normal_(block.attention.bias.table)
    texts = [random_tokens(length).tolist() for length in (5, 9, 5, 13)]
    for text, states in zip(texts, encode_ragged(encoder, texts)):
        tokens = torch.tensor([text])
        alone = encoder.stack(encoder.embeddings(tokens, tokens > 0), tokens > 0)  # not packed
        torch.testing.assert_close(states, alone[0])


def test_bad_buckets_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"attention\.buckets is at least 4"):
        EncoderStack(16, attention={"kind": "bucketed", "buckets": 2})
    with pytest.raises(ConfigError, match="max_distance more than the 8"):
        EncoderStack(16, attention={"kind": "bucketed", "max_distance": 8})


def test_a_gated_feed_forward_network_is_a_product() -> None:
    gated, x = GatedFeedForward(8, 12, "gelu"), torch.randn(3, 8)
    expected = gated.narrow(nn.functional.gelu(gated.gate(x)) * gated.widen(x))
    torch.testing.assert_close(gated(x), expected)
    assert {name for name, _ in gated.named_parameters()} == {"gate.weight", "widen.weight", "narrow.weight"}
    assert FeedForward(8, 12, "relu", bias=False).widen.bias is None


def make_bart() -> tuple[EncoderDecoder, Any]:
    """Make a BART of transformers, and a body with its weights."""
    from mnemic.checkpoint.seq2seq_folder.names import convert_to_mnemic
    from mnemic.checkpoint.seq2seq_folder.shape import model_options, read_shape
    from mnemic.train.start.seq2seq import join_body

    sizes = {f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in
             {"layers": 2, "attention_heads": 2, "ffn_dim": 24}.items()}  # fmt: skip
    torch.manual_seed(0)
    model = BartModel(BartConfig(vocab_size=20, d_model=16, max_position_embeddings=30, **sizes)).eval()
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.4)
    shape = read_shape(model.config.to_dict(), "config.json")
    spec = {key: value for key, value in join_body(model_options(shape)).items() if key != "kind"}
    body = EncoderDecoder(16, 20, **spec).eval()
    names = {name: name.replace("decoder_embeddings", "respond.embeddings").replace("decoder.", "respond.decoder.")
             for name, _ in body.named_parameters()}  # fmt: skip
    names = {name: there if there.startswith("respond.") else f"encode.{there}" for name, there in names.items()}
    weights = convert_to_mnemic(
        {f"model.{key}": value for key, value in model.state_dict().items()}, names.values(), shape
    )
    body.load_state_dict({name: weights[there] for name, there in names.items()}, strict=False)
    return body, model


@torch.no_grad()
def test_a_body_has_the_states_that_bart_classifies_by() -> None:
    """The decoder reads the text moved by one, from its last token on."""
    body, model = make_bart()
    tokens, mask = random_tokens(2, 9), torch.arange(9) < torch.tensor([[9], [5]])
    states = body(tokens * mask, mask)
    for row, length in enumerate((9, 5)):
        text = tokens[row : row + 1, :length]
        previous = torch.cat([text[:, -1:], text[:, :-1]], 1)
        expected = model(input_ids=text, decoder_input_ids=previous).last_hidden_state
        assert (states[row, :length] - expected[0]).abs().max() < 1e-4
    assert (states[1, 5:] == 0).all()
    for text, packed in zip(
        (tokens[0], tokens[1, :5]), encode_ragged(body, [tokens[0].tolist(), tokens[1, :5].tolist()])
    ):
        torch.testing.assert_close(packed, states[0 if len(text) == 9 else 1, : len(text)], atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_a_new_encoder_stands_in_for_the_words() -> None:
    """If it says what the words are, the network is the pre-trained one; its words are not read."""
    plain = TransformerEncoder(16, 20, stack={"kind": "encoder", "depth": 1}).eval()
    encoder = TranslationEncoder(16, 20, stack={"kind": "encoder", "depth": 1}).eval()
    encoder.load_state_dict(plain.state_dict(), strict=False)
    tokens, mask = random_tokens(2, 7), torch.arange(7) < torch.tensor([[7], [4]])
    before = encoder(tokens, mask)
    encoder.embeddings.tokens.zero_()
    assert torch.equal(encoder(tokens, mask), before)
    encoder.new = Words(plain.embeddings.tokens)  # type: ignore[assignment]
    torch.testing.assert_close(encoder(tokens, mask), plain(tokens, mask))
    with pytest.raises(ConfigError, match=r"source has embeddings and a stack, not 'depth'"):
        TranslationEncoder(16, 20, source={"depth": 1})


class Words(nn.Module):
    """Word vectors in place of an encoder."""

    def __init__(self, words: Tensor) -> None:
        super().__init__()
        self.words = words

    def forward(self, tokens: Tensor, mask: Any, positions: Tensor | None = None) -> Tensor:
        return nn.functional.embedding(tokens, self.words)


@torch.no_grad()
def test_the_top_layer_asks_by_position() -> None:
    """Its query is a vector of the place alone, its keys and the residual are of the states."""
    torch.manual_seed(0)
    stack = QueryLayerDecoder(16, cross=False, depth=2, length=9).eval()
    x, mask = torch.randn(2, 6, 16), torch.ones(2, 6, dtype=torch.bool)
    states = stack.stack(x, mask).states
    queries = stack.positions.table[:6].expand(2, -1, -1)
    causal = mask[:, None, None] & torch.ones(6, 6, dtype=torch.bool).tril()
    update = stack.attention(queries, stack.around_attention.norm(states), causal)
    expected = states + update
    expected = expected + stack.feed(stack.around_feed.norm(expected))
    torch.testing.assert_close(stack(x, mask).states, expected)
    assert stack.max_length == 9


@torch.no_grad()
def test_a_query_layer_goes_on_from_its_cache() -> None:
    torch.manual_seed(0)
    encoder = CausalEncoder(16, 20, stack={"kind": "query-layer", "depth": 3}).eval()
    tokens = random_tokens(2, 8)
    expected, cache, states = encoder(tokens, tokens > 0), None, []
    for piece in tokens.split([3, 1, 4], 1):
        output = encoder.encode_with_state(piece, piece > 0, cache)
        states.append(output.states)
        cache = output.cache
    torch.testing.assert_close(torch.cat(states, 1), expected)
    for options, message in (
        ({"cross": True}, "no attention over a source"),
        ({"cross": False, "depth": 0}, "at least 1"),
    ):
        with pytest.raises(ConfigError, match=message):
            QueryLayerDecoder(16, **options)
