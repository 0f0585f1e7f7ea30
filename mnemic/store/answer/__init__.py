"""Answer a question from the passages that were found."""
