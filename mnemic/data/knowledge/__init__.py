"""Knowledge bases with questions: facts and documents as key-value pairs."""
