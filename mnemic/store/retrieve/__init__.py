"""Find the passages of a memory that a question is about."""
