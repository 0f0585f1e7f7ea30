"""Pairs of sequences: what is said, and what is to be said for it."""
