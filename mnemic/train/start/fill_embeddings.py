"""Fill the embeddings of a new network with word vectors: ``model.init_vectors``.

The vectors are only read when a run starts: a checkpoint needs no other folder.

Shapes: v vocabulary, d width.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.checkpoint.vectors import iterate_vectors
from mnemic.models import PictureNetwork
from mnemic.models.pictures.alignment_network import AlignmentNetwork
from mnemic.models.pictures.task_network import TaskNetwork
from mnemic.recipe import ConfigError
from mnemic.text import Tokenizer
from mnemic.text.tokenizers.match_words import match_words


class FilledRows(NamedTuple):
    """How much of an embedding was filled with word vectors."""

    filled: int
    rows: int  # of the embedding
    scale: float  # the factor of the vectors


class WordVector(NamedTuple):
    """A word with its vector."""

    word: str
    vector: Tensor  # d


def fill_embeddings(network: Any, model: Mapping[str, Any], tokenizer: Tokenizer) -> FilledRows:
    """Fill each row whose token is a word with the vector of that word.

    All vectors are multiplied by one number, so that they are on average as long as the random rows
    that they replace. The other rows stay as they are.
    """
    folder = model["init_vectors"]
    if not isinstance(folder, str) or not folder:
        raise ConfigError(f"model.init_vectors is a folder or a file with word vectors, not {folder!r}")
    if "init_from" in model:
        raise ConfigError("model.init_from has embeddings already: leave model.init_vectors or --start out")
    table = read_word_table(network, len(tokenizer))
    vectors = select_vectors(Path(folder).expanduser(), tokenizer, table.shape[1])
    ids = torch.tensor(list(vectors))
    rows = torch.stack([row.vector for row in vectors.values()])
    length = rows.square().sum(-1).mean().sqrt()
    if not length:
        raise ConfigError(f"all vectors of {folder} are zero; give others")
    scale = float(table.detach().square().sum(-1).mean().sqrt() / length)
    table[ids] = (rows * scale).to(table.dtype)
    load_word_table(network, table)
    return FilledRows(len(ids), len(table), scale)


def read_word_table(network: Any, vocab: int) -> Tensor:
    """Copy the vectors of the words that a network reads: v d."""
    table = network.respond.embeddings.mT if is_captioner(network) else find_word_table(network, vocab)
    return table.detach().clone()


@torch.no_grad()
def load_word_table(network: Any, table: Tensor) -> None:
    """Replace the vectors of the words that a network reads (v d)."""
    if is_captioner(network):
        network.respond.load_embeddings(table.mT)
    else:
        find_word_table(network, len(table)).copy_(table)


def is_captioner(network: Any) -> bool:
    """Check whether a network looks at pictures and its response reads the words.

    A network that looks at pictures and reads no words raises a ConfigError.
    """
    if not isinstance(network, PictureNetwork):
        return False
    if not network.respond.has_word_vectors:
        raise ConfigError("model.init_vectors fills the vectors of words; this network reads none: leave it out")
    return True


def find_word_table(network: Any, vocab: int) -> nn.Parameter:
    """Find the only embedding of the encoder of words (v d)."""
    encode = network.ask if isinstance(network, AlignmentNetwork | TaskNetwork) else network.encode
    if not encode.reads_texts:
        return encode.embeddings.tokens
    if len(getattr(encode, "tables", [encode.words])) > 1 or len(encode.words) != vocab:
        raise ConfigError(
            "model.init_vectors fills an embedding with one row per word; this encoder has several, or rows for "
            "more than words: leave it out"
        )
    return encode.words


def select_vectors(path: Path, tokenizer: Tokenizer, width: int) -> dict[int, WordVector]:
    """Select the vectors of the words that are tokens, by the token's id.

    Of several words with one token the one that is spelled like it counts, else the first, which is
    the most frequent one.
    """
    selected: dict[int, WordVector] = {}
    for chunk in iterate_vectors(path):
        if chunk.width != width:
            raise ConfigError(
                f"the vectors of {path} have a width of {chunk.width}, the embedding of this network {width}: set "
                f"model.width={chunk.width}, or train vectors with --width {width}"
            )
        for token_id, index in match_words(tokenizer, chunk.words):
            word, known = chunk.words[index], selected.get(token_id)
            if known is None or (known.word != word and tokenizer.decode([token_id]).strip() == word):
                selected[token_id] = WordVector(word, chunk.vectors[index].clone())
    if not selected:
        raise ConfigError(f"no token of this network's {len(tokenizer):,} is a word of {path}; give other vectors")
    return selected
