"""Encoders of whole texts: one state per table, or one per word."""
