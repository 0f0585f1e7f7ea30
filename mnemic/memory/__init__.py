"""Memories (G and O of the frame), one file per memory network."""

from typing import Any

from mnemic.memory.blended import BlendedMemory
from mnemic.memory.contract import Reading, ReadLabels, SegmentMemory, Written
from mnemic.memory.dmn import DMN, LayeredDMN, SummedDMN
from mnemic.memory.dmn_plus import DMNPlus
from mnemic.memory.entnet import EntNet
from mnemic.memory.kv_memnn import KeyValueMemory
from mnemic.memory.memn2n import MemN2N
from mnemic.memory.memnn import MemNN
from mnemic.memory.regions import RegionMemory, SampledRegionMemory
from mnemic.memory.selective import SelectiveMemory
from mnemic.memory.slot_rewriting import SlotRewritingMemory
from mnemic.memory.wmn import WMN

MEMORIES: dict[str, type[Any]] = {
    "blended": BlendedMemory,
    "dmn": DMN,
    "dmn-layers": LayeredDMN,
    "dmn-plus": DMNPlus,
    "dmn-sum": SummedDMN,
    "entnet": EntNet,
    "selective": SelectiveMemory,
    "key-value": KeyValueMemory,
    "memn2n": MemN2N,
    "memnn": MemNN,
    "regions": RegionMemory,
    "sampled-regions": SampledRegionMemory,
    "slot-rewriting": SlotRewritingMemory,
    "wmn": WMN,
}
