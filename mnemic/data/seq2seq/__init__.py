"""Datasets of texts that are answered with texts (sequence to sequence)."""
