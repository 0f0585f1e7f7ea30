"""Texts with labels, questions with answers in a text, words with tags: read, cut and numbered."""
