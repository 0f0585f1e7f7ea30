"""G and O of the frame: memories that are written and read, one file a memory network."""

from collections.abc import Callable
from typing import Any

from mnemic.memory.blended import BertMass
from mnemic.memory.contract import Controlled as Controlled
from mnemic.memory.contract import Memory as Memory
from mnemic.memory.contract import Reading as Reading
from mnemic.memory.contract import Written as Written
from mnemic.memory.dmn import DMN, LayeredDMN, SummedDMN
from mnemic.memory.dmn_plus import DMNPlus
from mnemic.memory.entnet import EntNet
from mnemic.memory.kv_memnn import KeyValue
from mnemic.memory.memn2n import MemN2N
from mnemic.memory.memnn import MemNN
from mnemic.memory.parts.cluster_hash import ClusterHash
from mnemic.memory.parts.key_hash import KeyHash
from mnemic.memory.selective import Keeps
from mnemic.memory.wmn import WMN

MEMORIES: dict[str, Callable[..., Any]] = {
    "bert-mass": BertMass,
    "dmn": DMN,
    "dmn-layers": LayeredDMN,
    "dmn-plus": DMNPlus,
    "dmn-sum": SummedDMN,
    "entnet": EntNet,
    "keeps": Keeps,
    "key-value": KeyValue,
    "memn2n": MemN2N,
    "memnn": MemNN,
    "wmn": WMN,
}

CONTROLLED = ("bert-mass", "keeps")  # those that a text of many segments can be read into

SELECTS: dict[str, Callable[..., Any]] = {
    "clusters": ClusterHash,
    "words": KeyHash,
}
