"""Write documents into a memory, replace them and take them out."""
