"""Plain text, Markdown, HTML and EPUB."""
