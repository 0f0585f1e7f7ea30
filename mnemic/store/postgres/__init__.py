"""The server storage engine: PostgreSQL with pgvector."""
