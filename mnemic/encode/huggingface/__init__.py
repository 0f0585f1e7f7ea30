"""Read and write Hugging Face folders: BERT, RoBERTa, DistilBERT, ELECTRA, ALBERT, XLNet.

``load_encoder(folder)`` returns a ``Pretrained``; ``save_encoder(folder, pretrained)`` writes one.
"""

from mnemic.encode.huggingface.families import FAMILIES
from mnemic.encode.huggingface.read import Pretrained, load_encoder
from mnemic.encode.huggingface.write import find_simplest_family, save_encoder

__all__ = ["FAMILIES", "Pretrained", "find_simplest_family", "load_encoder", "save_encoder"]  # the reference's
