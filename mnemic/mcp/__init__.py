"""An MCP server: a memory of documents for assistants."""
