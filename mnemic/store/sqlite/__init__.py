"""The embedded storage engine: one SQLite file."""
