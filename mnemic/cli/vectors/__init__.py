"""Commands on word vectors."""
