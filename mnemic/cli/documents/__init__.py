"""Commands about a person's documents: remember, ask, search, forget, list, maintain."""
