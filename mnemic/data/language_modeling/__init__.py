"""Running text for language models: read, cut into equal spans, stored as token ids."""
