"""Find and resolve dates in texts."""
