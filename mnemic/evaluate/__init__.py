"""Metrics, calibration and evidence analysis of trained networks."""
