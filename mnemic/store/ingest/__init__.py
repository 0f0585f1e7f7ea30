"""Write documents into a memory: remember, forget, reindex, check, export and import."""
