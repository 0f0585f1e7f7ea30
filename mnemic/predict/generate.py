"""Generate text with a trained network, and measure the perplexity of texts.

``generate_answers`` is for sequence-to-sequence networks (data ``sequences``, ``dates``);
``continue_texts`` and ``measure_perplexity`` are for language models (data ``words``), the former
also for those of subwords (data ``corpus``).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from mnemic.data import DATASETS
from mnemic.data.language_modeling.batches import END, join_documents, make_token_dataset
from mnemic.data.seq2seq.batches import Seq2SeqDataset, make_seq2seq_dataset
from mnemic.data.seq2seq.dataset import require_subwords
from mnemic.data.text_tasks.examples import LabeledExample
from mnemic.encode import RecurrentOutput
from mnemic.encode.seq2seq.sessions import DecodingSession
from mnemic.encode.stacks import KeyValueCache
from mnemic.models.evaluating import evaluating
from mnemic.predict.methods import check_method
from mnemic.predict.perplexity import compute_word_losses, summarize_losses
from mnemic.predict.results import GeneratedText, TextPerplexity
from mnemic.predict.text_tasks import check_texts
from mnemic.recipe import ConfigError, build
from mnemic.respond.generate import (
    MINUS_INFINITY,
    GeneratedTexts,
    SamplingOptions,
    SearchOptions,
    draw_texts,
    sample_texts,
    search_texts,
)
from mnemic.text import SubwordTokenizer, WordTokenizer

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint

NO_OPTIONS: Mapping[str, Any] = {}
TEXTS_PER_BATCH = 256  # changes memory use, not results


def generate_answers(
    checkpoint: "Checkpoint",
    texts: Sequence[str],
    *,
    num_beams: int = 1,
    options: Mapping[str, Any] = NO_OPTIONS,
    sampling: SamplingOptions = SamplingOptions(),  # noqa: B008, a value
    seed: int = 0,
) -> list[GeneratedText]:
    """Generate an answer to each text, greedily, by beam search or by sampling.

    ``options`` are those of ``SearchOptions`` by name. With a ``sampling`` that is not the default
    one, texts are drawn, with a generator for each, of the same ``seed``.
    """
    check_method(checkpoint, "generate")
    examples = [LabeledExample(text, None, "") for text in check_texts(texts)]
    tokenizer, max_tokens = require_subwords(checkpoint.tokenizer), checkpoint.sizes["max_length"]
    dataset = make_seq2seq_dataset(examples, tokenizer, max_tokens, checkpoint.recipe["data"].get("start", "cls"))
    device_dataset = dataset.to(checkpoint.network.device)
    options = {"num_beams": num_beams, **options}
    if sampling != SamplingOptions():
        if options["num_beams"] != 1:
            raise ConfigError("sampling draws one text: leave num_beams out, or temperature, top_k and top_p")
        candidates_by_text = draw_candidates(checkpoint.network, device_dataset, options, sampling, seed)
    else:
        candidates_by_text = generate_candidates(checkpoint.network, device_dataset, **options)
    results = []
    for candidates, (seen, total) in zip(candidates_by_text, dataset.token_counts.tolist()):
        ranked = tuple(candidates)
        results.append(GeneratedText(*ranked[0], ranked, seen, total))
    return results


def continue_texts(
    checkpoint: "Checkpoint",
    texts: Sequence[str],
    *,
    max_words: int = 20,
    seed: int = 0,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
) -> list[GeneratedText]:
    """Continue each text by sampling at most ``max_words`` words from a language model.

    Sampling stops at the end of a document.

    Prompt and new words together fit into the network's window (``data.length``): of a longer text
    only the end is read, and the result reports how much. A network with a memory reads all of it,
    window by window. ``temperature``, ``top_k`` and ``top_p``
    are those of ``mnemic.respond.generate.sample_texts``. Each text has its own generator, seeded
    with ``seed``. The unknown word is never generated: the scores are over the other words. For a
    language model of subwords, words are subwords, and a document is a sequence.
    """
    check_method(checkpoint, "complete")
    max_context = checkpoint.sizes["max_length"] - max_words
    if max_context < 1 or max_words < 1:
        limit = checkpoint.sizes["max_length"] - 1
        raise ConfigError(f"max_words is from 1 to {limit}, for this network, not {max_words}")
    start_id, end_id = find_edge_tokens(checkpoint.tokenizer)
    sampling: dict[str, Any] = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    results = []
    for ids in checkpoint.tokenizer.encode_batch(check_texts(texts)):
        generator = torch.Generator(device=checkpoint.network.device).manual_seed(seed)
        prompt = [start_id, *ids]
        if not checkpoint.network.encode.memory_length:
            prompt = prompt[-max_context:]
        step, state, last = start_decoding(checkpoint, prompt, max_context)
        sequences = sample_texts(
            step, state, last, end_id=end_id, max_tokens=max_words, generator=generator, **sampling
        )
        token_ids = sequences.tokens[0, 0].tolist()
        text = checkpoint.tokenizer.decode(token_id for token_id in token_ids if token_id != end_id)
        score = float(sequences.log_probabilities[0, 0])
        results.append(GeneratedText(text, score, ((text, score),), min(len(prompt), len(ids)), len(ids)))
    return results


def measure_perplexity(checkpoint: "Checkpoint", texts: Sequence[str]) -> list[TextPerplexity]:
    """Measure the perplexity per word of each text; ends of documents are not scored."""
    check_method(checkpoint, "perplexity")
    data_source, tokenizer = build(DATASETS, checkpoint.recipe["data"]), checkpoint.tokenizer
    assert isinstance(tokenizer, WordTokenizer)
    end_id = tokenizer.id_of(END)
    results = []
    for ids in tokenizer.encode_batch(check_texts(texts)):
        if not ids:
            results.append(TextPerplexity(None, None, 0, 0))
            continue
        document = join_documents([ids], end_id)
        options = {"context": data_source.context, "stream": data_source.stream}
        dataset = make_token_dataset(document, tokenizer, max_tokens=data_source.length, **options)
        loss, targets = compute_word_losses(checkpoint.network, dataset.to(checkpoint.network.device))
        loss, unknown = loss[:-1].double(), targets[:-1] == dataset.unknown_id
        metrics = summarize_losses(loss, unknown)
        known_perplexity = metrics["known words"] if not unknown.all() else None
        results.append(TextPerplexity(metrics["perplexity"], known_perplexity, int(unknown.sum()), len(ids)))
    return results


@torch.no_grad()
def generate_candidates(
    network: nn.Module, dataset: Seq2SeqDataset, num_beams: int = 1, **options: Any
) -> list[list[tuple[str, float]]]:
    """Generate texts for each source by beam search: (text, log-probability), best first.

    ``options`` are those of ``SearchOptions``, by name.
    """
    search = make_search_options(network, dataset, {"num_beams": num_beams, **options})
    with evaluating(network):
        candidates = []
        for rows in torch.arange(len(dataset), device=dataset.device).split(TEXTS_PER_BATCH) if len(dataset) else ():
            session, start_ids = start_sources(network, dataset, rows, search)
            candidates += decode_candidates(dataset, search_texts(session, start_ids, search))
    return candidates


@torch.no_grad()
def draw_candidates(
    network: nn.Module, dataset: Seq2SeqDataset, options: Mapping[str, Any], sampling: SamplingOptions, seed: int
) -> list[list[tuple[str, float]]]:
    """Sample a text for each source, with a generator of its own."""
    search = make_search_options(network, dataset, options)
    with evaluating(network):
        candidates = []
        for rows in torch.arange(len(dataset), device=dataset.device).split(1) if len(dataset) else ():
            session, start_ids = start_sources(network, dataset, rows, search)
            generator = torch.Generator(device=dataset.device).manual_seed(seed)
            candidates += decode_candidates(dataset, draw_texts(session, start_ids, search, sampling, generator))
    return candidates


def make_search_options(network: Any, dataset: Seq2SeqDataset, options: Mapping[str, Any]) -> SearchOptions:
    """Complete search options by the end token and the longest possible text."""
    longest: int = network.respond.max_length
    max_tokens = options.get("max_tokens") or longest
    if max_tokens > longest:
        raise ConfigError(f"max_tokens is from 1 to {longest}, for this network, not {max_tokens}")
    return SearchOptions(dataset.tokenizer.sep, **{**options, "max_tokens": max_tokens})


def start_sources(
    network: Any, dataset: Seq2SeqDataset, rows: Tensor, options: SearchOptions
) -> tuple[DecodingSession, Tensor]:
    """Encode sources and start to generate; return the first tokens, too."""
    inputs = dataset.source_inputs(rows)
    states = network.encode(inputs.tokens, inputs.mask)
    session = network.respond.start_session(states, inputs.mask, options)
    return session, torch.full_like(rows, dataset.start_id)


def decode_candidates(dataset: Seq2SeqDataset, texts: GeneratedTexts) -> list[list[tuple[str, float]]]:
    """Decode the generated texts of each source, with their log-probabilities."""
    return [
        [(dataset.tokenizer.decode(token_ids), score) for token_ids, score in zip(beam_ids, beam_scores)]
        for beam_ids, beam_scores in zip(texts.tokens.tolist(), texts.log_probabilities.tolist())
    ]


@torch.no_grad()
def start_decoding(checkpoint: "Checkpoint", prompt: list[int], max_context: int) -> tuple[Any, Any, Tensor]:
    """Encode a prompt for decoding: the last ``max_context`` tokens after the memory of others.

    Returns a decoding step, the state before the last token, and that token. The step never
    generates padding, the unknown word or, but for the end, another special token.
    """
    network, tokenizer = checkpoint.network.eval(), checkpoint.tokenizer
    prompt_ids = torch.tensor([prompt], device=checkpoint.network.device)
    special_ids = torch.tensor(list_unwritten_ids(tokenizer), device=prompt_ids.device)

    def encode_tokens(tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Encode tokens after ``state``; return hidden states and the new state."""
        output = network.encode.encode_with_state(tokens, torch.ones_like(tokens, dtype=torch.bool), state)
        return output.states, output.state if isinstance(output, RecurrentOutput) else output.cache

    def step(tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Compute the logits of the next token, and the new state."""
        states, state = encode_tokens(tokens.unsqueeze(1), state)
        logits = network.respond(None, None, states, tokens).squeeze(1)
        return logits.index_fill(1, special_ids, MINUS_INFINITY), state

    earlier_ids, prompt_ids = prompt_ids[:, :-max_context], prompt_ids[:, -max_context:]
    state = encode_memory(network.encode, earlier_ids, checkpoint.sizes["max_length"]) if earlier_ids.numel() else None
    if prompt_ids.shape[1] > 1:
        state = encode_tokens(prompt_ids[:, :-1], state)[1]
    return step, state, prompt_ids[:, -1]


def find_edge_tokens(tokenizer: Any) -> tuple[int, int]:
    """Return the tokens before and after each document of a language model."""
    if isinstance(tokenizer, SubwordTokenizer):
        return tokenizer.cls, tokenizer.sep
    return tokenizer.id_of(END), tokenizer.id_of(END)


def list_unwritten_ids(tokenizer: Any) -> list[int]:
    """List the tokens that are part of no text, but for the end of documents."""
    if isinstance(tokenizer, SubwordTokenizer):
        return sorted(tokenizer.special_ids - {tokenizer.sep})
    return [tokenizer.pad, tokenizer.unknown]


def encode_memory(encode: Any, tokens: Tensor, length: int) -> KeyValueCache:
    """Read tokens (1 t) in segments of ``length``; return the cache of the last states."""
    context = None
    for segment in tokens.split(length, 1):
        context = encode.encode_segment(segment, torch.ones_like(segment, dtype=torch.bool), context)[1]
    return encode.stack.project_context(context)
