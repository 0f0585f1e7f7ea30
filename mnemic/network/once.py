"""Encode every segment once: what was read before, word for word, is looked up.

A carrier encodes each segment by itself, so a segment that comes again, in any document, has the
same units; only the memory depends on what came before. Where long documents are drawn from a few
books, almost nothing is left to encode.

Shapes: b documents, s segments, n tokens, r segments that are not empty, p units of a segment, u
all units that are known, d width.
"""

import numpy as np
import torch
from torch import Tensor

from mnemic.network.carrier import Carrier, Encoded
from mnemic.network.segments import Segments, counted


class EncodedOnce:
    """The units of ``Carrier.encoded``, of inputs on the CPU in which nothing is hidden.

    Units that are none have their places behind those of a segment.
    """

    def __init__(self, reader: Carrier) -> None:
        self.reader = reader
        self.places: dict[bytes, tuple[int, int]] = {}  # of a segment: its first unit, how many
        self.units: Tensor | None = None  # u d, on the reader's device

    def __call__(self, inputs: Segments) -> Encoded:
        if inputs.hidden is not None:
            raise ValueError("hidden tokens differ each time; use Carrier.encoded")
        rows = counted(inputs).rows
        assert inputs.sentences is not None
        flat = torch.stack([inputs.tokens, inputs.sentences]).flatten(1, 2)[:, rows]  # 2 r n
        keys = [own.tobytes() for own in flat.to(torch.int32).transpose(0, 1).numpy()]
        new = {key: place for place, key in enumerate(keys) if key not in self.places}
        if new or self.units is None:
            self.learn(list(new), part_of(inputs, rows[list(new.values())]))
        assert self.units is not None
        first, size = np.array([self.places[key] for key in keys]).reshape(-1, 2).T  # r each
        batch, count, _ = inputs.tokens.shape
        most = int(size.max(initial=0))
        inside = np.arange(most) < size[:, None]  # r p
        index = np.zeros((batch * count, most), dtype=np.int64)
        index[rows] = np.where(inside, first[:, None] + np.arange(most), -1) + 1
        found = torch.from_numpy(index).to(self.units.device).unflatten(0, (batch, count))
        return Encoded(self.units[found], found > 0, None, None, None)

    def learn(self, keys: list[bytes], inputs: Segments) -> None:
        """Encode segments that are new."""
        device = next(self.reader.parameters()).device
        known = inputs.counted and inputs.counted._replace(rows=inputs.counted.rows.to(device))
        sent = {
            name: part.to(device)
            for name, part in inputs._asdict().items()
            if isinstance(part, Tensor)
        }
        encoded = self.reader.encoded(inputs._replace(**sent, counted=known))
        units, seen = encoded.units[:, 0], encoded.seen[:, 0]  # r p d, r p
        before = units.new_zeros(1, units.shape[-1]) if self.units is None else self.units
        begin = len(before) - 1
        for key, size in zip(keys, seen.sum(1).tolist()):
            self.places[key] = begin, size
            begin += size
        self.units = torch.cat([before, units[seen]])


def part_of(inputs: Segments, rows: Tensor) -> Segments:
    """Some segments (r of all b s), each as a document of its own."""
    parts = {
        name: part.flatten(0, 1)[rows].unsqueeze(1)
        for name, part in inputs._asdict().items()
        if isinstance(part, Tensor) and part.dim() == 3
    }
    whole = inputs._replace(**parts, counted=None)
    return whole._replace(counted=counted(whole))
