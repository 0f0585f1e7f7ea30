"""Pictures: generated scenes with captions, questions and boxes; handwritten digits."""
