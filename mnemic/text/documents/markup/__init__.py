"""Readers of plain text, Markdown, HTML and EPUB."""
