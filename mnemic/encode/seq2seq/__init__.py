"""Encoders of sequence-to-sequence networks, and sessions of generation."""
