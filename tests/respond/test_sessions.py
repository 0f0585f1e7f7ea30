"""Generation that shares work among beams: equal to a slow loop, to the cache and to one by one."""

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from mnemic.encode.seq2seq.sessions import SlotSession, StepSession
from mnemic.encode.stacks.decoding import IncrementalDecoder, can_decode_in_slots
from mnemic.models import TextModel, WindowBatch, build_model
from mnemic.respond.generate import GeneratedTexts, SamplingOptions, SearchOptions, draw_texts, search_texts

VOCAB, START, END = 12, 3, 4
END_BIAS = {"post-norm, full": 0.0, "pre-norm, full": -2.0, "t5": 2.0}  # so that texts end at different steps
SMALL = {"depth": 2, "inner": 24}
FULL, BUCKETED = ({"kind": kind, "heads": 2} for kind in ("full", "bucketed"))
NETWORKS = {
    "post-norm, full": {**SMALL, "norm": "post", "attention": FULL},
    "pre-norm, full": {**SMALL, "norm": "pre", "attention": FULL},
    "t5": {**SMALL, "norm": "pre", "norm_kind": "rms", "attention": BUCKETED | {"buckets": 4, "max_distance": 6}},
}
ALL_NETWORKS = pytest.mark.parametrize("name", NETWORKS)


def make_network(name: str, dtype: torch.dtype = torch.float32) -> TextModel:
    """Make a network whose random words are far from equally likely."""
    layers = NETWORKS[name]
    embeddings = {"kind": "sum", "positions": {"kind": "none" if name == "t5" else "sinusoidal"}}
    encode = {"kind": "transformer", "embeddings": embeddings, "stack": {"kind": "encoder", **layers}}
    decoder = {"kind": "transformer", **layers}
    respond = {"kind": "seq2seq", "separate_output": True, "embeddings": embeddings, "decoder": decoder}
    torch.manual_seed(1)
    network = build_model({"width": 16, "encode": encode, "respond": respond}, {"vocab": VOCAB, "max_length": 64})
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(2)
        network.respond.bias[END] += END_BIAS[name]
    return network.to(dtype).eval()


def make_sources(*lengths: int) -> tuple[Tensor, Tensor]:
    tokens = torch.randint(5, VOCAB, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(3))
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return tokens * mask, mask


SOURCES = make_sources(9, 2, 7, 7, 1, 30)
STARTS = torch.full((6,), START)


def score(network: TextModel, tokens: Tensor, mask: Tensor, answers: Tensor) -> Tensor:
    """Read the answers so far anew, b m → b m v."""
    return network(WindowBatch(tokens, mask, torch.zeros_like(tokens), mask, decoder_tokens=answers)).logits


def start(network: TextModel, options: SearchOptions, tokens: Tensor, mask: Tensor) -> Any:
    return network.respond.start_session(network.encode(tokens, mask), mask, options)


def generate(network: TextModel, options: SearchOptions, tokens: Tensor, mask: Tensor) -> GeneratedTexts:
    return search_texts(start(network, options, tokens, mask), STARTS[: len(tokens)], options)


def list_texts(generated: GeneratedTexts, row: int) -> list[list[int]]:
    return [text[:length].tolist() for text, length in zip(generated.tokens[row], generated.lengths[row])]


def is_forbidden(text: list[int], token: int, options: SearchOptions) -> bool:
    """Whether a token must not come after a text: too early an end, or a repetition."""
    if token == END and len(text) < options.min_tokens:
        return True
    size, history = options.no_repeat_ngrams, [START, *text]
    if not size or len(history) < size:
        return False
    ngram = (*history[len(history) - size + 1 :], token)
    return any(tuple(history[first : first + size]) == ngram for first in range(len(history) - size + 1))


@torch.no_grad()
def search_slowly(network: TextModel, options: SearchOptions, tokens: Tensor, mask: Tensor) -> list[tuple[Any, ...]]:
    """Search one source with lists, and read all texts anew for each token: the slow twin."""
    beams: list[tuple[list[int], float]] = [([], 0.0)]
    for _ in range(options.max_tokens):
        candidates = [(text, total) for text, total in beams if END in text]
        open_beams = [(text, total) for text, total in beams if END not in text]
        if open_beams:
            answers = torch.tensor([[START, *text] for text, _ in open_beams])
            count = len(open_beams)
            logs = score(network, tokens.expand(count, -1), mask.expand(count, -1), answers)[:, -1].log_softmax(-1)
            candidates += [
                ([*text, token], total + float(row[token]))
                for (text, total), row in zip(open_beams, logs)
                for token in range(VOCAB)
                if not is_forbidden(text, token, options)
            ]
        beams = sorted(candidates, key=lambda beam: -beam[1])[: options.num_beams]
    return sorted(beams, key=lambda beam: -beam[1] / ((5 + len(beam[0])) / 6) ** options.length_penalty)


OPTIONS = {
    "greedy": SearchOptions(END, 8),
    "beams": SearchOptions(END, 8, num_beams=3),
    "beams, long texts": SearchOptions(END, 8, num_beams=4, length_penalty=1.5, min_tokens=3),
    "no word twice": SearchOptions(END, 6, num_beams=2, no_repeat_ngrams=1),
    "no pair twice": SearchOptions(END, 9, num_beams=3, min_tokens=9, no_repeat_ngrams=2),
}


@ALL_NETWORKS
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_texts_are_those_of_a_slow_loop(name: str, options: SearchOptions) -> None:
    network, (tokens, mask) = make_network(name), SOURCES
    generated = generate(network, options, tokens, mask)
    for row in range(len(tokens)):
        length = int(mask[row].sum())
        expected = search_slowly(network, options, tokens[row : row + 1, :length], mask[row : row + 1, :length])
        assert list_texts(generated, row) == [text for text, _ in expected]
        scores = torch.tensor([total for _, total in expected])
        torch.testing.assert_close(generated.log_probabilities[row], scores, atol=1e-4, rtol=1e-4)


def test_texts_end_at_different_steps() -> None:
    """So that sources are dropped in the middle of a batch, above."""
    lengths = [generate(make_network(name), OPTIONS["greedy"], *SOURCES).lengths[:, 0] for name in NETWORKS]
    assert [len(steps.unique()) > 1 for steps in lengths] == [True, True, True]
    assert len(lengths[-1].unique()) >= 4


@ALL_NETWORKS
def test_a_wide_beam_is_exhaustive_search(name: str) -> None:
    network, (tokens, mask) = make_network(name), make_sources(6)
    options = SearchOptions(END, 3, num_beams=VOCAB**3)
    texts = [text for text in product(range(VOCAB), repeat=3) if END not in text[:-1]]
    texts += [(first, END) for first in range(VOCAB) if first != END] + [(END,)]  # type: ignore[list-item]
    totals = {}
    with torch.no_grad():
        for length in (1, 2, 3):
            group = torch.tensor([text for text in texts if len(text) == length])
            answers = torch.cat([torch.full_like(group[:, :1], START), group[:, :-1]], 1)
            logs = score(network, tokens.expand(len(group), -1), mask.expand(len(group), -1), answers).log_softmax(-1)
            sums = logs.gather(-1, group.unsqueeze(-1)).sum((1, 2))
            totals |= {tuple(text): float(total) for text, total in zip(group.tolist(), sums)}
    best = sorted(totals, key=lambda text: -totals[text])[:20]
    assert list_texts(generate(network, options, tokens, mask), 0)[:20] == [list(text) for text in best]


@torch.no_grad()
@ALL_NETWORKS
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.float64, 1e-10)])
def test_logits_are_those_without_a_cache(name: str, dtype: torch.dtype, tolerance: float) -> None:
    """Also of beams that go on from each other: tokens are equal, logits nearly."""
    network, (tokens, mask) = make_network(name, dtype), SOURCES
    session = start(network, SearchOptions(END, 6, num_beams=3), tokens, mask)
    assert isinstance(session, SlotSession)
    order = session.sort_sources(STARTS)
    generator = torch.Generator().manual_seed(0)
    last, parents, past = STARTS[:, None], None, STARTS[:, None, None]  # b w n
    for _ in range(5):
        logits = session.advance(last, parents)
        flat = past.flatten(0, 1)
        rows = order.repeat_interleave(past.shape[1])
        expected = score(network, tokens[rows], mask[rows], flat)[:, -1].unflatten(0, past.shape[:2])
        # A network's own logits are float32 whatever its weights: read the decoder's.
        cache = network.respond.start_decoding(network.encode(tokens[rows], mask[rows]), mask[rows])
        exact = network.respond.score_tokens(flat, cache)[0][:, -1].unflatten(0, past.shape[:2])
        assert (logits - exact).abs().max() <= tolerance
        assert torch.equal(logits.argmax(-1), expected.argmax(-1))
        parents = torch.randint(past.shape[1], (6, 3), generator=generator)
        last = torch.randint(VOCAB, (6, 3), generator=generator)
        past = torch.cat([past.gather(1, parents.unsqueeze(-1).expand(-1, -1, past.shape[2])), last.unsqueeze(-1)], 2)


@torch.no_grad()
@ALL_NETWORKS
def test_no_work_is_done_on_padding(name: str) -> None:
    """Keys and values are computed of real tokens alone; groups pad by at most a quarter."""
    network, (tokens, mask) = make_network(name), make_sources(8, 31, 4, 40, 9, 10, 33)
    decoder = IncrementalDecoder(network.respond.decoder, network.encode(tokens, mask), mask, 9)
    sizes = [group.key_values[0].keys.shape[::2] for group in decoder.groups]  # sources, positions
    assert [tuple(size) for size in sizes] == [(1, 4), (3, 10), (2, 33), (1, 40)]
    noisy = network.encode(tokens, mask) + 9 * ~mask.unsqueeze(-1)  # what is at padding changes nothing
    options = OPTIONS["beams"]
    session = network.respond.start_session(noisy, mask, options)
    starts = torch.full((7,), START)
    expected = search_texts(network.respond.start_session(network.encode(tokens, mask), mask, options), starts, options)
    assert all(torch.equal(*pair) for pair in zip(search_texts(session, starts, options), expected))


@torch.no_grad()
def test_decoders_of_other_kinds_go_on_step_by_step() -> None:
    network = make_network("pre-norm, full")
    assert can_decode_in_slots(network.respond.decoder)
    assert not can_decode_in_slots(network.respond.decoder.train())
    options = OPTIONS["beams"]
    session = start(network, options, *SOURCES)
    assert isinstance(session, StepSession)
    slow = search_texts(session, STARTS, options)
    fast = generate(network.eval(), options, *SOURCES)
    assert torch.equal(slow.tokens, fast.tokens)


@ALL_NETWORKS
def test_samples_are_the_same_in_both_sessions(name: str) -> None:
    """And each follows the network's probabilities: top 1 is greedy search."""
    network, (tokens, mask) = make_network(name), make_sources(5, 5, 5, 5)  # equal lengths: equal order
    options = SearchOptions(END, 7, no_repeat_ngrams=2)
    states, starts = network.encode(tokens, mask), STARTS[:4]
    sessions = [
        network.respond.start_session(states, mask, options),
        StepSession(network.respond.step, network.respond.start_decoding(states, mask)),
    ]
    sampling = SamplingOptions(temperature=1.3, top_k=6, top_p=0.9)
    first, second = (
        draw_texts(session, starts, options, sampling, torch.Generator().manual_seed(5)) for session in sessions
    )
    assert torch.equal(first.tokens, second.tokens)
    torch.testing.assert_close(first.log_probabilities, second.log_probabilities)
    session = network.respond.start_session(states, mask, options)
    likeliest = draw_texts(session, starts, options, SamplingOptions(top_k=1), torch.Generator())
    assert torch.equal(likeliest.tokens, generate(network, options, tokens, mask).tokens)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (SearchOptions(END, 0), "max_tokens and num_beams ≥ 1"),
        (SearchOptions(END, 3, min_tokens=4), "min_tokens up to max_tokens"),
        (SearchOptions(END, 3, no_repeat_ngrams=-1), "no_repeat_ngrams ≥ 0"),
    ],
)
def test_bad_options_are_refused(options: SearchOptions, message: str) -> None:
    network = make_network("t5")
    session = start(network, OPTIONS["greedy"], *SOURCES)
    with pytest.raises(ValueError, match=message):
        search_texts(session, STARTS, options)
