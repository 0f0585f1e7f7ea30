"""What a response says about itself; models, data and commands ask its class."""

from typing import Any, Literal

from torch import Tensor, nn


class Response(nn.Module):
    """State what a response answers from and what it is for.

    Contract: ``forward(query, reading, states, mask) → logits``.
    """

    source: Literal["memory", "text", "carried memory", "picture"] = "memory"  # what answers come from
    reads_regions = False  # of a picture, from a memory, once per word
    reads_words = False  # beside a picture, as model.ask encodes them
    has_tasks = False  # each batch is of one of several tasks
    reads_segments = False  # windows of a text may be read in turn, with a memory
    pools_text = False  # one answer per text, not one per token
    needs_causal = False  # it predicts words that the encoder must not have read
    needs_directions = False  # half of each state must know only what is before, half only what is after
    has_word_vectors = False  # ``embeddings`` d v of the words that it reads, and ``load_embeddings``
    tied = False  # its ``table`` is the encoder's last table
    generates_words = True
    methods: tuple[str, ...] = ()  # of ``predict.Model``
    replaces: str | None = None  # the kind of response whose data fits it, too
    corpus_metrics = "masked"  # how a network with it is measured on a corpus, a key of evaluate's table
    text_vector: Literal["mean", "first"] = "mean"  # of a window's states, the vector of its text

    @property
    def can_copy(self) -> bool:
        """Whether words may be copied from memory."""
        return False

    def score_relevance(self, first_states: Tensor) -> Tensor | None:
        """Score how well each window answers (b), from its first state (b d).

        None: the response does not.
        """
        return None

    def dummy_inputs(self, tokens: Tensor) -> dict[str, Any]:
        """Return the inputs beside ``tokens`` (b n) that a check of shapes needs."""
        return {}
