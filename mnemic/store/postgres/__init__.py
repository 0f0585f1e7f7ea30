"""The server engine: PostgreSQL with pgvector."""
