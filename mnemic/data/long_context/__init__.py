"""Long texts: facts hidden among background, and documents to be read segment by segment."""
