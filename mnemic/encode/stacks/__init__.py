"""Stacks of Transformer layers: encoders (``STACKS``) and causal decoders (``DECODERS``).

An encoder has ``forward(x, mask, context=None)``, b n d → b n d, zeros at padding, and
``iterate_layers``, the input of the first layer and then the output of each. A decoder has
``forward(x, mask, cache=None)`` and ``empty_cache``; it returns states and the extended cache. One
that ``supports_context`` takes a ``StackContext`` in place of a cache, and returns the inputs of
its layers.

An encoder may have ``takes_segments``: its ``forward`` takes ``segments`` b n, of ``num_segments``
kinds, in place of embeddings of them. One that ``reads_in_order`` has ``predict``, with a
``FactorizationOrder``.
"""

from collections.abc import Callable

from torch import nn

from mnemic.encode.stacks.binary_tree import BinaryTreeDecoder, BinaryTreeStack
from mnemic.encode.stacks.context import StackContext, extend_context
from mnemic.encode.stacks.decoder import DecoderOutput, DecoderStack, KeyValueCache
from mnemic.encode.stacks.encoder import EncoderStack, min_length, real_token_mask
from mnemic.encode.stacks.query_layer import QueryLayerDecoder
from mnemic.encode.stacks.reversible import ReversibleDecoder, ReversibleStack
from mnemic.encode.stacks.star import StarStack
from mnemic.encode.stacks.two_stream import FactorizationOrder as FactorizationOrder
from mnemic.encode.stacks.two_stream import TwoStreamStack

STACKS: dict[str, Callable[..., nn.Module]] = {
    "binary-tree": BinaryTreeStack,
    "encoder": EncoderStack,
    "reversible": ReversibleStack,
    "star": StarStack,
    "two-stream": TwoStreamStack,
}
DECODERS: dict[str, Callable[..., nn.Module]] = {
    "binary-tree": BinaryTreeDecoder,
    "query-layer": QueryLayerDecoder,
    "reversible": ReversibleDecoder,
    "transformer": DecoderStack,
}
