"""Answer a question from retrieved passages."""
