"""Generated documents of other forms than prose, with questions."""
