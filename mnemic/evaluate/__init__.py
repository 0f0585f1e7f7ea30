"""Metrics: how good a trained network is."""
