"""Readers of tables and records."""
