"""Hugging Face folders in and out: BERT and MiniLM, RoBERTa, DistilBERT, ELECTRA, ALBERT.

``load_encoder(folder)`` gives a ``Pretrained``; ``save_encoder(folder, pretrained)`` writes one.
"""

from mnemic.encode.huggingface.families import FAMILIES
from mnemic.encode.huggingface.read import Pretrained, load_encoder
from mnemic.encode.huggingface.write import save_encoder, simplest_family

__all__ = ["FAMILIES", "Pretrained", "load_encoder", "save_encoder", "simplest_family"]
