"""Pre-training: heads that predict tokens of plain texts, and how texts follow each other."""
