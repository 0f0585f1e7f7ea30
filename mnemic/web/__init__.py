"""The HTTP API of memories and networks, with its page (`mnemic[web]`)."""
