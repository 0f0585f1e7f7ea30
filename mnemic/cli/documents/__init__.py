"""Commands for a person's documents: remember, ask, search, forget, list, maintain."""
