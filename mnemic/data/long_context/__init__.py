"""Long texts, read segment by segment: facts hidden in background text, articles, documents."""
