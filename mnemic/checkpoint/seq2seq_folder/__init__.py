"""Hugging Face folders of encoder–decoders: BART and T5, read and written.

``load_seq2seq(folder)`` returns a checkpoint, ``save_seq2seq(folder, checkpoint)`` writes one.
"""

from mnemic.checkpoint.seq2seq_folder.read import is_seq2seq_folder, load_seq2seq, read_model
from mnemic.checkpoint.seq2seq_folder.write import save_seq2seq

__all__ = ["is_seq2seq_folder", "load_seq2seq", "read_model", "save_seq2seq"]
