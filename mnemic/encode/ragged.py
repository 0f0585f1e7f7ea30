"""Many texts through an encoder, whatever their lengths, without padding.

Shapes: n tokens of a text, d width.
"""

from array import array
from collections.abc import Sequence

import torch
from torch import Tensor

from mnemic.encode.packed import ELSEWHERE, ON_CPU, Packed, plan
from mnemic.encode.transformer import TransformerEncoder


def encode_ragged(
    encoder: TransformerEncoder,
    texts: Sequence[Sequence[int]],
    *,
    segments: Sequence[Sequence[int]] | None = None,
    together: int = 0,
) -> list[Tensor]:
    """The states of each text (ids), n d, in the order given; gradients flow as usual.

    Texts are sorted by length and packed into rows of at most ``together`` tokens (0: what suits
    the device), in which each sees itself alone: the states are those it would have by itself.
    A padded batch costs a row as long as its longest text for each of them.
    """
    lengths = [len(text) for text in texts]
    check_lengths(lengths, encoder.longest)
    device = encoder.device
    found = dict.fromkeys(range(len(texts)), torch.zeros(0, encoder.width, device=device))
    for rows in plan(lengths, together or (ON_CPU if device.type == "cpu" else ELSEWHERE)):
        packed = Packed.of([lengths[row] for row in rows], device)
        ids = joined(texts, rows, device)
        own = None if segments is None else joined(segments, rows, device)
        states = encoder(ids, packed, positions=packed.positions(), segments=own)  # 1 t d
        found.update(zip(rows, states[0].split(packed.lengths)))
    return [found[number] for number in range(len(texts))]


def joined(texts: Sequence[Sequence[int]], rows: Sequence[int], device: torch.device) -> Tensor:
    ids = array("q")  # a list of them all would take four times as long
    for row in rows:
        ids.extend(texts[row])
    return torch.frombuffer(ids, dtype=torch.long)[None].to(device)


def check_lengths(lengths: Sequence[int], longest: int | None) -> None:
    """Here, where lengths are known: past its table a GPU would stop with an error of its own."""
    for number, length in enumerate(lengths):
        if longest is not None and length > longest:
            raise ValueError(
                f"text {number} has {length} tokens, but this encoder has positions for {longest}; "
                "cut it into windows"
            )
