"""Losses of networks that see pictures."""
