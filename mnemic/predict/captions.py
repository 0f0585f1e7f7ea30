"""Write captions of pictures; report where the network looked for each word.

Shapes: b pictures, m words, s slots (regions), c channels, y rows and x columns of pixels.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
import torch
from torch import Tensor, nn

from mnemic.data.language_modeling.batches import END
from mnemic.models import PictureInputs
from mnemic.models.evaluating import evaluating
from mnemic.predict.methods import check_method
from mnemic.predict.results import PictureCaption, WordGaze
from mnemic.recipe import ConfigError
from mnemic.respond.generate import GeneratedTexts, beam_search
from mnemic.text import Tokenizer

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint

PICTURES_PER_BATCH = 256  # changes memory use, not results


class WrittenCaptions(NamedTuple):
    """Captions of pictures as word ids, with the gaze of each word."""

    words: Tensor  # b m, padded with the end
    lengths: Tensor  # b, without the end
    log_probabilities: Tensor  # b, of the captions with their end
    gaze: Tensor | None  # b m s; None: the network reads no regions


def caption_pictures(checkpoint: "Checkpoint", pictures: Any, *, num_beams: int = 1) -> list[PictureCaption]:
    """Describe pictures: bytes n y x c, or a tensor n c y x."""
    check_method(checkpoint, "caption")
    network, tokenizer, sizes = checkpoint.network, checkpoint.tokenizer, checkpoint.sizes
    tensor = to_tensor(pictures, sizes["channels"], sizes["side"]).to(network.device)
    end_id = tokenizer.id_of(END)
    captions = []
    for batch in tensor.split(PICTURES_PER_BATCH) if len(tensor) else ():
        captions += build_captions(write_captions(network, batch, end_id, num_beams), tokenizer, network.encode.grid)
    return captions


@torch.no_grad()
def write_captions(network: Any, pictures: Tensor, end_id: int, num_beams: int = 1) -> WrittenCaptions:
    """Write captions of pictures (b c y x), greedily or by beam search."""
    with evaluating(network):
        states = network.encode(pictures)
        start_ids = torch.full((len(pictures),), end_id, device=pictures.device)
        step, state = network.start_decoding(states)
        texts: GeneratedTexts = beam_search(
            step, state, start_ids, end_id=end_id, max_tokens=network.respond.max_length, num_beams=num_beams
        )
        words = texts.tokens[:, 0]  # b m
        gaze = None
        if network.memory is not None:  # the looks of the best beam, in one more pass
            earlier_words = torch.cat([start_ids.unsqueeze(1), words[:, :-1]], 1)
            gaze = network.respond_to(states, PictureInputs(pictures, earlier_words)).reading.weights[:, 0, 0]
    lengths = texts.lengths[:, 0] - (words == end_id).any(1).long()
    return WrittenCaptions(words, lengths, texts.log_probabilities[:, 0], gaze)


def build_captions(written: WrittenCaptions, tokenizer: Tokenizer, grid: tuple[int, int]) -> list[PictureCaption]:
    """Build the captions of a batch, with words in place of ids."""
    captions = []
    for row, (ids, length) in enumerate(zip(written.words.tolist(), written.lengths.tolist())):
        words = [tokenizer.decode([word_id]) for word_id in ids[:length]]
        gaze = () if written.gaze is None else build_gaze(words, written.gaze[row], grid)
        captions.append(PictureCaption(" ".join(words), float(written.log_probabilities[row]), gaze))
    return captions


def build_gaze(words: Sequence[str], weights: Tensor, grid: tuple[int, int]) -> tuple[WordGaze, ...]:
    """Build the gaze of each word from weights (m s) of regions on a grid."""
    rows = weights.cpu().unflatten(1, grid).tolist()
    return tuple(WordGaze(word, tuple(map(tuple, row))) for word, row in zip(words, rows))


def to_tensor(pictures: Any, channels: int, side: int) -> Tensor:
    """Convert pictures to a tensor n c y x, or raise."""
    if isinstance(pictures, numpy.ndarray):
        if pictures.dtype != numpy.uint8 or pictures.ndim not in (3, 4):
            raise ConfigError(
                f"an array of pictures has bytes, height × width × colors or several of these, not {pictures.dtype} "
                f"of shape {pictures.shape}"
            )
        pictures = torch.from_numpy(pictures.reshape(-1, *pictures.shape[-3:])).movedim(-1, 1).float() / 255
    expected = (channels, side, side)
    if not isinstance(pictures, Tensor) or pictures.dim() != 4 or tuple(pictures.shape[1:]) != expected:
        shape = tuple(getattr(pictures, "shape", ()))
        raise ConfigError(
            f"this network reads pictures of {side}×{side} pixels with {channels} colors, a tensor n × {channels} × "
            f"{side} × {side} or bytes n × {side} × {side} × {channels}; this one has the shape {shape}"
        )
    return pictures.float()


def describe_scenes(network: nn.Module, dataset: Any, num_beams: int = 1) -> list[str]:
    """Write the caption of each scene of a dataset."""
    captions: list[str] = []
    for rows in torch.arange(len(dataset), device=dataset.device).split(PICTURES_PER_BATCH):
        written = write_captions(network, dataset.read_pictures(rows), dataset.end_id, num_beams)
        ids = [words[:length] for words, length in zip(written.words.tolist(), written.lengths.tolist())]
        captions += [dataset.tokenizer.decode(words) for words in ids]
    return captions
