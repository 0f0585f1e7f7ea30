"""I, G, O and R put together: every network of the library, and the one place that builds them."""

from mnemic.models.build import assemble as assemble
from mnemic.models.build import carrying as carrying
from mnemic.models.build import check_model as check_model
from mnemic.models.build import check_parts as check_parts
from mnemic.models.build import looks_ahead as looks_ahead
from mnemic.models.build import numbered as numbered
from mnemic.models.build import with_memory as with_memory
from mnemic.models.build import without_memory as without_memory
from mnemic.models.inputs import IGNORE as IGNORE
from mnemic.models.inputs import Segments as Segments
from mnemic.models.memory_network import Inputs as Inputs
from mnemic.models.memory_network import Network as Network
from mnemic.models.memory_network import Output as Output
from mnemic.models.text_model import Read as Read
from mnemic.models.text_model import Reader as Reader
from mnemic.models.text_model import Row as Row
from mnemic.models.text_model import Windows as Windows
from mnemic.models.text_model import take as take
