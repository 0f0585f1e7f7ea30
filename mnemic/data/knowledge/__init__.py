"""Knowledge: facts and questions about them, as pairs of a key and a value."""
