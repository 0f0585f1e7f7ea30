"""Running text as words, for language models: read, cut into equal stretches, kept on disk."""
