"""Tokenizers: whole words, and subwords of any Hugging Face file."""
