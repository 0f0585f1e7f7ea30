"""An MCP server: a memory of documents for assistants, on the official SDK (`mnemic[mcp]`)."""
