"""Datasets of text classification, question answering, tagging and retrieval."""
