"""Predict on texts: classes, numbers, named entities, answers and embeddings.

Long texts are split into windows as in training, unless other ``options`` are passed.
"""

from collections.abc import Iterable, Sequence
from math import exp
from typing import TYPE_CHECKING, Any

from mnemic.data import DATASETS
from mnemic.data.text_tasks.batches import TextDataset
from mnemic.data.text_tasks.encode_windows import encode_labeled, encode_questions, encode_tagged, find_first_tokens
from mnemic.data.text_tasks.examples import LabeledExample, QuestionExample, TaggedExample
from mnemic.predict import results
from mnemic.predict.methods import check_method, methods_of
from mnemic.predict.slot_evidence import SlotReadRecorder
from mnemic.predict.windows import (
    compute_class_logits,
    compute_tag_logits,
    compute_text_and_sentence_vectors,
    compute_text_vectors,
    predict_spans,
)
from mnemic.recipe import ConfigError, build, kind_of
from mnemic.respond.merge_windows import MAX_RELEVANCE
from mnemic.text import WindowOptions
from mnemic.text.bio import decode_bio_tags
from mnemic.text.rules import find_words
from mnemic.text.windows import Truncation

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint

TextOrPair = str | tuple[str, str]


def classify_texts(
    checkpoint: "Checkpoint", texts: Sequence[TextOrPair], options: WindowOptions | None = None
) -> list[results.Classification]:
    """Classify each text, or each pair of texts if the network compares two."""
    check_method(checkpoint, "classify")
    dataset = encode_texts(checkpoint, texts, options)
    classifications, recorder = [], SlotReadRecorder(dataset)
    probabilities = compute_class_logits(checkpoint.network, dataset, recorder.record).softmax(1)
    for index, (class_probabilities, (seen, total)) in enumerate(zip(probabilities, dataset.token_counts.tolist())):
        order = class_probabilities.argsort(descending=True).tolist()
        ranked = tuple((checkpoint.labels[label], float(class_probabilities[label])) for label in order)
        slots = recorder.slots_of_text(index)
        classifications.append(results.Classification(*ranked[0], ranked, seen, total, slots))
    return classifications


def predict_numbers(
    checkpoint: "Checkpoint", texts: Sequence[TextOrPair], options: WindowOptions | None = None
) -> list[results.Rating]:
    """Predict a number for each text, or pair of texts, with a regression network."""
    check_method(checkpoint, "rate")
    dataset = encode_texts(checkpoint, texts, options)
    recorder = SlotReadRecorder(dataset)
    numbers = compute_class_logits(checkpoint.network, dataset, recorder.record).squeeze(1).tolist()
    return [
        results.Rating(number, seen, total, recorder.slots_of_text(index))
        for index, (number, (seen, total)) in enumerate(zip(numbers, dataset.token_counts.tolist()))
    ]


def tag_entities(
    checkpoint: "Checkpoint", texts: Sequence[str], options: WindowOptions | None = None
) -> list[results.TaggedText]:
    """Find the named entities of each text."""
    check_method(checkpoint, "tag")
    options = options or build_window_options(checkpoint)
    examples = [TaggedExample(text, tuple(find_words(text)), ()) for text in check_texts(texts)]
    dataset = encode_tagged(examples, checkpoint.tokenizer, options, labels=checkpoint.labels)
    tagged_texts, recorder = [], SlotReadRecorder(dataset)
    text_logits = compute_tag_logits(checkpoint.network, dataset.to(checkpoint.network.device), recorder.record)
    for index, (example, logits) in enumerate(zip(examples, text_logits)):
        tokens = find_first_tokens(dataset.token_offsets(index), example.word_spans)
        probabilities, best = logits.softmax(1).max(1)
        word_probabilities, tag_names = (probabilities.tolist(), [checkpoint.labels[label] for label in best.tolist()])
        named_entities = tuple(
            results.Entity(
                entity.kind,
                example.word_spans[entity.first][0],
                example.word_spans[entity.last][1],
                min(word_probabilities[entity.first : entity.last + 1]),
                recorder.slots_of_token(index, tokens[entity.first] or 0),
            )
            for entity in decode_bio_tags(tag_names)
        )
        tagged_texts.append(results.TaggedText(named_entities, *dataset.token_counts[index].tolist()))
    return tagged_texts


def answer_questions(
    checkpoint: "Checkpoint", pairs: Sequence[tuple[str, str]], options: WindowOptions | None = None
) -> list[results.SpanAnswer]:
    """Find the span that answers each pair of question and text, or no answer."""
    check_method(checkpoint, "answer")
    options = options or build_window_options(checkpoint)
    examples = []
    for pair in pairs:
        question, text = check_texts(pair)
        examples.append(QuestionExample(question, text, (), -1, ""))
    if any(not example.question.strip() for example in examples):
        raise ConfigError("the question is empty; ask for example 'Who wrote it?'")
    dataset = encode_questions(examples, checkpoint.tokenizer, options)
    answers, recorder = [], SlotReadRecorder(dataset)
    best_spans = predict_spans(checkpoint.network, dataset.to(checkpoint.network.device), recorder.record)
    for index, (span, (seen, total)) in enumerate(zip(best_spans, dataset.token_counts.tolist())):
        offsets = dataset.token_offsets(index)
        if not offsets:  # nothing to answer with
            answers.append(results.SpanAnswer(0, 0, 0.0, 1.0, seen, total, relevance=-MAX_RELEVANCE))
            continue
        start, end = offsets[span.first_token][0], offsets[span.last_token][1]
        slots = recorder.slots_of_token(index, span.first_token)
        probabilities = exp(span.log_probability), span.no_answer_probability
        answers.append(results.SpanAnswer(start, end, *probabilities, seen, total, slots, span.relevance))
    return answers


def rerank_passages(
    checkpoint: "Checkpoint", question: str, passages: Sequence[str], options: WindowOptions | None = None
) -> list[results.RankedPassage]:
    """Rank passages by how well each answers a question, best first; ties keep their order.

    A reader ranks by the relevance of its answers, a network that rates pairs by its number.
    """
    check_method(checkpoint, "rerank")
    pairs = [(question, passage) for passage in check_texts(passages)]
    if "answer" in methods_of(checkpoint):
        answers = answer_questions(checkpoint, pairs, options)
        rows = [(answer.relevance, answer.seen, answer.total) for answer in answers]
    else:
        ratings = predict_numbers(checkpoint, pairs, options)
        rows = [(rating.number, rating.seen, rating.total) for rating in ratings]
    ranked = [results.RankedPassage(index, *row) for index, row in enumerate(rows)]
    return sorted(ranked, key=lambda passage: -passage.score)


def embed_texts(
    checkpoint: "Checkpoint",
    texts: Sequence[str],
    options: WindowOptions | None = None,
    *,
    with_sentences: bool = False,
) -> results.TextEmbeddings:
    """Embed each text as a vector of length 1, with any network that reads texts.

    ``with_sentences`` embeds each sentence, too: for retrieval a text is as similar as its most
    similar sentence.
    """
    check_method(checkpoint, "embed")
    options = options or build_window_options(checkpoint)
    examples = [LabeledExample(text, None, "") for text in check_texts(texts)]
    dataset = encode_labeled(examples, checkpoint.tokenizer, options, labels=())
    device_dataset = dataset.to(checkpoint.network.device)
    seen, total = (tuple(counts.tolist()) for counts in dataset.token_counts.unbind(1))
    if not with_sentences:
        return results.TextEmbeddings(compute_text_vectors(checkpoint.network, device_dataset), seen, total)
    text_vectors, sentence_vectors = compute_text_and_sentence_vectors(checkpoint.network, device_dataset)
    return results.TextEmbeddings(text_vectors, seen, total, tuple(sentence_vectors))


def build_window_options(
    checkpoint: "Checkpoint", overlap: int | None = None, truncation: Truncation | None = None
) -> WindowOptions:
    """Build the options for splitting texts into windows: as in training, unless given.

    ``overlap``: shared tokens of neighboring windows. ``truncation="first"``: read the first alone.
    """
    data_source = build(DATASETS, checkpoint.recipe["data"])
    if "segments" in checkpoint.recipe["model"] and (overlap, truncation) != (None, None):
        raise ConfigError(
            "this network reads all of a text, with a memory across its segments: leave out overlap and truncation"
        )
    shared_tokens = data_source.overlap if overlap is None else overlap
    return WindowOptions(data_source.length, shared_tokens, truncation or data_source.truncation).check()


def check_texts(texts: Iterable[Any]) -> list[str]:
    """Return texts as a list of strings; raise a ValueError for anything else."""
    if isinstance(texts, str):
        raise ValueError("texts is one string; expected several: [text] for a single one")
    if not isinstance(texts, Iterable):
        raise ValueError(f"texts are several strings, not {texts!r}")
    text_list = list(texts)
    if invalid := [text for text in text_list if not isinstance(text, str)]:
        raise ValueError(f"a text is a string, not {invalid[0]!r}")
    return text_list


def encode_texts(checkpoint: "Checkpoint", texts: Sequence[TextOrPair], options: WindowOptions | None) -> TextDataset:
    """Encode texts, or pairs if the network compares two, as a dataset without labels."""
    if kind_of(DATASETS, checkpoint.recipe["data"]).paired:
        if invalid := [pair for pair in texts if isinstance(pair, str) or len(pair) != 2]:
            raise ValueError(f"this network compares two texts: give pairs, not {invalid[0]!r}")
        pairs = [check_texts(pair) for pair in texts]
        examples = [LabeledExample(first, second, "") for first, second in pairs]
    else:
        examples = [LabeledExample(text, None, "") for text in check_texts(texts)]
    options = options or build_window_options(checkpoint)
    dataset = encode_labeled(examples, checkpoint.tokenizer, options, labels=checkpoint.labels)
    return dataset.to(checkpoint.network.device)
