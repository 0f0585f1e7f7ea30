"""Retrieve the passages of a memory that match a query, by BM25 and embeddings."""
