"""Reproduce the tables of published papers, each by one command."""
