"""The Transformer encoder: embeddings, then a stack in which every token sees every token.

Shapes: b batch, n tokens, m context positions, t real tokens, d width.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.encode.embeddings import EMBEDDINGS
from mnemic.encode.packed import ON_CPU, Packed, has_kernel, places_of, plan
from mnemic.encode.stack import STACKS, Context, real
from mnemic.recipe import build

SUM: Mapping[str, Any] = {"kind": "sum"}
ENCODER: Mapping[str, Any] = {"kind": "encoder"}


class TransformerEncoder(nn.Module):
    """Tokens read in both directions at once (Vaswani et al. 2017; as a model, BERT).

    On a CPU a padded batch is packed inside, so that nothing is computed on padding. A GPU would
    have to stop and tell how long the texts are: there ``encode_ragged`` packs them beforehand, or
    whoever makes the batch says how much ``room`` its tokens need.
    """

    def __init__(
        self,
        width: int,
        vocab: int,
        *,
        embeddings: Mapping[str, Any] = SUM,
        stack: Mapping[str, Any] = ENCODER,
    ) -> None:
        super().__init__()
        self.width = width
        self.embeddings: Any = build(EMBEDDINGS, embeddings, width=width, vocab=vocab)
        self.stack: Any = build(STACKS, stack, width=width)

    @property
    def longest(self) -> int | None:
        """How many tokens a text may have; None: any number."""
        return self.embeddings.positions.longest

    @property
    def segments(self) -> int:
        """How many segments it tells apart; with 0 it takes none, with 1 all are the same."""
        table = self.embeddings.segments
        return 0 if table is None else len(table)

    @property
    def device(self) -> torch.device:
        return self.embeddings.tokens.device

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor | Packed,
        context: Context | None = None,
        *,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
        room: int = 0,
    ) -> Tensor:
        """``tokens`` b n → b n d, zeros at padding.

        ``mask`` is b n, or b n n where not every token may see the same, or ``Packed`` where
        ``tokens`` is one row of texts, which want their own ``positions``. ``context`` is seen by
        every token. At most ``room`` tokens are no padding; 0: nobody has counted them.
        """
        if isinstance(mask, Tensor) and context is None and self.packs(mask):
            return self.read_packed(tokens, mask, segments, positions)
        if isinstance(mask, Tensor) and context is None and room and self.fits(mask):
            return self.read_within(tokens, mask, segments, positions, room)
        return self.read(tokens, mask, segments, positions, context)

    def read(
        self,
        tokens: Tensor,
        mask: Tensor | Packed,
        segments: Tensor | None,
        positions: Tensor | None,
        context: Context | None = None,
    ) -> Tensor:
        """The batch as it is, padding and all; on a CPU a row of texts gets a few tokens more."""
        spare = 0
        if isinstance(mask, Packed) and (spare := mask.spare()):
            mask = Packed.of([*mask.lengths, spare], tokens.device)
            tokens = nn.functional.pad(tokens, (0, spare))
            segments = None if segments is None else nn.functional.pad(segments, (0, spare))
            positions = None if positions is None else nn.functional.pad(positions, (0, spare))
        x = self.embeddings(tokens, real(mask), segments=segments, positions=positions)
        states = self.stack(x, mask, context)
        return states[:, : states.shape[1] - spare]

    def packs(self, mask: Tensor) -> bool:
        """Whether a batch with this mask is packed; vmap, which cannot, has no such attention."""
        able = self.stack.packs and mask.dim() == 2 and mask.device.type == "cpu"
        return able and bool(mask.any())

    def read_packed(
        self, tokens: Tensor, mask: Tensor, segments: Tensor | None, positions: Tensor | None
    ) -> Tensor:
        """The real tokens of a padded batch, in rows without padding, and back to their places."""
        lengths = mask.sum(1).tolist()
        rows, columns, read = [], [], []
        for group in plan(lengths, ON_CPU):
            numbers = torch.tensor(group)
            row, column = mask[numbers].nonzero(as_tuple=True)  # t
            row = numbers[row]
            packed = Packed.of([lengths[number] for number in group], tokens.device)
            own = None if segments is None else segments[row, column].unsqueeze(0)
            places = column if positions is None else positions[row, column]
            taken = tokens[row, column].unsqueeze(0)  # 1 t
            rows.append(row)
            columns.append(column)
            read.append(self.read(taken, packed, own, places.unsqueeze(0))[0])
        states = torch.cat(read)  # t d
        padded = states.new_zeros(*tokens.shape, self.width)
        return padded.index_put((torch.cat(rows), torch.cat(columns)), states)

    def fits(self, mask: Tensor) -> bool:
        """Whether a GPU's batch with this mask is packed into its room."""
        return self.stack.packs and mask.dim() == 2 and has_kernel(mask.device, self.stack.drops)

    def read_within(
        self,
        tokens: Tensor,
        mask: Tensor,
        segments: Tensor | None,
        positions: Tensor | None,
        room: int,
    ) -> Tensor:
        """As ``read_packed``, in one row of ``room`` tokens, of which nobody waits for the number.

        Tokens beyond the room would be left out.
        """
        places = places_of(mask, room)  # t
        inside = places.clamp(max=mask.numel() - 1)
        column = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)

        def row(part: Tensor) -> Tensor:
            return part.flatten().index_select(0, inside).unsqueeze(0)  # 1 t

        states = self.read(
            row(tokens),
            Packed.within(mask, room),
            None if segments is None else row(segments),
            row(column if positions is None else positions),
        )
        padded = states.new_zeros(mask.numel() + 1, self.width)  # the last is for what is spare
        return padded.index_copy(0, places, states[0])[:-1].unflatten(0, mask.shape)
