"""All networks of the library, and the functions that build them."""

from mnemic.models.build import build_model as build_model
from mnemic.models.build import check_model as check_model
from mnemic.models.build import check_model_parts as check_model_parts
from mnemic.models.build import check_parts_fit as check_parts_fit
from mnemic.models.evaluating import evaluating as evaluating
from mnemic.models.inputs import IGNORE as IGNORE
from mnemic.models.measure import build_on_meta as build_on_meta
from mnemic.models.measure import build_within as build_within
from mnemic.models.measure import check_memory as check_memory
from mnemic.models.memory_network import MemoryNetwork as MemoryNetwork
from mnemic.models.memory_network import ModelOutput as ModelOutput
from mnemic.models.memory_network import StoryInputs as StoryInputs
from mnemic.models.picture_inputs import PictureInputs as PictureInputs
from mnemic.models.picture_network import PictureNetwork as PictureNetwork
from mnemic.models.picture_network import PictureOutput as PictureOutput
from mnemic.models.replaced_token_model import ReplacedTokenModel as ReplacedTokenModel
from mnemic.models.stream import StreamMemory as StreamMemory
from mnemic.models.text_model import PackedBatch as PackedBatch
from mnemic.models.text_model import TextModel as TextModel
from mnemic.models.text_model import TextOutput as TextOutput
from mnemic.models.text_model import WindowBatch as WindowBatch
from mnemic.models.text_model import gather_rows as gather_rows
