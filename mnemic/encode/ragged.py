"""Run an encoder on texts of different lengths, without padding.

Shapes: n tokens of a text, d width.
"""

from array import array
from collections.abc import Sequence

import torch
from torch import Tensor

from mnemic.encode.packed import MAX_TOKENS_CPU, MAX_TOKENS_GPU, PackedMask, group_by_length
from mnemic.encode.transformer import TransformerEncoder


def encode_ragged(
    encoder: TransformerEncoder,
    texts: Sequence[Sequence[int]],
    *,
    segments: Sequence[Sequence[int]] | None = None,
    max_tokens: int = 0,
) -> list[Tensor]:
    """Encode texts of different lengths; return the states of each, n d, in order.

    Texts are lists of ids. They are sorted by length and packed into rows of at most ``max_tokens``
    tokens (0: a default for the device), in which each attends only to itself: the states are those
    it would have alone. Gradients flow as usual. A padded batch would cost a row as long as its
    longest text for each of them.
    """
    lengths = [len(text) for text in texts]
    device, max_length = encoder.device, encoder.max_length
    for number, length in enumerate(lengths):  # on a GPU an index beyond the table is a device error
        if max_length is not None and length > max_length:
            raise ValueError(
                f"text {number} has {length} tokens, but this encoder has positions for "
                f"{max_length}; cut it into windows"
            )
    states_by_text = dict.fromkeys(range(len(texts)), torch.zeros(0, encoder.width, device=device))
    for rows in group_by_length(lengths, max_tokens or (MAX_TOKENS_CPU if device.type == "cpu" else MAX_TOKENS_GPU)):
        packed = PackedMask.from_lengths([lengths[row] for row in rows], device)
        ids = concatenate_ids(texts, rows, device)
        row_segments = None if segments is None else concatenate_ids(segments, rows, device)
        states = encoder(ids, packed, positions=packed.token_positions(), segments=row_segments)  # 1 t d
        states_by_text.update(zip(rows, states[0].split(packed.lengths)))
    return [states_by_text[number] for number in range(len(texts))]


def concatenate_ids(texts: Sequence[Sequence[int]], rows: Sequence[int], device: torch.device) -> Tensor:
    """Concatenate the ids of some texts into one row on a device."""
    ids = array("q")  # a list would take four times as long
    for row in rows:
        ids.extend(texts[row])
    return torch.frombuffer(ids, dtype=torch.long)[None].to(device)
