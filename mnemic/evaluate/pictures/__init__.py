"""Metrics of networks that see pictures."""
