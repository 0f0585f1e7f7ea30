"""Encoders of sequence-to-sequence networks."""
