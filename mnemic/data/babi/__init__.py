"""Stories with questions (bAbI): read the official files, or make new ones like them."""
